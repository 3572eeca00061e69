//! A caller and a host in one process, with connections that are cut.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use jig_lab::LabConfig;
use jig_model::Identity;
use jig_model::command::{
    Command, CommandEvent, EventSink, RecoverySteps, Refusal, Reply, RunCommand, RunOptions,
};
use jig_model::protocol::BoxFuture;
use jig_rig::workflow::CancelToken;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex, split};
use tokio::sync::mpsc;

use super::*;
use crate::jobs::JobStore;
use crate::jobs::tests::{answer, said, scripted};
use crate::server::{FileStore, JobWatchers, RigHost, serve};

/// Connects to a host of this process; connection number `n` is cut behind `cuts[n]` bytes from the
/// host.
struct CutConnect {
    host: Arc<RigHost>,
    cuts: Vec<usize>,
    made: AtomicUsize,
}

impl Connect for CutConnect {
    fn host(&self) -> String {
        "here".to_owned()
    }

    fn connect(&self) -> BoxFuture<'_, Result<Connected, Refusal>> {
        let number = self.made.fetch_add(1, Ordering::SeqCst);
        let most = self.cuts.get(number).copied();
        let (near, proxy) = duplex(4096);
        let (far, host_end) = duplex(4096);
        let (from, to) = split(host_end);
        tokio::spawn(serve(Arc::clone(&self.host), Identity::default(), from, to));
        let (mut from_host, mut to_host) = split(far);
        let (mut from_caller, mut to_caller) = split(proxy);
        tokio::spawn(async move {
            let down = async {
                let (mut left, mut buf) = (most.unwrap_or(usize::MAX), [0; 256]);
                while left > 0 {
                    let len = from_host.read(&mut buf).await.unwrap_or(0).min(left);
                    if len == 0 || to_caller.write_all(&buf[..len]).await.is_err() {
                        return;
                    }
                    left -= len;
                }
            };
            tokio::select! {
                () = down => {}
                _ = tokio::io::copy(&mut from_caller, &mut to_host) => {}
            }
        });
        let (from, to) = split(near);
        Box::pin(async { Ok(Connected { from: Box::new(from), to: Box::new(to) }) })
    }
}

#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl EventSink for Told {
    fn event(&self, event: CommandEvent) {
        if let CommandEvent::Waiting { holder, .. } = event {
            self.0.lock().unwrap().push(holder);
        }
    }
}

fn rig(folder: &std::path::Path, script: &str, cuts: Vec<usize>) -> RemoteRig {
    let host = Arc::new(RigHost {
        jobs: JobStore::new(folder.join("jobs")),
        files: FileStore::new(folder.join("files")),
        runs: folder.join("runs"),
        watchers: JobWatchers::default(),
        worker: scripted(script),
        lab: LabConfig::default(),
        name: "here".to_owned(),
        version: "0".to_owned(),
        refuse: |error| Refusal {
            fault: error.fault(),
            message: error.to_string(),
            help: None,
            problems: Vec::new(),
        },
    });
    let connect = Arc::new(CutConnect { host, cuts, made: AtomicUsize::new(0) });
    RemoteRig::new(connect, folder.join("copies"), "a test".to_owned(), "0")
}

fn steps() -> Command {
    Command::RecoverySteps(RecoverySteps { place: "bench".parse().unwrap(), from: None })
}

async fn carried_out(
    rig: &RemoteRig,
    command: Command,
) -> (Result<Reply, RemoteRigError>, Vec<String>) {
    let (told, (_, none)) = (Arc::new(Told::default()), mpsc::channel(1));
    let done = rig.execute(command, none, told.clone(), CancelToken::new()).await;
    let told = told.0.lock().unwrap().clone();
    (done, told)
}

#[tokio::test]
async fn each_event_comes_once_however_the_connection_is_cut() {
    let lines: Vec<String> = (0..40).map(|n| format!("echo '{}'", said(&n.to_string()))).collect();
    let script = format!("{}; echo '{}'", lines.join("; "), answer());
    let expected: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    // Within the answer to the start, within lines, within a greeting, and at the very end.
    for cuts in [vec![], vec![300, 10, 200, 400], vec![600, 700, 1000, 3000], vec![7000, 500]] {
        let folder = tempfile::tempdir().unwrap();
        let rig = rig(folder.path(), &script, cuts.clone());
        let (done, told) = carried_out(&rig, steps()).await;
        assert!(matches!(done, Ok(Reply::Ended(_))), "{cuts:?}: {done:?}");
        assert_eq!(told, expected, "{cuts:?}");
    }
}

#[tokio::test]
async fn a_worker_that_crashes_is_told_with_its_last_words() {
    let folder = tempfile::tempdir().unwrap();
    let rig = rig(folder.path(), "echo no luck >&2; exit 3", Vec::new());
    let (done, _) = carried_out(&rig, steps()).await;
    let error = done.unwrap_err();
    assert_eq!(error.to_string(), "jig at here has ended without an answer: no luck");
}

#[tokio::test]
async fn an_image_is_sent_and_named_as_the_host_does() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "cp \"$2/job.json\" \"{}\"; echo '{}'",
        folder.path().join("seen").display(),
        answer()
    );
    let rig = rig(folder.path(), &script, Vec::new());
    let image = folder.path().join("app.bin");
    std::fs::write(&image, vec![7; 600_000]).unwrap();
    let command = Command::Run(RunCommand {
        place: "bench".parse().unwrap(),
        image: Some(format!("{}@0x8000", image.display()).into()),
        resets: 0,
        until: None,
        console: None,
        reject: Vec::new(),
        allow: Vec::new(),
        timeout_ms: 1,
        options: RunOptions::default(),
    });
    let (done, _) = carried_out(&rig, command).await;
    assert!(done.is_ok(), "{done:?}");
    let seen = std::fs::read_to_string(folder.path().join("seen")).unwrap();
    let at = seen.find("files/").unwrap();
    assert!(seen[at..].contains("/app.bin@0x8000"), "{seen}");
    let stored = std::fs::read_dir(folder.path().join("files")).unwrap().count();
    assert_eq!(stored, 1);
}
