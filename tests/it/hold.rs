//! `jig hold`: one board that the verbs of several terminals reach, in any order and at once.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::manifest::elf;
use crate::served::first_line;
use crate::workshop::{DEADLINE, Ran, Slot, Started, Workshop, until};

/// A board that `jig hold` keeps powered; killed when dropped.
pub(crate) struct Held<'w> {
    workshop: &'w Workshop,
    board: &'static str,
    pub(crate) holder: Started,
    events: BufReader<ChildStdout>,
    /// The first event.
    pub(crate) held: Value,
}

impl<'w> Held<'w> {
    #[track_caller]
    fn start(workshop: &'w Workshop, board: &'static str, fixture: &str) -> Self {
        Self::with(workshop, board, &["--image", &elf(board, fixture)])
    }

    /// Holds the board of a place, with further arguments.
    #[track_caller]
    pub(crate) fn with(workshop: &'w Workshop, board: &'static str, more: &[&str]) -> Self {
        let mut command = workshop.jig(["--json", "hold", "-b", board]);
        command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut holder = Started::of(&mut command);
        let (line, events) = first_line(&mut holder);
        if line.is_empty() {
            panic!("nothing is held: {}", holder.finish());
        }
        let held = serde_json::from_str(&line).unwrap();
        Self { workshop, board, holder, events, held }
    }

    /// Calls a verb for this board.
    pub(crate) fn verb(&self, verb: &[&str], args: &[&str]) -> Ran {
        self.workshop.run(verb.iter().chain(&["-b", self.board]).chain(args))
    }

