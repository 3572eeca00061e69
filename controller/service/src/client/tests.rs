//! A caller and a host in one process, with connections that are cut.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use jig_lab::{KnowledgeDoor, LabConfig};
use jig_model::command::{
    Command, CommandEvent, EventSink, FlashBy, FlashImageCommand, ProbeAccess, RecoverySteps,
    Refusal, Reply, RunCommand, RunOptions,
};
use jig_model::protocol::BoxFuture;
use jig_model::{Fault, Identity, SessionTrace};
use jig_rig::audit::AuditLog;
use jig_rig::identity::own_identity;
use jig_rig::workflow::CancelToken;
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, duplex, split,
};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::*;
use crate::jobs::tests::{answer, said, scripted};
use crate::jobs::{JobId, JobStore};
use crate::protocol::{FollowJob, Hello, Outgoing, OwnCaller, PROTOCOL, StartJob};
use crate::server::{CatalogueCache, FileStore, JobWatchers, RigHost, serve};

const LIMIT: Duration = Duration::from_secs(60);

/// Runs an image at the place `bench`.
fn run_of(image: Option<String>, options: RunOptions) -> Command {
    Command::Run(RunCommand {
        place: "bench".parse().unwrap(),
        image: image.map(Into::into),
        resets: 0,
        next_boot: None,
        until: None,
        console: None,
        reject: Vec::new(),
        allow: Vec::new(),
        timeout_ms: 1,
        options,
    })
}

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

fn host(folder: &std::path::Path, script: &str) -> Arc<RigHost> {
    Arc::new(RigHost {
        jobs: JobStore::new(folder.join("jobs")),
        files: FileStore::new(folder.join("files")),
        runs: folder.join("runs"),
        audit: AuditLog::in_state(folder),
        watchers: JobWatchers::default(),
        worker: scripted(script),
        knowledge: KnowledgeDoor::new(folder, None),
        catalogue: CatalogueCache::new(LabConfig::default()),
        name: "here".to_owned(),
        version: "0".to_owned(),
        refuse: |error| Refusal {
            fault: error.fault(),
            message: error.to_string(),
            help: None,
            problems: Vec::new(),
        },
        refuse_lease: |error| Refusal {
            fault: error.fault(),
            message: error.to_string(),
            help: None,
            problems: Vec::new(),
        },
        refuse_knowledge: |error| Refusal {
            fault: error.fault(),
            message: error.to_string(),
            help: None,
            problems: Vec::new(),
        },
    })
}

fn rig(folder: &std::path::Path, script: &str, cuts: Vec<usize>) -> RemoteRig {
    let host = host(folder, script);
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
    assert_eq!(error.fault(), Fault::Lab);
}

#[tokio::test]
async fn a_worker_that_was_killed_is_the_rigs_and_one_that_panics_a_bug() {
    for (script, fault) in [
        ("kill -9 $$", Fault::Lab),
        ("echo \"thread 'main' panicked at jig.rs:1:1:\" >&2; exit 101", Fault::Bug),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let rig = rig(folder.path(), script, Vec::new());
        let (done, _) = carried_out(&rig, steps()).await;
        assert_eq!(done.unwrap_err().fault(), fault, "{script}");
    }
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
    let image = format!("{}@0x8000", image.display());
    let command = run_of(Some(image), RunOptions::default());
    let (done, _) = carried_out(&rig, command).await;
    assert!(done.is_ok(), "{done:?}");
    let seen = std::fs::read_to_string(folder.path().join("seen")).unwrap();
    let at = seen.find("files/").unwrap();
    assert!(seen[at..].contains("/app.bin@0x8000"), "{seen}");
    let stored = std::fs::read_dir(folder.path().join("files")).unwrap().count();
    assert_eq!(stored, 1);
}

/// Takes no event before it is told to.
struct StuckSink {
    stuck: std::sync::mpsc::Sender<()>,
    go_on: Mutex<std::sync::mpsc::Receiver<()>>,
}

