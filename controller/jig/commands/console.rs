//! `jig console`: boots a board and connects it to this terminal or pipe, or attaches to one
//! whose console is kept ([`attach`]).

mod attach;

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jig_model::event::BoardEvent;
use jig_model::exit;
use jig_model::plan::console_plan;
use jig_model::{ConsoleName, Fault, RunEvent, RunId, VerdictKind};
use jig_rig::console::{ConsoleHandle, Escaper, Follow};
use jig_rig::session::{Observer, SessionRequest};
use jig_rig::workflow::CancelToken;
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use tokio::sync::{mpsc, watch};

use self::attach::Attach;
use super::open_lab;
use super::session::session;
use crate::args::{Common, ConsoleArgs};
use crate::failure::Failure;
use crate::render::{Screen, show_verdict};

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
    let plan = console_plan(args.image.is_some());
    let request = SessionRequest {
        // Whoever talks to a board sees what becomes of it.
        max_recoveries: Some(0),
        canary: None,
        ..lab.request(&place.name, plan, args.image)?
    };
    let terminal = args.raw.then(RawTerminal::enter).transpose()?.flatten();
    if terminal.is_some() {
        screen.say("connected; Ctrl-] ends\r");
    } else if !args.raw && std::io::stdin().is_terminal() {
        screen.say("connected; each line is sent when you press enter; Ctrl-D ends");
    }
    let (handles, handle) = watch::channel(None);
    let (cancels, cancel) = watch::channel(None);
    let (boots, booted) = watch::channel(false);
    let observer = Arc::new(Bridge { wanted, handles, boots, cancel });
    let pipe = Pipe { raw: args.raw, terminal: terminal.is_some(), line_end, handle, booted };
    let outcome = session(
        &lab,
        screen,
        request,
        Vec::new(),
        observer,
        |cancel| {
            cancels.send_replace(Some(cancel.clone()));
            tokio::spawn(pipe.run(cancel));
        },
        || (),
    );
    drop(terminal);
    let record = outcome?.record;
    match record.verdict.as_ref().map(|v| v.kind) {
        // Ending the session is how it should end.
        Some(VerdictKind::Cancelled | VerdictKind::Pass) | None => Ok(exit::PASS),
        Some(_) => {
            show_verdict(screen, &record);
            Ok(record.exit_code.unwrap_or(exit::BUG))
        }
    }
}

/// Tells the pipe of the console, and ends the session when the board goes off.
struct Bridge {
    wanted: ConsoleName,
    handles: watch::Sender<Option<ConsoleHandle>>,
    boots: watch::Sender<bool>,
    cancel: watch::Receiver<Option<CancelToken>>,
}

impl Observer for Bridge {
    fn began(&self, run: &RunId, _dir: &Path) {
        tracing::info!(%run, "console session");
    }

    fn event(&self, event: &RunEvent) {
        match event {
            RunEvent::Boot { .. } => drop(self.boots.send_replace(true)),
            RunEvent::Board(BoardEvent::TargetExit { .. }) => {
                if let Some(cancel) = self.cancel.borrow().as_ref() {
                    cancel.cancel();
                }
            }
            _ => {}
        }
    }

    fn console(&self, console: &ConsoleName, handle: &ConsoleHandle) {
        if *console == self.wanted {
            self.handles.send_replace(Some(handle.clone()));
        }
    }
}

/// Moves bytes between this process and a console.
struct Pipe {
    raw: bool,
    terminal: bool,
    line_end: &'static [u8],
    handle: watch::Receiver<Option<ConsoleHandle>>,
    /// Whether the target runs.
    booted: watch::Receiver<bool>,
}

impl Pipe {
    async fn run(mut self, cancel: CancelToken) {
        let handle = match self.handle.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(handle)) => handle.clone(),
            _ => return,
        };
        let (input, mut typed) = mpsc::channel(4);
        // A thread, because a blocking read cannot be taken back; it ends with the process.
        std::thread::spawn(move || read_input(&input));
        let mut state = handle.state();
        // What is typed before the board has a wire would go nowhere.
        let wired = state.wait_for(|s| s.attached || s.closed).await.is_ok();
        let (raw, out) = (self.raw, handle.clone());
        let shown = tokio::task::spawn_blocking(move || {
            tokio::runtime::Handle::current().block_on(show(&out, raw))
        });
        while let Some(bytes) = typed.recv().await.filter(|_| wired) {
            let (bytes, end) = translate(bytes, self.raw, self.terminal, self.line_end);
            if handle.send(bytes).await.is_err() || end {
                cancel.cancel();
                break;
            }
        }
        if !self.terminal && !std::io::stdin().is_terminal() {
            self.quiet(&handle).await;
        }
        cancel.cancel();
        let _ = shown.await;
    }

    /// Waits until the target has run and printed nothing for a while.
    async fn quiet(&mut self, handle: &ConsoleHandle) {
        let (mut state, mut end) = (handle.state(), handle.state());
        // A board that only now gets its power is quiet for another reason.
        tokio::select! {
            _ = self.booted.wait_for(|booted| *booted) => {}
            _ = end.wait_for(|s| s.closed) => {}
        }
        while let Ok(Ok(())) = tokio::time::timeout(QUIET, state.changed()).await {}
    }
}

/// RetryPolicy what was typed into what is sent; tells whether the user wants to end.
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

fn read_input(input: &mpsc::Sender<Vec<u8>>) {
    let mut stdin = std::io::stdin().lock();
    let mut buf = vec![0; STRIDE];
    loop {
        match stdin.read(&mut buf) {
            Ok(0) | Err(_) => return,
            Ok(len) => {
                if input.blocking_send(buf[..len].to_vec()).is_err() {
                    return;
                }
            }
        }
    }
}

/// Shows a console until it is closed or nobody reads.
async fn show(handle: &ConsoleHandle, raw: bool) {
    let Ok(mut follower) = handle.follow(0, 0) else { return };
    let mut state = handle.state();
    let (mut buf, mut escaper) = (vec![0; STRIDE], Escaper::default());
    loop {
        match follower.next(&mut buf).await {
            Ok(Follow::Bytes { len, .. }) => {
                let mut out = std::io::stdout().lock();
                let written = match raw {
                    true => out.write_all(&buf[..len]),
                    false => out.write_all(escaper.escape(&buf[..len]).as_bytes()),
                };
                if written.and_then(|()| out.flush()).is_err() {
                    return;
                }
            }
            Ok(Follow::Ended { .. }) => {
                let seen = follower.cursor();
                let more = state.wait_for(|s| s.len > seen || s.closed).await.map(|s| s.len > seen);
                if !matches!(more, Ok(true)) {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

/// A terminal in raw mode; restored when dropped.
struct RawTerminal(Termios);

impl RawTerminal {
    /// Enters raw mode if standard input is a terminal.
    fn enter() -> Result<Option<Self>, Failure> {
        let stdin = std::io::stdin();
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
        let _ = tcsetattr(std::io::stdin().as_fd(), SetArg::TCSANOW, &self.0);
    }
}