    /// Waits for the holder's next event.
    fn event(&mut self) -> Value {
        let mut line = String::new();
        self.events.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Starts a verb that lasts.
    pub(crate) fn session(&self, verb: &[&str], args: &[&str]) -> Session {
        let mut command = self.workshop.jig(verb.iter().chain(&["-b", self.board]).chain(args));
        Session::begin(&mut command)
    }

    /// Releases the board; nothing of it is left.
    #[track_caller]
    pub(crate) fn release(self, signal: Signal) {
        self.holder.signal(signal);
        self.holder.finish().says(0, &[]);
        self.workshop.nothing_lives(DEADLINE).unwrap();
    }
}

/// A verb that shows what comes, and takes what is typed.
pub(crate) struct Session {
    pub(crate) process: Started,
    keys: Option<ChildStdin>,
    shown: Receiver<Vec<u8>>,
    all: Vec<u8>,
    /// What was already waited for.
    read: usize,
}

impl Session {
    pub(crate) fn begin(command: &mut std::process::Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Started::of(command);
        let keys = process.child().stdin.take();
        let mut out = process.child().stdout.take().unwrap();
        let (show, shown) = channel();
        // Ends with the session, at the latest when that is dropped.
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(len @ 1..) = out.read(&mut bytes) {
                if show.send(bytes[..len].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { process, keys, shown, all: Vec::new(), read: 0 }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let keys = self.keys.as_mut().unwrap();
        keys.write_all(bytes).unwrap();
        keys.flush().unwrap();
    }

    /// Waits for a text behind those that were waited for before.
    #[track_caller]
    pub(crate) fn expect(&mut self, wanted: &str) {
        loop {
            let rest = &self.all[self.read..];
            if let Some(at) = rest.windows(wanted.len()).position(|at| at == wanted.as_bytes()) {
                self.read += at + wanted.len();
                return;
            }
            match self.shown.recv_timeout(DEADLINE) {
                Ok(bytes) => self.all.extend(bytes),
                Err(error) => panic!("{wanted:?}: {error} after {}", self.all.escape_ascii()),
            }
        }
    }

    /// Ends the input and waits for the end.
    pub(crate) fn hang_up(mut self) -> Ran {
        drop(self.keys.take());
        self.process.finish()
    }
}

#[test]
fn a_script_at_a_raw_console_reads_the_banner_of_a_reset_by_another_script() {
    for board in ["microbit", "riscv32-virt"] {
        let _slot = Slot::take();
        let workshop = Workshop::new();
        let held = Held::start(&workshop, board, "shell");
        let wanted = json!({
            "event": "held", "place": board, "consoles": ["uart0", "semihosting"],
            "debug": board == "microbit",
        });
        assert_eq!(held.held, wanted);
        let mut console = held.session(&["console", "--raw"], &[]);
        // An answer proves that it is attached.
        console.send(b"ver\r");
        console.expect("shell 1.4.2");
        held.verb(&["reset"], &[]).says(0, &[]);
        console.expect(&format!("jig-fixture shell on {board}"));
        console.expect("jig> ");
        console.send(b"ver\r");
        console.expect("shell 1.4.2");
        // A second user reads; the right to send is the first one's until it is taken.
        held.verb(&["console"], &[]).says(75, &["--listen-only", "--take"]);
        let read = held.verb(&["console", "--listen-only", "--since", "1h"], &[]);
        assert_eq!(read.out().matches("jig-fixture shell").count(), 2, "{read}");
        let mut reader = held.session(&["console", "--raw", "--listen-only", "--follow"], &[]);
        let mut second = held.session(&["console", "--raw", "--take"], &[]);
        // A script that may not send any more is told so.
        console.process.finish().says(75, &["input is not sent any more"]);
        second.send(b"echo second\r");
        second.expect("second\r\nsecond\r\n");
        second.hang_up().says(0, &[]);
        held.verb(&["reset"], &[]).says(0, &[]);
        reader.expect("jig-fixture shell");
        reader.process.signal(Signal::SIGINT);
        reader.process.finish().says(0, &[]);
        held.release(Signal::SIGINT);
    }
}

#[test]
fn a_held_board_is_flashed_and_debugged_beside_its_console() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let held = Held::start(&workshop, "microbit", "rtt-echo");
    let image = elf("microbit", "rtt-echo");
    let mut console = held.session(&["console", "--raw", "--listen-only", "--follow"], &[]);
    let mut rtt = held.session(&["rtt"], &["--elf", &image]);
    rtt.expect("rtt-echo ready");
    rtt.send(b"one\n");
    rtt.expect("one\n");
    // RTT goes on behind resets, and beside what stops the core for a moment.
    for word in ["two", "three"] {
        let reset = held.verb(&["--json", "reset"], &[]);
        reset.says(0, &[]);
        assert_eq!(reset.json().unwrap()["core"]["state"], "running", "{reset}");
        console.expect("ok 1");
        rtt.expect("rtt-echo ready");
        let bt = held.verb(&["bt"], &["--elf", &image]);
        assert!(bt.says(0, &[]).out().contains("fixture_main"), "{bt}");
        rtt.send(format!("{word}\n").as_bytes());
        rtt.expect(word);
    }
    // A server for GDB and a debug port for other tools, at the same time.
    let mut gdb = held.session(&["gdb"], &[]);
    gdb.expect("127.0.0.1:");
    let mut probe = held.session(&["probe", "serve"], &[]);
    probe.expect("20b7:9db1:unix:");
    held.verb(&["probe", "serve"], &[]).says(75, &["is served already"]);
    let probes = workshop.run(["--json", "probes"]);
    assert_eq!(probes.json().unwrap()["probes"][0]["place"], "microbit", "{probes}");
    held.verb(&["probe", "serve", "--image", &image], &[]).says(2, &["jig flash -b microbit"]);
    for server in [gdb, probe] {
        server.process.signal(Signal::SIGINT);
        let code = server.process.finish().code();
        assert!([0, 130].contains(&code), "{code}");
    }
    assert_eq!(workshop.run(["--json", "probes"]).json().unwrap(), json!({"probes": []}));
    // What is halted stays so for the next verb, and a session that ends does not let it run.
    held.verb(&["halt"], &[]).says(0, &[]);
    rtt.process.signal(Signal::SIGINT);
    rtt.process.finish().says(0, &[]);
    let state = |verb| held.verb(&["--json", verb], &[]).json().unwrap()["core"]["state"].clone();
    let pc = || held.verb(&["--json", "regs"], &["pc"]).json().unwrap()["registers"].clone();
    assert_eq!(pc(), pc());
    assert_eq!(state("resume"), "running");
    // Another image: the console shows it without a new start.
    held.verb(&["flash"], &[&elf("microbit", "unity-pass")]).says(0, &[]);
    console.expect("3 Tests 0 Failures");
    console.process.signal(Signal::SIGINT);
    console.process.finish();
    held.release(Signal::SIGTERM);
    // The flash outlives the holder.
    let reached = workshop.run(
        ["bp", "-b", "microbit", "uart_put", "--reset"]
            .map(str::to_owned)
            .into_iter()
            .chain(["--image".to_owned(), elf("microbit", "unity-pass")]),
    );
    reached.says(0, &[]);
}

#[test]
fn a_firmware_that_ends_its_board_is_started_again_by_a_reset() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let mut held = Held::start(&workshop, "microbit", "exit-one");
    let ended = held.event();
    assert_eq!((&ended["event"], &ended["place"]), (&json!("ended"), &json!("microbit")));
    assert!(ended["why"].as_str().unwrap().contains("code 1"), "{ended}");
    held.verb(&["bt"], &[]).says(1, &["has no power any more", "jig reset -b microbit"]);
    let mut console = held.session(&["console", "--raw", "--listen-only", "--follow"], &[]);
    held.verb(&["flash"], &[&elf("microbit", "shell")]).says(0, &[]);
    console.expect("jig-fixture shell");
    held.verb(&["regs"], &[]).says(0, &[]);
    console.process.signal(Signal::SIGINT);
    console.process.finish();
    // Sessions end in order when the board is released.
    let mut rtt = held.session(&["probe", "serve"], &[]);
    rtt.expect("20b7:9db1:unix:");
    held.release(Signal::SIGINT);
    rtt.process.finish().says(0, &[]);
}

#[test]
fn one_process_holds_a_board_and_a_killed_one_leaves_nothing() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let held = Held::start(&workshop, "microbit", "shell");
    let image = elf("microbit", "shell");
    let second = workshop.run(["hold", "-b", "microbit", "--image", &image]);
    second.says(75, &["is in use by jig", "hold -b microbit", "--wait 30s"]);
    assert_eq!(second.out(), "");
    // A run has an emulator of its own.
    let run = workshop.run(["run", "-b", "microbit", &elf("microbit", "unity-pass")]);
    run.says(0, &[]);
    let mut console = held.session(&["console", "--raw"], &[]);
    console.send(b"ver\r");
    console.expect("shell 1.4.2");
    held.holder.signal(Signal::SIGKILL);
    console.send(b"ver\r");
    until("the end of the emulator", || workshop.emulators().is_empty().then_some(()));
    let left = console.hang_up();
    assert_ne!(left.code(), 70, "{left}");
    held.verb(&["reset"], &[]).says(2, &["no process keeps it running"]);
    let again = Held::start(&workshop, "microbit", "shell");
    again.verb(&["reset"], &[]).says(0, &[]);
    again.release(Signal::SIGINT);
    let cases = [
        (&["hold", "-b", "riscv32-virt"][..], 2, "--image APP.elf"),
        (&["hold", "-b", "microbit", "--image", "none.elf"], 2, "none.elf"),
        (&["hold", "-b", "microbut"], 2, "did you mean"),
    ];
    for (args, code, words) in cases {
        workshop.run(args).says(code, &[words]);
    }
}

#[test]
fn a_board_without_a_debug_port_says_so_while_it_is_held() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let held = Held::start(&workshop, "riscv32-virt", "shell");
    held.verb(&["bt"], &[]).says(3, &["[emulation.debug]"]);
    let mut console = held.session(&["console", "--raw"], &[]);
    console.send(b"ver\r");
    console.expect("shell 1.4.2");
    let flashed = held.verb(&["--json", "flash"], &[&elf("riscv32-virt", "unity-pass")]);
    flashed.says(0, &[]);
    assert_eq!(flashed.json().unwrap()["method"], "emulator-loader", "{flashed}");
    console.expect("3 Tests 0 Failures");
    let reset = held.verb(&["--json", "reset"], &[]);
    let wanted = json!({"place": "riscv32-virt", "method": "emulator"});
    assert_eq!(reset.json().unwrap(), wanted, "{reset}");
    console.expect("3 Tests 0 Failures");
    console.hang_up().says(0, &[]);
    held.release(Signal::SIGINT);
}
