//! `jig console`: a pipe to a board, and a line at a time.

use std::io::{Read as _, Write as _};
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::manifest::elf;
use crate::workshop::{DEADLINE, Ran, Slot, Started, Workshop};

/// A user at a console.
struct Talk {
    run: Started,
    keys: Option<ChildStdin>,
    screen: Receiver<Vec<u8>>,
    seen: Vec<u8>,
    /// What was already waited for.
    read: usize,
}

impl Talk {
    fn begin(workshop: &Workshop, board: &str, more: &[&str]) -> Self {
        let image = elf(board, "shell");
        let args = ["console", "-b", board, "--image", &image];
        let mut command = workshop.jig(args.iter().chain(more));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut run = Started::of(&mut command);
        let keys = run.child().stdin.take();
        let mut out = run.child().stdout.take().unwrap();
        let (show, screen) = channel();
        thread::spawn(move || {
            let mut buf = [0; 4096];
            while let Ok(len @ 1..) = out.read(&mut buf) {
                if show.send(buf[..len].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { run, keys, screen, seen: Vec::new(), read: 0 }
    }

    fn send(&mut self, bytes: &[u8]) {
        let keys = self.keys.as_mut().unwrap();
        keys.write_all(bytes).unwrap();
        keys.flush().unwrap();
    }

    /// Waits for bytes behind those that were waited for before.
    #[track_caller]
    fn expect(&mut self, wanted: &[u8]) {
        loop {
            let rest = &self.seen[self.read..];
            if let Some(at) = rest.windows(wanted.len()).position(|window| window == wanted) {
                self.read += at + wanted.len();
                return;
            }
            match self.screen.recv_timeout(DEADLINE) {
                Ok(bytes) => self.seen.extend(bytes),
                Err(error) => panic!(
                    "{} did not come ({error}); after {}",
                    wanted.escape_ascii(),
                    self.seen.escape_ascii()
                ),
            }
        }
    }

    /// Ends the input and waits for the program's end; returns all that was shown.
    fn hang_up(mut self) -> (Ran, Vec<u8>) {
        drop(self.keys.take());
        let ran = self.run.finish();
        self.seen.extend(self.screen.iter().flatten());
        (ran, self.seen)
    }
}

#[test]
fn a_raw_console_passes_every_byte() {
    for board in ["microbit", "riscv32-virt"] {
        let _slot = Slot::take();
        let workshop = Workshop::new();
        let mut talk = Talk::begin(&workshop, board, &["--raw"]);
        talk.expect(b"jig> ");
        talk.send(b"ver\r");
        talk.expect(b"ver\r\nshell 1.4.2\r\njig> ");
        // Every byte but those that end a line, and NUL, which ends a text for the shell; as
        // many as its line holds. Among them is what ends a session on a terminal.
        let all: Vec<u8> = (1..=255).filter(|byte| !b"\r\n".contains(byte)).collect();
        for bytes in all.chunks(60) {
            let (echoed, answered) =
                ([b"echo ", bytes, b"\r\n"].concat(), [bytes, b"\r\njig> "].concat());
            talk.send(&[b"echo ", bytes, b"\r"].concat());
            talk.expect(&echoed);
            talk.expect(&answered);
        }
        let (ran, seen) = talk.hang_up();
        ran.says(0, &[]);
        assert!(workshop.processes().is_empty());
        // What was shown is what was logged, to the byte.
        let log = std::fs::read(workshop.run_dirs()[0].join("consoles/1/uart0.raw")).unwrap();
        assert_eq!(seen.escape_ascii().to_string(), log.escape_ascii().to_string());
    }
}

#[test]
fn a_line_console_is_safe_and_ends_lines_as_told() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let mut talk = Talk::begin(&workshop, "microbit", &["--line-end", "cr"]);
    talk.expect(b"jig> ");
    talk.send(b"ver\n");
    talk.expect(b"shell 1.4.2");
    talk.expect(b"jig> ");
    talk.send(b"echo \x1b[2J\n");
    talk.expect(b"\\x1b[2J");
    talk.expect(b"jig> ");
    let (ran, seen) = talk.hang_up();
    ran.says(0, &[]);
    assert!(!seen.contains(&0x1b), "{}", seen.escape_ascii());
}

#[test]
fn the_end_of_the_input_ends_it() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("microbit", "shell");
    // Nothing to read at all.
    let ran = workshop.run(["console", "-b", "microbit", "--image", &image]);
    ran.says(0, &[]);
    assert!(ran.out().contains("jig> "), "what the board says is shown all the same: {ran}");
    // All of it at once: the answers are shown before the end.
    let mut talk = Talk::begin(&workshop, "microbit", &[]);
    talk.send(b"ver\ntest\n");
    let (ran, seen) = talk.hang_up();
    ran.says(0, &[]);
    let seen = String::from_utf8(seen).unwrap();
    assert!(seen.contains("shell 1.4.2") && seen.contains("2 Tests 0 Failures"), "{seen}");
}
