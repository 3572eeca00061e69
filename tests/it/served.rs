//! An emulated board that `jig probe serve` keeps running, for the verbs that need one.

use std::io::{BufRead as _, BufReader};
use std::process::{ChildStdout, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::workshop::{DEADLINE, Ran, Started, Workshop, until};

/// A server; killed when dropped.
pub(crate) struct Served<'w> {
    workshop: &'w Workshop,
    server: Started,
    board: String,
    /// The first line it printed: its selector, or with `--json` a document.
    pub(crate) selector: String,
    printed: Arc<Mutex<Vec<u8>>>,
}

impl<'w> Served<'w> {
    /// Starts a server and waits until it says by which selector.
    pub(crate) fn start(workshop: &'w Workshop, board: &str, more: &[&str]) -> Self {
        let mut command = workshop.jig(["probe", "serve", "-b", board]);
        command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = Started::of(&mut command);
        let (selector, mut out) = first_line(&mut server);
        let printed = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&printed);
        // Ends with the server, which is killed at the latest when this is dropped.
        thread::spawn(move || {
            loop {
                let some = match out.fill_buf() {
                    Ok([]) | Err(_) => return,
                    Ok(some) => some.to_vec(),
                };
                out.consume(some.len());
                kept.lock().unwrap_or_else(PoisonError::into_inner).extend(some);
            }
        });
        if selector.is_empty() {
            panic!("nothing is served: {}", server.finish());
        }
        Self { workshop, server, board: board.to_owned(), selector, printed }
    }

    /// Returns the server's process id.
    pub(crate) fn pid(&mut self) -> u32 {
        self.server.child().id()
    }

    /// Returns what the board has printed so far.
    pub(crate) fn printed(&self) -> String {
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&printed).into_owned()
    }

    /// Waits until the board has printed a text.
    pub(crate) fn prints(&self, text: &str) {
        until(&format!("the board's {text:?}"), || self.printed().contains(text).then_some(()));
    }

    /// Calls a verb for this board.
    pub(crate) fn verb(&self, verb: &[&str], args: &[&str]) -> Ran {
        let board = ["-b", self.board.as_str()];
        self.workshop.run(verb.iter().chain(&board).chain(args))
    }

    /// Calls a verb that must succeed, and returns the JSON it prints.
    #[track_caller]
    pub(crate) fn json(&self, verb: &[&str], args: &[&str]) -> Value {
        let verb: Vec<&str> = ["--json"].iter().chain(verb).copied().collect();
        let ran = self.verb(&verb, args);
        ran.says(0, &[]);
        ran.json().unwrap()
    }

    /// Returns the value of a register.
    #[track_caller]
    pub(crate) fn register(&self, name: &str) -> u64 {
        let registers = self.json(&["regs"], &[name]);
        registers["registers"][0]["value"].as_u64().unwrap()
    }

    /// Sends the server a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        self.server.signal(signal);
    }

    /// Asks the server to end, and waits for its end and that of all it started.
    pub(crate) fn stop(self) -> Ran {
        self.server.signal(Signal::SIGINT);
        self.ended()
    }

    /// Waits for the server's end and that of all it started.
    pub(crate) fn ended(self) -> Ran {
        let ran = self.server.finish();
        self.workshop.nothing_lives(DEADLINE).unwrap();
        ran
    }
}

/// Waits for the first line that a child prints, which is empty if it ends without one; the
/// rest is in the reader.
pub(crate) fn first_line(child: &mut Started) -> (String, BufReader<ChildStdout>) {
    let out = child.child().stdout.take().unwrap();
    let (told, first) = mpsc::channel();
    thread::spawn(move || {
        let mut out = BufReader::new(out);
        let mut line = Vec::new();
        let _ = out.read_until(b'\n', &mut line);
        let _ = told.send((String::from_utf8_lossy(&line).trim_end().to_owned(), out));
    });
    // If the test fails here, the child is dropped, which kills it and so ends the thread.
    first.recv_timeout(DEADLINE).expect("a first line")
}

/// Reads bytes of memory out of the JSON of `jig mem read`.
#[track_caller]
pub(crate) fn bytes_of(json: &Value) -> Vec<u8> {
    let hex = json["bytes"].as_str().unwrap();
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}