impl EventSink for StuckSink {
    fn event(&self, _: CommandEvent) {
        let _ = self.stuck.send(());
        let _ = self.go_on.lock().unwrap().recv_timeout(LIMIT);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancellation_reaches_a_job_whose_caller_takes_no_events() {
    let folder = tempfile::tempdir().unwrap();
    let (told, audit) = (folder.path().join("told"), AuditLog::in_state(folder.path()));
    nix::unistd::mkfifo(&told, nix::sys::stat::Mode::S_IRWXU).unwrap();
    // More events than fit between the job and its caller.
    let script = format!(
        "for n in $(seq 3000); do echo '{}'; done; head -c 1 \"$2/cancel\" > /dev/null; \
         echo > '{}'; echo '{}'",
        said("busy"),
        told.display(),
        answer()
    );
    let rig = rig(folder.path(), &script, Vec::new());
    let (stuck, is_stuck) = std::sync::mpsc::channel();
    let (let_on, go_on) = std::sync::mpsc::channel();
    let (_, none) = mpsc::channel(1);
    let cancel = CancelToken::new();
    let asked = cancel.clone();
    // Cancels once the caller stands still, and lets it go on once the job has been told.
    let other_end = std::thread::spawn(move || {
        is_stuck.recv_timeout(LIMIT).unwrap();
        asked.cancel();
        std::fs::read(told).unwrap();
        drop(let_on);
    });
    let sink = Arc::new(StuckSink { stuck, go_on: Mutex::new(go_on) });
    let done = timeout(LIMIT, rig.execute(steps(), none, sink, cancel)).await.unwrap();
    assert!(matches!(done, Ok(Reply::Ended(_))), "{done:?}");
    other_end.join().unwrap();
    let lines: Vec<_> = audit.read().unwrap().map(|item| item.unwrap().content.unwrap()).collect();
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((line.entry.command.as_str(), line.entry.right), ("cancel", None));
    assert_eq!(line.entry.identity, Identity::default());
    assert!(line.entry.why.starts_with("its caller asks; recovery-steps of "), "{line:?}");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_takes_bytes_moves_and_one_that_stands_still_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("for n in $(seq 300); do echo '{}'; done; echo '{}'", said("x"), answer());
    let host = host(folder.path(), &script);
    let watchers = host.watchers.clone();
    let (mut near, far) = duplex(128);
    let (from, to) = split(far);
    tokio::spawn(serve(host, Identity::default(), from, to));
    let job = JobId::random(jiff::Timestamp::now());
    let hello = Hello { protocol: PROTOCOL, program: String::new(), by: String::new() };
    let start =
        StartJob { job: job.clone(), command: steps(), attached: false, lease: None, own: None };
    near.write_all(&Outgoing::request(1, &hello).unwrap()).await.unwrap();
    let mut answered = BufReader::new(near);
    answered.read_line(&mut String::new()).await.unwrap();
    assert_eq!(watchers.last_move(), None, "a caller that has no job is waited for");
    answered.write_all(&Outgoing::request(2, &start).unwrap()).await.unwrap();
    answered.read_line(&mut String::new()).await.unwrap();
    let follow = Outgoing::request(3, &FollowJob { job, offset: 0 }).unwrap();
    answered.write_all(&follow).await.unwrap();
    let minute = Duration::from_secs(60);
    let mut before = watchers.last_move().unwrap();
    for _ in 0..3 {
        // Each read makes room for more, which is taken behind a pause.
        sleep(minute).await;
        let mut some = [0; 100];
        answered.read_exact(&mut some).await.unwrap();
        sleep(Duration::from_millis(1)).await;
        let moved = watchers.last_move().unwrap();
        assert!(moved >= before + minute, "{moved:?} {before:?}");
        before = moved;
    }
    sleep(minute).await;
    assert_eq!(watchers.last_move(), Some(before), "a caller that stands still moves");
    drop(answered);
    sleep(minute).await;
    assert_eq!(watchers.last_move(), None);
}

/// A host that does not know the session of a command, as those before it was made known.
struct OlderConnect(Arc<RigHost>);

impl Connect for OlderConnect {
    fn host(&self) -> String {
        "here".to_owned()
    }

    fn connect(&self) -> BoxFuture<'_, Result<Connected, Refusal>> {
        let (near, proxy) = duplex(4096);
        let (far, host_end) = duplex(4096);
        let (from, to) = split(host_end);
        tokio::spawn(serve(Arc::clone(&self.0), Identity::default(), from, to));
        let (mut from_host, mut to_host) = split(far);
        let (from_caller, mut to_caller) = split(proxy);
        tokio::spawn(async move {
            let mut lines = BufReader::new(from_caller).lines();
            let mut buf = [0; 4096];
            loop {
                tokio::select! {
                    Ok(Some(line)) = lines.next_line() => {
                        let call: serde_json::Value = serde_json::from_str(&line).unwrap();
                        if call.pointer("/params/command/options/asked").is_none() {
                            to_host.write_all(format!("{line}\n").as_bytes()).await.unwrap();
                            continue;
                        }
                        let message = "parameters of job.start: unknown field `asked`";
                        let error = serde_json::json!({ "code": -32602, "message": message });
                        let (id, jsonrpc) = (&call["id"], "2.0");
                        let answer = serde_json::json!({ "jsonrpc": jsonrpc, "id": id, "error": error });
                        to_caller.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
                    }
                    Ok(len) = from_host.read(&mut buf) => {
                        if len == 0 || to_caller.write_all(&buf[..len]).await.is_err() {
                            return;
                        }
                    }
                    else => return,
                }
            }
        });
        let (from, to) = split(near);
        Box::pin(async { Ok(Connected { from: Box::new(from), to: Box::new(to) }) })
    }
}

#[tokio::test]
async fn a_command_of_a_session_is_carried_out_by_a_host_that_knows_no_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let script = format!("cp \"$2/job.json\" \"{}\"; echo '{}'", seen.display(), answer());
    let asked = SessionTrace {
        session: "s20261126-101530-1a2b".parse().unwrap(),
        trace_id: "0123456789abcdef0123456789abcdef".parse().unwrap(),
    };
    let command = |asked| run_of(None, RunOptions { asked, ..RunOptions::default() });
    let copies = || folder.path().join("copies");
    let older = Arc::new(OlderConnect(host(folder.path(), &script)));
    let older = RemoteRig::new(older, copies(), "a test".to_owned(), "0");
    let newer = rig(folder.path(), &script, Vec::new());
    for (rig, knows) in [(older, false), (newer, true)] {
        let (done, _) =
            timeout(LIMIT, carried_out(&rig, command(Some(asked.clone())))).await.unwrap();
        assert!(matches!(done, Ok(Reply::Ended(_))), "{done:?}");
        let job = std::fs::read_to_string(&seen).unwrap();
        assert_eq!(job.contains("s20261126-101530-1a2b"), knows, "{job}");
    }
}

