//! A console that is reached by SSH: a real server, a real client, a real board behind both.

use std::fs;
use std::io::{Read, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::manifest::elf;
use crate::serial::Bench;
use crate::sshd::{OPEN, Sshd};
use crate::workshop::until;

/// The first case of the report.
const CASE: &str = "test_starts_empty:PASS";

/// A server of a board's serial output for one client at a time. No output is lost, as on a
/// transport.
struct ConsoleServer {
    now: Arc<Mutex<Option<UnixStream>>>,
}

impl ConsoleServer {
    fn start(path: &Path) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let now = Arc::<Mutex<Option<UnixStream>>>::default();
        let current = Arc::clone(&now);
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut now = current.lock().unwrap_or_else(PoisonError::into_inner);
                let greeted = writeln!(stream, "{OPEN}");
                *now = greeted.is_ok().then_some(stream);
            }
        });
        Self { now }
    }

    /// Passes a board's output on, and does something when a text has first come through.
    fn pass(self, mut board: impl Read, text: &str, mut then: impl FnMut()) {
        let (mut seen, mut done, mut some) = (Vec::new(), false, [0; 1 << 10]);
        loop {
            // The board's end is the end of the test.
            let Ok(count @ 1..) = board.read(&mut some) else { return };
            for &byte in &some[..count] {
                let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
                if now.as_mut().is_some_and(|stream| stream.write_all(&[byte]).is_err()) {
                    *now = None;
                }
                drop(now);
                seen.push(byte);
                if !done && seen.ends_with(text.as_bytes()) {
                    done = true;
                    then();
                }
            }
        }
    }
}

#[test]
fn a_session_that_is_cut_in_the_middle_of_a_report_is_made_again_and_passes() {
    let bench = Bench::of(|workshop| {
        let (sshd, port) = (Sshd::start(workshop), workshop.path("port"));
        let console = ConsoleServer::start(&port);
        let transport = sshd.transport(&format!("exec socat - UNIX-CONNECT:{}", port.display()));
        let (runs, connections) = (workshop.runs(), sshd.connections());
        let cut = move || {
            until("the text in the run's log", || {
                let run = fs::read_dir(&runs).ok()?.flatten().next()?.path();
                let raw = fs::read_to_string(run.join("consoles/1/uart0.raw")).ok()?;
                raw.contains(CASE).then_some(())
            });
            connections.cut();
        };
        (transport, |board| console.pass(board, CASE, cut))
    });
    let image = elf("microbit", "unity-pass");
    let run = |more: &[&str]| {
        let args = ["--json", "run", "-b", "bench", &image, "--timeout", "4m"];
        let ran = bench.workshop.run(args.iter().chain(more));
        ran.says(0, &["the rig works again, by reopen"]);
        let document = ran.json().unwrap();
        let first = &document["attempts"][0];
        assert_eq!((&first["cause"], &first["replaced"]), (&"output_lost".into(), &true.into()));
        assert!(first["summary"].as_str().unwrap().contains("transport, away for "), "{ran}");
        document
    };
    run(&[]);
    let raw = fs::read_to_string(bench.run_dir().unwrap().join("consoles/1/uart0.raw")).unwrap();
    assert!(raw.starts_with("jig-fixture unity-pass on microbit\n"), "{raw}");
    assert!(!raw.contains("3 Tests"), "{raw}");
    // The same from this end: what reaches the console is killed.
    let document = run(&["--inject", "ssh-drop@0s"]);
    let note = document["verdict"]["notes"][0].as_str().unwrap();
    assert!(note.starts_with("injected ssh-drop@0s: killed what reaches the console"), "{note}");
    until("the end of each client and what it has started", || {
        let all = bench.workshop.processes();
        let left = |line: &str| line.starts_with("ssh ") || line.starts_with("socat ");
        all.iter().all(|(_, line)| !left(line)).then_some(())
    });
}
