//! The drain: reading on after a plan has failed, before the board is switched off.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use jig_model::protocol::HealthCheck;
use jig_model::{Cause, RunEvent};
use tokio::time::{Instant, timeout, timeout_at};

use super::abort_condition::exit;
use super::board::AttemptBoard;
use super::failed_results::read_some;
use crate::console::FaultReasons;
use crate::console::lines::{MAX_LINE, lossy, plain};
use crate::judge::{ByteRange, Incident, IncidentKind};

/// A fault handler prints its registers at once; quiet for this long means that it is done.
const QUIET: Duration = Duration::from_millis(50);

/// A handler that goes on printing is read no longer than this: a register dump and a
/// backtrace of 4 KiB take 0.4 s on a serial line at 115200 baud.
const TIMEOUT: Duration = Duration::from_secs(1);

/// How long one health check may take; each has its own, shorter limit.
const HEALTH: Duration = Duration::from_secs(10);

/// How long a failed check waits for the news that the target has ended by itself.
const EXIT: Duration = Duration::from_millis(500);

/// Longest line of a fault that a verdict quotes.
const LINE: usize = 200;

/// Bytes that are read of a fault: its line, and the lines among which its reason is.
const READ: usize = 2 * MAX_LINE;

/// Waits until a fault handler has finished printing: the output after the banner explains the
/// crash.
pub(super) async fn drain(board: &AttemptBoard) {
    let faulted = board.facts().incidents.iter().any(is_fault);
    let Some(line) = board.lines.get(&board.primary).filter(|_| faulted) else { return };
    let mut state = line.handle.state();
    let deadline = Instant::now() + TIMEOUT;
    // Silence, the end of the transport and the timeout each end it.
    while let Ok(Ok(Ok(()))) = timeout_at(deadline, timeout(QUIET, state.changed())).await {}
}

fn is_fault(incident: &Incident) -> bool {
    matches!(incident.kind, IncidentKind::Recognised(Cause::FaultBanner | Cause::GuestPanic))
}

/// Runs the health checks before the target is blamed: a wait that ran out on a stopped machine
/// says nothing about the firmware.
pub(super) async fn check_health(board: &Arc<AttemptBoard>, checks: &mut [Box<dyn HealthCheck>]) {
    if !board.facts().on() {
        return;
    }
    for check in checks {
        let Ok(report) = timeout(HEALTH, check.check()).await else { continue };
        board.emit(RunEvent::Health(report.clone()));
        if !report.ok {
            // The emulator of a target that has just ended answers no check.
            if timeout(EXIT, exit(board)).await.is_ok() {
                return;
            }
            let text = format!("{}: {}", report.check, report.detail);
            let range = ByteRange { text, ..ByteRange::default() };
            board.incident(IncidentKind::Lost(check.cause()), range);
        }
    }
}

/// Extends a recognised text to its whole line, and to the line behind it that says why.
pub(super) fn complete_line(
    log: &File,
    range: &mut ByteRange,
    reasons: &FaultReasons,
) -> io::Result<()> {
    let mut bytes = vec![0; READ];
    let len = read_some(log, &mut bytes, range.start)?;
    let bytes = &bytes[..len];
    let end = bytes.iter().position(|&b| matches!(b, b'\n' | b'\r')).unwrap_or(len);
    let end = end.min(MAX_LINE);
    let known = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(len);
    if end > known || end == MAX_LINE {
        range.end = range.start + end as u64;
        range.text = quoted(&lossy(&plain(&bytes[..end])));
    }
    if let Some((end, reason)) = reasons.find(bytes) {
        range.end = range.end.max(range.start + end as u64);
        let colon = if range.text.ends_with(':') { "" } else { ":" };
        range.text = format!("{}{colon} {}", range.text, quoted(&reason));
    }
    Ok(())
}

/// Tells whether an incident is text on a console. A boot loop and a flood have a text of their own.
pub(super) fn shows_line(incident: &Incident) -> bool {
    let Incident { kind: IncidentKind::Recognised(cause), range } = incident else { return false };
    !matches!(cause, Cause::BootLoop | Cause::OutputFlood) && !range.file.is_empty()
}

fn quoted(line: &str) -> String {
    let line = line.trim_ascii_end();
    line[..line.floor_char_boundary(LINE)].to_owned()
}
