//! `jig console`: boots a board and connects it to this terminal or pipe, or attaches to one
//! whose console is kept ([`attach`]).

mod attach;

use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;

use jig_model::command::{Command, CommandEvent, ConsoleCommand, EventSink};
use jig_model::{ConsoleName, Fault, VerdictKind, exit};
use jig_rig::console::Escaper;
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

use self::attach::Attach;
use super::execute::{ended_run, until_signalled};
use super::open_lab;
use crate::args::{Common, ConsoleArgs, ms};
use crate::failure::Failure;
use crate::render::{LogPrinter, LogViews, Screen, show_verdict};

/// Ends a raw session on a terminal: Ctrl-], as in telnet.
const ESCAPE: u8 = 0x1d;

/// After the end of the input the session ends when the target has run and been quiet for
/// this long, so that `echo help | jig console ...` shows the answer.
const QUIET: Duration = Duration::from_secs(1);

/// Bytes moved at once.
const STRIDE: usize = 16 << 10;

/// Connects a console.
pub(crate) fn console(common: &Common, screen: &Screen, args: ConsoleArgs) -> Result<u8, Failure> {
    let lab = open_lab(common)?;
    let (place, profile) = lab.catalogue().place(&args.target.board)?;
    let wanted = args.console.clone().unwrap_or_else(|| profile.primary_console().clone());
    if !profile.consoles.iter().any(|c| c.name == wanted) {
        let known: Vec<_> = profile.consoles.iter().map(|c| c.name.to_string()).collect();
        let message = format!("board {} has no console {wanted}", profile.id);
        return Err(
            Failure::new(Fault::Usage, message).help(format!("it has: {}", known.join(", ")))
        );
    }
    if args.image.is_none() {
        let (place, console) = (&place.name, &wanted);
        let at = Attach { screen, catalogue: lab.catalogue(), place, console, args: &args };
        if let Some(code) = at.attach()? {
            return Ok(code);
        }
    }
    let line_end = args.line_end.bytes();
    let terminal = args.raw.then(RawTerminal::enter).transpose()?.flatten();
    if terminal.is_some() {
        screen.say("connected; Ctrl-] ends\r");
    } else if !args.raw && io::stdin().is_terminal() {
        screen.say("connected; each line is sent when you press enter; Ctrl-D ends");
    }
    let quiet = if io::stdin().is_terminal() { Duration::ZERO } else { QUIET };
    let command = Command::Console(ConsoleCommand {
        place: place.name,
        image: args.image,
        console: Some(wanted.clone()),
        quiet_ms: ms(quiet),
    });
    let view =
        Arc::new(View { screen: screen.clone(), raw: args.raw, wanted, logs: LogViews::default() });
    let typed = Typed { raw: args.raw, terminal: terminal.is_some(), line_end };
    let (events, input) = (Arc::clone(&view), typed.read());
    let reply = until_signalled(async |cancel| {
        Ok(lab.execute_with_input(command, input, events, cancel).await?)
    });
    view.logs.finish();
    drop(terminal);
    let (_, record) = ended_run(&lab, screen, reply?)?;
    match record.verdict.as_ref().map(|v| v.kind) {
        // Ending the session is how it should end.
        Some(VerdictKind::Cancelled | VerdictKind::Pass) | None => Ok(exit::PASS),
        Some(_) => {
            show_verdict(screen, &record);
            Ok(record.exit_code.unwrap_or(exit::BUG))
        }
    }
}

/// Shows one console, and what happens beside the run.
struct View {
    screen: Screen,
    raw: bool,
    wanted: ConsoleName,
    logs: LogViews,
}

impl EventSink for View {
    fn event(&self, event: CommandEvent) {
        match event {
            CommandEvent::Console { console, log } if console == self.wanted => {
                let escaper = (!self.raw).then(Escaper::default);
                self.logs.show(&console, &log, Bytes(escaper));
            }
            other => self.screen.event(other),
        }
    }
}

/// Writes a log to standard output, escaped if there is an escaper.
struct Bytes(Option<Escaper>);

impl LogPrinter for Bytes {
    fn print(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        match &mut self.0 {
            None => out.write_all(bytes)?,
            Some(escaper) => out.write_all(escaper.escape(bytes).as_bytes())?,
        }
        out.flush()
    }
}

/// How what is typed is sent.
#[derive(Clone, Copy)]
struct Typed {
    raw: bool,
    terminal: bool,
    line_end: &'static [u8],
}

impl Typed {
    /// Reads standard input until it ends or the user does. A thread, because a blocking read
    /// cannot be taken back; it ends with the process.
    fn read(self) -> mpsc::Receiver<Vec<u8>> {
        let (input, typed) = mpsc::channel(4);
        std::thread::spawn(move || {
            read_input(|bytes| {
                let (bytes, end) = translate(bytes, self.raw, self.terminal, self.line_end);
                input.blocking_send(bytes).is_ok() && !end
            });
        });
        typed
    }
}

/// Converts what was typed into what is sent; tells whether the user wants to end.
fn translate(bytes: Vec<u8>, raw: bool, terminal: bool, line_end: &[u8]) -> (Vec<u8>, bool) {
    if raw {
        let end = bytes.iter().position(|&b| terminal && b == ESCAPE);
        return (bytes[..end.unwrap_or(bytes.len())].to_vec(), end.is_some());
    }
    let mut sent = Vec::with_capacity(bytes.len());
    for byte in bytes {
        if byte == b'\n' {
            sent.extend_from_slice(line_end);
        } else {
            sent.push(byte);
        }
    }
    (sent, false)
}

/// Reads standard input until it ends, or what is read is not wanted any more.
fn read_input(mut wanted: impl FnMut(Vec<u8>) -> bool) {
    let mut stdin = io::stdin().lock();
    let mut buf = vec![0; STRIDE];
    loop {
        match stdin.read(&mut buf) {
            Ok(0) | Err(_) => return,
            Ok(len) if wanted(buf[..len].to_vec()) => {}
            Ok(_) => return,
        }
    }
}

/// A terminal in raw mode; restored when dropped.
struct RawTerminal(Termios);

impl RawTerminal {
    /// Enters raw mode if standard input is a terminal.
    fn enter() -> Result<Option<Self>, Failure> {
        let stdin = io::stdin();
        if !stdin.is_terminal() {
            return Ok(None);
        }
        let failed = |error: nix::Error| {
            Failure::new(Fault::Lab, format!("cannot set the terminal to raw mode: {error}"))
        };
        let before = tcgetattr(stdin.as_fd()).map_err(failed)?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(stdin.as_fd(), SetArg::TCSANOW, &raw).map_err(failed)?;
        Ok(Some(Self(before)))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin().as_fd(), SetArg::TCSANOW, &self.0);
    }
}
