//! `jig console`: connects this terminal or pipe to a console, which is captured, used by a run, or
//! that of a board booted for it.

mod typed;
mod view;

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::time::Duration;

use jig_model::command::{CommandEvent, EventSink, InputLoss, Reply};
use jig_model::protocol::LineControl;
use jig_model::{ConsoleName, Fault, VerdictKind, exit};
use jig_rig::console::escape;
use jig_rig::workflow::CancelToken;
use serde_json::json;
use tokio::sync::mpsc;

use self::typed::TypedInput;
use self::view::ConsoleView;
use super::execute::ended_run;
use super::rig::{OpenRig, stopped};
use super::runtime::until_signalled;
use crate::args::{Common, ConsoleArgs, RawMode};
use crate::failure::Failure;
use crate::render::{Screen, show_verdict};

/// After the end of piped input the session ends when the target has run and been quiet for
/// this long, so that `echo help | jig console ...` shows the answer.
const QUIET: Duration = Duration::from_secs(1);

/// Connects a console.
///
/// JSON of an attached console: a line for each entry of its logs, `{"at","file","offset","text"}`
/// of the capture service and `{"at","run","attempt","offset","text"}` of a run; instead of the text
/// `"gap","lost"` or `"garbled"`. JSON of a controlled line: `{"place","console","done"}`.
pub(crate) fn console(common: &Common, screen: &Screen, args: ConsoleArgs) -> Result<u8, Failure> {
    if let (Some(RawMode::Terminal), Some(_)) = (args.raw, args.line_end) {
        let words = "--line-end has no effect with --raw, which passes keys as they are typed";
        return Err(Failure::new(Fault::Usage, words).help("use --raw=bytes, or no --raw"));
    }
    let rig = OpenRig::open(common)?;
    let quiet = if io::stdin().is_terminal() { Duration::ZERO } else { QUIET };
    let typed = Arc::new(TypedInput::new(&args));
    // Within one runtime, because a connection to a rig elsewhere ends with its runtime.
    let reply = until_signalled(async |cancel| {
        let wanted = match &args.console {
            Some(console) => console.clone(),
            None => tokio::select! {
                found = rig.primary_console(&args.target.board) => found?,
                () = cancel.cancelled() => return Err(stopped()),
            },
        };
        if let Some(command) = args.line_command(&wanted) {
            let ((_, none), events) = (mpsc::channel(1), Arc::new(LineEvents(screen.clone())));
            return rig.execute(command, none, events, cancel).await;
        }
        let older = args.shows_older(io::stdin().is_terminal(), io::stdout().is_terminal());
        let command = args.console_command(&wanted, quiet, older);
        let events = Arc::new(Session::new(screen, &args, &wanted, &typed, cancel.clone()));
        let (shown, input) = (Arc::clone(&events), typed.receiver());
        let ended = rig.execute(command, input, events, cancel).await;
        shown.view.finish();
        ended
    });
    typed.restore_terminal();
    let code = match reply? {
        Reply::Ended(_) => exit::PASS,
        reply => show_run(&rig, screen, reply)?,
    };
    // A pipe that was not read to its end must not look like a session that went well.
    match typed.take_loss() {
        Some(loss) if code == exit::PASS => Err(loss),
        _ => Ok(code),
    }
}

fn show_run(rig: &OpenRig, screen: &Screen, reply: Reply) -> Result<u8, Failure> {
    let (_, record) = ended_run(rig, screen, reply)?;
    match record.verdict.as_ref().map(|v| v.kind) {
        // Ending the session is how it should end.
        Some(VerdictKind::Cancelled | VerdictKind::Pass) | None => Ok(exit::PASS),
        Some(_) => {
            show_verdict(screen, &record);
            Ok(record.exit_code.unwrap_or(exit::BUG))
        }
    }
}

/// A console that is shown, and typed into.
struct Session {
    screen: Screen,
    wanted: ConsoleName,
    typed: Arc<TypedInput>,
    view: ConsoleView,
    cancel: CancelToken,
}

impl Session {
    fn new(
        screen: &Screen,
        args: &ConsoleArgs,
        wanted: &ConsoleName,
        typed: &Arc<TypedInput>,
        cancel: CancelToken,
    ) -> Self {
        let (screen, wanted, typed) = (screen.clone(), wanted.clone(), Arc::clone(typed));
        let view = ConsoleView::new(&screen, args.raw);
        Self { screen, wanted, typed, view, cancel }
    }

    /// Begins to read what is typed.
    fn begin(&self, state: &str) {
        if let Err(error) = self.typed.begin(&self.screen, state) {
            self.screen.insist(&format!("cannot set the terminal to raw mode: {error}"));
            self.cancel.cancel();
        }
    }

    /// Says that input is not sent: to a person at once, and for piped input as the failure of the
    /// session, which ends.
    fn lost(&self, fault: Fault, words: &str) {
        let words = escape(words.as_bytes());
        if !self.typed.note_loss(fault, &words) {
            let end = if self.typed.is_raw() { "\r" } else { "" };
            self.screen.insist(&format!("{words}{end}"));
        }
    }
}

impl EventSink for Session {
    fn event(&self, event: CommandEvent) {
        match event {
            CommandEvent::ConsoleAttached { sends: true, .. } => self.begin("attached"),
            CommandEvent::ConsoleLog(event) => {
                self.view.show(event);
                if self.screen.closed() {
                    self.cancel.cancel();
                }
            }
            CommandEvent::InputFailed { why } => {
                self.lost(Fault::Lab, &format!("not all of the input was sent: {why}"));
            }
            CommandEvent::InputLost { loss } => {
                let (fault, why) = match &loss {
                    InputLoss::Lent { by } => {
                        let words = format!("{by} has the transport; what is typed goes nowhere");
                        self.screen.say(&escape(words.as_bytes()));
                        // It matters only if there is any.
                        if self.typed.is_piped() {
                            self.begin("attached");
                        }
                        return;
                    }
                    InputLoss::Taken { by } => (Fault::Lab, format!("{by} may send now")),
                    InputLoss::ServiceEnded => (Fault::Lab, "jig serve has ended".to_owned()),
                    InputLoss::FirmwareEnded => {
                        let words = "not all of the input was sent: the firmware ended";
                        return self.lost(Fault::Unknown, words);
                    }
                    InputLoss::Failed { why } => (Fault::Lab, why.clone()),
                };
                // Piped input that has been sent to its end loses nothing.
                if !self.typed.is_piped() || self.typed.is_open_pipe() {
                    self.lost(fault, &format!("input is not sent any more: {why}"));
                }
            }
            CommandEvent::RunBegan { .. } => {
                self.begin("connected");
                self.screen.event(event);
            }
            CommandEvent::Console { console, log } if console == self.wanted => {
                self.view.follow(&console, &log);
            }
            other => self.screen.event(other),
        }
    }
}

/// Shows what was done to a serial line.
struct LineEvents(Screen);

impl EventSink for LineEvents {
    fn event(&self, event: CommandEvent) {
        let Self(screen) = self;
        match event {
            CommandEvent::LineControlled { place, console, done } if screen.json() => {
                screen.out_json(&json!({ "place": place, "console": console, "done": done }));
            }
            CommandEvent::LineControlled { done, .. } => screen.say(match done {
                LineControl::Break => "a break was sent",
                LineControl::Dtr(true) => "DTR is on",
                LineControl::Dtr(false) => "DTR is off",
                LineControl::Rts(true) => "RTS is on",
                LineControl::Rts(false) => "RTS is off",
            }),
            other => screen.event(other),
        }
    }
}