/// A host that stops, and one that serves the same jobs.
struct StoppingConnect {
    stopping: Arc<RigHost>,
    other: Arc<RigHost>,
    has_turned: AtomicBool,
}

impl Connect for StoppingConnect {
    fn host(&self) -> String {
        "here".to_owned()
    }

    fn connect(&self) -> BoxFuture<'_, Result<Connected, Refusal>> {
        let host = match self.has_turned.load(Ordering::SeqCst) {
            true => &self.other,
            false => &self.stopping,
        };
        let (near, far) = duplex(4096);
        let (from, to) = split(far);
        tokio::spawn(serve(Arc::clone(host), Identity::default(), from, to));
        let (from, to) = split(near);
        Box::pin(async { Ok(Connected { from: Box::new(from), to: Box::new(to) }) })
    }

    fn turns_away(&self) -> bool {
        !self.has_turned.swap(true, Ordering::SeqCst)
    }
}

#[tokio::test]
async fn a_command_that_a_stopping_host_does_not_begin_goes_to_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("echo '{}'", answer());
    let (stopping, other) = (host(folder.path(), &script), host(folder.path(), &script));
    stopping.jobs.close();
    let has_turned = AtomicBool::new(false);
    let connect = Arc::new(StoppingConnect { stopping, other, has_turned });
    let rig = RemoteRig::new(connect, folder.path().join("copies"), "a test".to_owned(), "0");
    let (done, _) = carried_out(&rig, steps()).await;
    assert!(matches!(done, Ok(Reply::Ended(_))), "{done:?}");
    // A host that has no other one refuses.
    let host = host(folder.path(), &script);
    host.jobs.close();
    let connect = Arc::new(CutConnect { host, cuts: Vec::new(), made: AtomicUsize::new(0) });
    let rig = RemoteRig::new(connect, folder.path().join("copies"), "a test".to_owned(), "0");
    let error = carried_out(&rig, steps()).await.0.unwrap_err();
    assert!(error.to_string().contains("is stopping"), "{error}");
}

#[tokio::test]
async fn only_the_hosts_own_user_commands_as_a_process_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "pwd > \"{}\"; echo $PATH $HOME >> \"{0}\"; echo '{}'",
        folder.path().join("seen").display(),
        answer()
    );
    let variables = [("PATH", "/bin:/of/caller"), ("HOME", "/of/caller")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let own = OwnCaller { folder: folder.path().canonicalize().unwrap(), variables };
    let image = folder.path().join("app.elf");
    std::fs::write(&image, "no image").unwrap();
    for (identity, admitted) in [(own_identity(), true), (Identity::default(), false)] {
        let host = host(folder.path(), &script);
        let (near, far) = duplex(4096);
        let (from, to) = split(far);
        tokio::spawn(serve(host, identity, from, to));
        let (from, to) = split(near);
        let client = RigClient::over(from, to);
        client.hello(&Hello::of("0", "a test")).await.unwrap();
        let job = JobId::random(jiff::Timestamp::now());
        let command = Command::Flash(FlashImageCommand {
            place: "bench".parse().unwrap(),
            probe: ProbeAccess::default(),
            image: image.clone(),
            by: FlashBy::Usual,
        });
        let start = StartJob { job, command, attached: false, lease: None, own: Some(own.clone()) };
        let begun = client.call(&start).await;
        assert_eq!(begun.is_ok(), admitted, "{begun:?}");
        if admitted {
            let follow = FollowJob { job: start.job, offset: 0 };
            let mut stream = client.stream(&follow).await.unwrap();
            while stream.next().await.is_some() {}
        }
    }
    let seen = std::fs::read_to_string(folder.path().join("seen")).unwrap();
    let mut lines = seen.lines();
    assert_eq!(lines.next(), own.folder.to_str());
    let variables = lines.next().unwrap();
    assert!(
        variables.starts_with("/bin:/of/caller ") && !variables.ends_with(" /of/caller"),
        "{seen}"
    );
}
