//! Connections that are dropped in the middle of a run, again and again.

use std::fs;
use std::io::{Read, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::Pid;
use serde_json::Value;

use crate::manifest::elf;
use crate::remote::{OverSsh, TwoHosts};
use crate::workshop::{Slot, Started, Workshop, until};

/// How often a connection is dropped. `JIG_TEST_DROPS=1000` takes some minutes.
fn drops() -> usize {
    std::env::var("JIG_TEST_DROPS").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

/// How often both SSH connections of two callers are cut. `JIG_TEST_CUTS=500` drops a thousand connections, and
/// takes some minutes.
fn cuts() -> usize {
    std::env::var("JIG_TEST_CUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

/// Passes connections on, and drops each of the first ones a moment after it was made.
struct DroppingProxy {
    path: std::path::PathBuf,
    dropped: Arc<AtomicUsize>,
    /// Whether connections are dropped yet: one that is cut before there is any is an error.
    armed: Arc<AtomicBool>,
}

impl DroppingProxy {
    fn start(path: std::path::PathBuf, rig: std::path::PathBuf, most: usize) -> Self {
        let listener = UnixListener::bind(&path).unwrap();
        let dropped = Arc::<AtomicUsize>::default();
        let armed = Arc::<AtomicBool>::default();
        let (count, arms) = (Arc::clone(&dropped), Arc::clone(&armed));
        // Ends with the test's process.
        thread::spawn(move || {
            for (number, near) in listener.incoming().map_while(Result::ok).enumerate() {
                let far = UnixStream::connect(&rig).unwrap();
                let (near_too, far_too) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                pass(near.try_clone().unwrap(), far.try_clone().unwrap());
                pass(far, near);
                if number < most {
                    let (count, arms) = (Arc::clone(&count), Arc::clone(&arms));
                    thread::spawn(move || {
                        until("a run", || arms.load(Ordering::SeqCst).then_some(()));
                        // Within the greeting, within the first lines, and in the middle of the stream:
                        // 1 to 120 ms, in an order that looks random and is always the same.
                        thread::sleep(Duration::from_millis((number as u64 * 37) % 120 + 1));
                        let _ = near_too.shutdown(Shutdown::Both);
                        let _ = far_too.shutdown(Shutdown::Both);
                        count.fetch_add(1, Ordering::SeqCst);
                    });
                }
            }
        });
        Self { path, dropped, armed }
    }

    fn dropped(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }
}

/// Passes bytes on in small pieces, so that a drop cuts messages anywhere.
fn pass(mut from: UnixStream, mut to: UnixStream) {
    thread::spawn(move || {
        let mut buf = [0; 777];
        while let Ok(len @ 1..) = from.read(&mut buf) {
            if to.write_all(&buf[..len]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}

fn descriptors(pid: Pid) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

fn server(rig: &Workshop) -> Pid {
    let processes = rig.processes().into_iter();
    processes.into_iter().find(|(_, line)| line.trim_end().ends_with(" serve")).unwrap().0
}

fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let (path, inner) = (entry.path(), entry.path());
            let inner = inner.strip_prefix(dir).unwrap().display().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if !inner.starts_with("reports") && inner != "children.jsonl" {
                files.push((inner, fs::read(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// Reads a stream to its end.
fn whole(mut stream: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

#[test]
fn a_run_survives_connections_that_are_dropped_again_and_again() {
    let _slot = Slot::take();
    let (hosts, drops) = (TwoHosts::new(), drops());
    let proxy = DroppingProxy::start(hosts.desk.path("p.sock"), hosts.socket(), drops);
    let server = server(&hosts.rig);
    let before = descriptors(server);
    let began = Instant::now();
    // On an idle host 60 drops take 5 s; the run is cancelled as soon as there were enough.
    let image = elf("mps2-an385", "never-quiet");
    let time = format!("{}s", 10 * drops);
    let mut command = hosts.desk.jig([
        "run",
        "-b",
        "mps2-an385",
        &image,
        "--until",
        "no such words",
        "--timeout",
        &time,
    ]);
    command.env("JIG_RIG", format!("unix:{}", proxy.path.display()));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut caller = Started::of(&mut command);
    // Both are read meanwhile: each connection that is lost is told, and a pipe holds 64 KiB.
    let (out, err) = (caller.child().stdout.take().unwrap(), caller.child().stderr.take().unwrap());
    let (shown, told) = (whole(out), whole(err));
    let caller_pid = Pid::from_raw(caller.child().id().cast_signed());
    until("a copied run", || hosts.desk.run_dirs().pop());
    proxy.armed.store(true, Ordering::SeqCst);
    let mut most_open = 0;
    let end = Instant::now() + Duration::from_secs(2 * drops as u64 + 120);
    while proxy.dropped() < drops && Instant::now() < end {
        most_open = most_open.max(descriptors(caller_pid));
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(proxy.dropped(), drops, "the run has ended before");
    caller.signal(nix::sys::signal::Signal::SIGINT);
    let ran = caller.finish();
    let (shown, told) = (shown.join().unwrap(), told.join().unwrap());
    eprintln!("{drops} drops in {:?}, {most_open} descriptors at most", began.elapsed());
    assert_eq!(ran.code(), 130, "{ran}\n{}", String::from_utf8_lossy(&told));
    // One run, and the copy has each byte of it.
    let (there, here) = (hosts.rig.run_dirs(), hosts.desk.run_dirs());
    assert_eq!((there.len(), here.len()), (1, 1));
    let (there, here) = (files(&there[0]), files(&here[0]));
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|f| f.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&here), names(&there));
    assert!(here == there, "a file of the copy differs");
    let log = there.iter().find(|(name, _)| name == "consoles/1/uart0.raw").unwrap();
    let as_shown = String::from_utf8_lossy(&log.1).replace("\r\n", "\n");
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert_eq!(
        shown.trim_end(),
        as_shown.trim_end(),
        "a byte of the console was lost, or told twice"
    );
    // Nothing is left behind: at the rig neither descriptors nor processes, nor many at the caller.
    assert!(most_open < 40, "{most_open} descriptors at the caller");
    until("as many descriptors as before", || (descriptors(server) <= before + 1).then_some(()));
    // The worker learns from its run behind the reply.
    until("the server alone", || (hosts.rig.processes().len() == 1).then_some(()));
}

#[test]
fn a_run_and_a_terminal_survive_ssh_connections_that_are_cut() {
    let _slot = Slot::take();
    let (hosts, cuts) = (OverSsh::new(), cuts());
    let image = elf("mps2-an385", "never-quiet");
    let time = format!("{}s", 120 + 5 * cuts);
    let args = ["run", "-b", "mps2-an385", &image, "--until", "no such words", "--timeout", &time];
    let start = |args: &[&str]| {
        let mut command = hosts.call(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Started::of(&mut command)
    };
    let mut caller = start(&args);
    let copy = until("a copied run", || hosts.desk.run_dirs().pop());
    let run = copy.file_name().unwrap().to_str().unwrap().to_owned();
    let mut attached = start(&["runs", "attach", &run]);
    // All is read meanwhile: each connection that is lost is told, and a pipe holds 64 KiB.
    let streams = caller.child();
    let whole_out = whole(streams.stdout.take().unwrap());
    let told = [streams.stderr.take(), attached.child().stderr.take()];
    let told = told.map(|stream| whole(stream.unwrap()));
    // A connection that is cut before there is any is an error, so it is waited for.
    let mut out = attached.child().stdout.take().unwrap();
    let mut shown = vec![0; 1];
    out.read_exact(&mut shown).unwrap();
    let seen = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&seen);
    let shown = thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(len @ 1..) = out.read(&mut piece) {
            shown.extend_from_slice(&piece[..len]);
            counted.store(shown.len(), Ordering::SeqCst);
        }
        String::from_utf8(shown).unwrap()
    });
    let connections = hosts.sshd.connections();
    // What one has said that ended too early is told below.
    let mut ended = || {
        [&mut caller, &mut attached]
            .into_iter()
            .any(|one| one.child().try_wait().unwrap().is_some())
    };
    for round in 1..=cuts {
        let more = || connections.count() >= 2 * round;
        until("two connections more", || (more() || ended()).then_some(()));
        // Both in the middle of a stream: one that is never there gives up after a while.
        let copied = || fs::metadata(copy.join("consoles/1/uart0.raw")).map_or(0, |it| it.len());
        let had = (copied(), seen.load(Ordering::SeqCst));
        until("more of the console", || {
            let more = copied() > had.0 && seen.load(Ordering::SeqCst) > had.1;
            (more || ended()).then_some(())
        });
        if ended() {
            eprintln!("a caller has ended in round {round}");
            break;
        }
        connections.cut();
    }
    let last = || connections.count() >= 2 * cuts + 2;
    until("the last connections", || (last() || ended()).then_some(()));
    let mut cancel = hosts.call(&["runs", "cancel", &run]);
    crate::workshop::ran(&mut cancel).unwrap().says(0, &[]);
    let (caller, attached) = (caller.finish(), attached.finish());
    let told = told.map(|told| String::from_utf8(told.join().unwrap()).unwrap()).join("\n");
    assert_eq!((caller.code(), attached.code()), (130, 130), "{caller}\n{attached}\n{told}");
    let whole_out = String::from_utf8(whole_out.join().unwrap()).unwrap();
    assert_eq!(shown.join().unwrap(), whole_out, "both have shown the whole console");
    let record: Value =
        serde_json::from_slice(&fs::read(copy.join("record.json")).unwrap()).unwrap();
    assert_eq!(record["verdict"]["kind"], "cancelled");
    assert!(files(&copy) == files(&hosts.rig.runs().join(&run)), "the copy differs");
    // Each `jig rpc` ends with its connection.
    hosts.rig.nothing_lives(Duration::from_secs(60)).unwrap();
}
