//! What is typed on standard input, as input of a command.

use std::io::{self, IsTerminal as _, Read as _};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

use crate::args::ConsoleArgs;
use crate::render::Screen;

/// Ends a raw session on a terminal: Ctrl-], as in telnet.
const ESCAPE: u8 = 0x1d;

/// Most bytes read at once.
const MOST_READ: usize = 16 << 10;

/// Sends what is read; none once the input has ended.
type SharedSender = Arc<Mutex<Option<mpsc::Sender<Vec<u8>>>>>;

/// Standard input on its way to a console.
pub(super) struct TypedInput {
    raw: bool,
    line_end: &'static [u8],
    sender: SharedSender,
    terminal: Mutex<Option<RawTerminal>>,
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TypedInput {
    /// Reads nothing yet.
    pub(super) fn new(args: &ConsoleArgs) -> Self {
        let (raw, line_end) = (args.raw, args.line_end.bytes());
        Self { raw, line_end, sender: SharedSender::default(), terminal: Mutex::default() }
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
        let is_terminal = io::stdin().is_terminal();
        if is_terminal && self.raw {
            *lock(&self.terminal) = Some(RawTerminal::enter()?);
            screen.say(&format!("{state}; Ctrl-] ends\r"));
        } else if is_terminal {
            screen.say(&format!("{state}; each line is sent when you press enter; Ctrl-D ends"));
        }
        let (sender, raw, line_end) = (Arc::clone(&self.sender), self.raw, self.line_end);
        let escape = is_terminal.then_some(ESCAPE);
        // A thread, because a blocking read cannot be taken back; it ends with the process.
        std::thread::spawn(move || {
            read_input(|bytes| {
                let (bytes, end) = translate(bytes, raw, escape, line_end);
                let sender = lock(&sender).clone();
                sender.is_some_and(|sender| sender.blocking_send(bytes).is_ok()) && !end
            });
            lock(&sender).take();
        });
        Ok(())
    }

    /// Ends the input unless it is that of a person, who may read on.
    pub(super) fn end_if_piped(&self) {
        if !io::stdin().is_terminal() {
            lock(&self.sender).take();
        }
    }

    /// Ends the raw mode of the terminal.
    pub(super) fn restore_terminal(&self) {
        lock(&self.terminal).take();
    }
}

/// Converts what was typed into what is sent; tells whether the user wants to end.
fn translate(bytes: &[u8], raw: bool, escape: Option<u8>, line_end: &[u8]) -> (Vec<u8>, bool) {
    if raw {
        let end = bytes.iter().position(|&byte| Some(byte) == escape);
        return (bytes[..end.unwrap_or(bytes.len())].to_vec(), end.is_some());
    }
    let mut sent = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        if byte == b'\n' {
            sent.extend_from_slice(line_end);
        } else {
            sent.push(byte);
        }
    }
    (sent, false)
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
        assert_eq!(translate(b"a\x1db", true, Some(ESCAPE), b"\r"), (b"a".to_vec(), true));
        assert_eq!(translate(b"a\x1d\n", true, None, b"\r"), (b"a\x1d\n".to_vec(), false));
        assert_eq!(translate(b"a\n\nb", false, None, b"\r\n"), (b"a\r\n\r\nb".to_vec(), false));
    }
}
