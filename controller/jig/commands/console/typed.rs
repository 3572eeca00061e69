//! What is typed on standard input, as input of a command.

use std::io::{self, IsTerminal as _, Read as _};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jig_model::Fault;
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

use crate::args::{ConsoleArgs, LineEnd, RawMode};
use crate::failure::Failure;
use crate::render::Screen;

/// Ends a raw session on a terminal: Ctrl-], as in telnet.
const ESCAPE: u8 = 0x1d;

/// Most bytes read at once.
const MOST_READ: usize = 16 << 10;

/// Sends what is read; none once the input has ended.
type SharedSender = Arc<Mutex<Option<mpsc::Sender<Vec<u8>>>>>;

/// Standard input on its way to a console.
pub(super) struct TypedInput {
    raw: Option<RawMode>,
    /// What a line feed is replaced by, if anything.
    line_end: Option<&'static [u8]>,
    is_terminal: bool,
    sender: SharedSender,
    terminal: Mutex<Option<RawTerminal>>,
    /// Why not all of it was sent.
    lost: Mutex<Option<Failure>>,
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TypedInput {
    /// Reads nothing yet.
    pub(super) fn new(args: &ConsoleArgs) -> Self {
        let line_end = match (args.raw, args.line_end) {
            (None, None) => Some(LineEnd::Lf),
            (_, said) => said,
        };
        Self {
            raw: args.raw,
            line_end: line_end.map(LineEnd::bytes),
            is_terminal: io::stdin().is_terminal(),
            sender: SharedSender::default(),
            terminal: Mutex::default(),
            lost: Mutex::default(),
        }
    }

    /// Returns the input of a command; an earlier one has ended.
    pub(super) fn receiver(&self) -> mpsc::Receiver<Vec<u8>> {
        let (sender, receiver) = mpsc::channel(4);
        *lock(&self.sender) = Some(sender);
        receiver
    }

    /// Begins to read, and says how the session in this state is ended.
    ///
    /// # Errors
    /// The terminal cannot be set to raw mode.
    pub(super) fn begin(&self, screen: &Screen, state: &str) -> nix::Result<()> {
        let mut escape = None;
        match self.raw {
            _ if !self.is_terminal => {}
            Some(RawMode::Terminal) => {
                *lock(&self.terminal) = Some(RawTerminal::enter()?);
                escape = Some(ESCAPE);
                screen.say(&format!("{state}; Ctrl-] ends\r"));
            }
            Some(RawMode::Bytes) => {}
            None => {
                screen
                    .say(&format!("{state}; each line is sent when you press enter; Ctrl-D ends"));
            }
        }
        let (sender, line_end) = (Arc::clone(&self.sender), self.line_end);
        // A thread, because a blocking read cannot be taken back; it ends with the process.
        std::thread::spawn(move || {
            read_input(|bytes| {
                let (bytes, end) = translate(bytes, escape, line_end);
                let sender = lock(&sender).clone();
                sender.is_some_and(|sender| sender.blocking_send(bytes).is_ok()) && !end
            });
            lock(&sender).take();
        });
        Ok(())
    }

    /// Notes that not all of the input was sent, and ends it, unless it comes from a terminal,
    /// whose user may read on. Returns whether it was noted.
    pub(super) fn note_loss(&self, fault: Fault, words: &str) -> bool {
        if self.is_terminal {
            return false;
        }
        lock(&self.lost).get_or_insert_with(|| Failure::new(fault, words));
        lock(&self.sender).take();
        true
    }

    /// Returns why not all of the input was sent, if that was noted.
    pub(super) fn take_loss(&self) -> Option<Failure> {
        lock(&self.lost).take()
    }

    /// Tells whether standard input is a pipe or file whose end was not read yet.
    pub(super) fn is_open_pipe(&self) -> bool {
        !self.is_terminal && lock(&self.sender).is_some()
    }

    /// Tells whether standard input is a pipe or a file.
    pub(super) fn is_piped(&self) -> bool {
        !self.is_terminal
    }

    /// Tells whether the terminal is in raw mode.
    pub(super) fn is_raw(&self) -> bool {
        lock(&self.terminal).is_some()
    }

    /// Ends the raw mode of the terminal.
    pub(super) fn restore_terminal(&self) {
        lock(&self.terminal).take();
    }
}

/// Converts what was typed into what is sent; tells whether the user wants to end.
fn translate(bytes: &[u8], escape: Option<u8>, line_end: Option<&[u8]>) -> (Vec<u8>, bool) {
    let end = bytes.iter().position(|&byte| Some(byte) == escape);
    let typed = &bytes[..end.unwrap_or(bytes.len())];
    let Some(line_end) = line_end else { return (typed.to_vec(), end.is_some()) };
    let mut sent = Vec::with_capacity(typed.len());
    for &byte in typed {
        match byte {
            b'\n' => sent.extend_from_slice(line_end),
            byte => sent.push(byte),
        }
    }
    (sent, end.is_some())
}

/// Reads standard input until it ends, or what is read is not wanted any more.
fn read_input(mut wanted: impl FnMut(&[u8]) -> bool) {
    let mut stdin = io::stdin().lock();
    let mut buf = vec![0; MOST_READ];
    loop {
        match stdin.read(&mut buf) {
            Ok(0) | Err(_) => return,
            Ok(len) if wanted(&buf[..len]) => {}
            Ok(_) => return,
        }
    }
}

/// A terminal in raw mode; restored when dropped.
struct RawTerminal(Termios);

impl RawTerminal {
    /// Sets the terminal on standard input to raw mode.
    fn enter() -> nix::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(stdin.as_fd())?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(stdin.as_fd(), SetArg::TCSANOW, &raw)?;
        Ok(Self(before))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin().as_fd(), SetArg::TCSANOW, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_session_ends_at_its_escape_and_lines_end_as_told() {
        assert_eq!(translate(b"a\x1db", Some(ESCAPE), None), (b"a".to_vec(), true));
        assert_eq!(translate(b"a\x1d\n", None, None), (b"a\x1d\n".to_vec(), false));
        let (lines, crlf) = (b"a\n\nb", b"a\r\n\r\nb".to_vec());
        assert_eq!(translate(lines, None, Some(b"\r\n")), (crlf, false));
    }
}
