//! Text for the events of a run, for sizes and for console lines.

use jig_model::event::BoardEvent;
use jig_model::protocol::PowerState;
use jig_model::result::CaseStatus;
use jig_model::{Purpose, RunEvent};

use crate::render::{Style, one_line, repair_words};

/// Longest line that is shown, in characters. The raw log has the rest.
const MAX_LINE: usize = 1000;

/// Cuts an escaped line.
pub(super) fn cut(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE) {
        None => line.to_owned(),
        Some((at, _)) => format!("{} [...]", &line[..at]),
    }
}

/// An event as the time line shows it.
pub(super) struct Words {
    /// The source of the event.
    pub(super) source: &'static str,
    /// What is said: harmless, one line.
    pub(super) text: String,
    /// How it stands out.
    pub(super) style: Option<Style>,
}

/// Says an event.
pub(super) fn words(event: &RunEvent) -> Words {
    let (source, text, style) = match event {
        RunEvent::AttemptStarted { attempt, purpose, .. } => {
            let what = match purpose {
                Purpose::Test => "",
                Purpose::Canary => ": the known-good image",
                Purpose::Restore => ": the test's own image is put back",
            };
            ("run", format!("attempt {attempt} begins{what}"), Some(Style::Bold))
        }
        RunEvent::Deployed(report) => {
            let text =
                format!("{} by {} (sha256 {:.12})", report.image, report.method, report.sha256);
            ("deploy", text, None)
        }
        RunEvent::Injected { fault, detail } => {
            ("inject", format!("{fault}: {detail}"), Some(Style::Bad))
        }
        RunEvent::Board(event) => ("board", board(event), Some(Style::Warn)),
        RunEvent::Boot { boot, offset } => {
            ("board", format!("boot {boot}, at byte {offset} of the primary console"), None)
        }
        RunEvent::Workflow { from, trigger, to, refused } => {
            let (refused, style) =
                if *refused { (" REFUSED", Style::Bad) } else { ("", Style::Dim) };
            ("flow", format!("{from} -> {to} by {trigger}{refused}"), Some(style))
        }
        RunEvent::ActionStarted { path, what } => ("plan", format!("{path}: {what}"), None),
        RunEvent::ActionEnded { path, failed, detail, duration_ms } => {
            let outcome = match failed {
                Some(cause) => format!("failed ({cause})"),
                None => "done".to_owned(),
            };
            let style = failed.map(|_| Style::Bad);
            ("plan", format!("{path}: {outcome} in {duration_ms} ms: {detail}"), style)
        }
        RunEvent::FormatFound { format } => ("test", format!("format {}", format.as_str()), None),
        RunEvent::Case { name, status } => {
            let (word, style) = match status {
                CaseStatus::Pass => ("pass", Style::Good),
                CaseStatus::Fail => ("fail", Style::Bad),
                CaseStatus::Skip => ("skip", Style::Warn),
                CaseStatus::Unfinished => ("unfinished", Style::Warn),
            };
            ("test", format!("{word} {name}"), Some(style))
        }
        RunEvent::Recognised { cause, console, start, end, text } => {
            ("watch", format!("{cause} on {console} @{start}..{end}: {text}"), Some(Style::Bad))
        }
        RunEvent::Gap { console, at, lost, reason } => {
            let lost = lost.map_or("some".to_owned(), |lost| lost.to_string());
            ("watch", format!("{lost} bytes of {console} lost at {at}: {reason}"), Some(Style::Bad))
        }
        RunEvent::Garbled { console, at, count } => {
            let text = format!("{count} characters of {console} garbled before {at}");
            ("watch", text, Some(Style::Bad))
        }
        RunEvent::Health(report) => {
            let (word, style) = if report.ok { ("ok", None) } else { ("BAD", Some(Style::Bad)) };
            ("health", format!("{} {word}: {}", report.check, report.detail), style)
        }
        RunEvent::TargetCommand { argv, end, console, from, to } => {
            ("target", format!("{argv:?}: {end}, output in {console} @{from}..{to}"), None)
        }
        RunEvent::FileCopied { to_target, path, file, copied } => {
            let way = if *to_target { "to" } else { "from" };
            let text = format!("{} bytes {way} {path}, here {file}", copied.bytes);
            ("target", text, None)
        }
        RunEvent::HostCommand { argv, code, artefact } => {
            let code = code.map_or("no exit code".to_owned(), |code| format!("exit code {code}"));
            ("host", format!("{argv:?}: {code}, output in {artefact}"), None)
        }
        RunEvent::PostMortem { artefact, report } => {
            ("debug", format!("{} (more in {artefact})", report.summary), Some(Style::Bad))
        }
        RunEvent::AttemptEnded { attempt, verdict } => {
            let text = format!(
                "attempt {attempt}: {} ({}): {}",
                verdict.kind, verdict.cause, verdict.summary
            );
            ("verdict", text, Some(Style::Bold))
        }
        RunEvent::Recovery(event) => {
            let (text, style) = repair_words(event);
            ("recovery", text, Some(style))
        }
        RunEvent::Note { text } => ("note", text.clone(), None),
    };
    Words { source, text: cut(&one_line(&text)), style }
}

fn board(event: &BoardEvent) -> String {
    match event {
        BoardEvent::Power { state: PowerState::On } => "power on".to_owned(),
        BoardEvent::Power { state: PowerState::Off } => "power off".to_owned(),
        BoardEvent::Deploying { percent } => format!("{percent} % deployed"),
        BoardEvent::TakenOver { console, file, offset } => format!(
            "the transport of {console} was taken over from jig serve, whose log stood at {offset} of \
             file {file}"
        ),
        BoardEvent::Attached { attempts, method, failures } => {
            let failed = failures.join("; ");
            format!("the probe answered at attempt {attempts} ({method}); before: {failed}")
        }
        BoardEvent::Injected { fault, detail } => format!("injected {fault}: {detail}"),
        BoardEvent::Forwarded { port, address } => format!("port {port} is at {address}"),
        BoardEvent::ReadBack { sha256 } => format!("read back (payload sha256 {sha256:.12})"),
        BoardEvent::Reset { by_target: true, reason } => format!("reset itself ({reason})"),
        BoardEvent::Reset { by_target: false, reason } => format!("was reset ({reason})"),
        BoardEvent::Stood { ms, stopped: true } => format!("was stopped for {ms} ms"),
        BoardEvent::Stood { ms, stopped: false } => format!("got no processor for {ms} ms"),
        BoardEvent::Watchdog { action } => format!("watchdog fired: {action}"),
        BoardEvent::GuestPanic { detail } => format!("the target panicked: {detail}"),
        BoardEvent::TargetExit { code } => format!("the target ended with exit code {code}"),
        BoardEvent::Lockup { detail } => format!("the processor locked up: {detail}"),
        BoardEvent::Aborted { detail } => format!("ended by what it cannot execute: {detail}"),
        BoardEvent::Lost { cause, detail } => format!("lost ({cause}): {detail}"),
    }
}
