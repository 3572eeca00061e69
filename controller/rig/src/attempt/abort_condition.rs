//! Abort conditions: when a wait ends early because the board is gone or the target has failed.
//!
//! # Design
//! Only the wait ends early; the judge sees the same observation as after the full time. A closed
//! console ends every wait. A console that is quiet after lost bytes ends it, because such an
//! attempt cannot pass. A console that is quiet after garbage ends it in the first attempt only;
//! the retry has its full time. An emulator's console has garbage only where its transport reports it.

use std::future::pending;
use std::time::Duration;

use jig_model::{Cause, ConsoleName};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::board::{AttemptBoard, WatcherProgress};
use crate::judge::{Incident, IncidentKind};
use crate::workflow::ActionFailure;

/// How long a target that reset itself is still watched: long enough to tell one reset
/// from a loop (an emulated boot takes 5 to 50 ms, a board's well under a second).
const LINGER: Duration = Duration::from_secs(1);

/// How many resets by the target make a boot loop when the board tells of each.
///
/// Where resets cannot be seen, the profile's boot banner and limit decide.
const LOOP_RESETS: usize = 3;

/// Returns when something has happened that makes every wait pointless.
pub(super) async fn abort_condition(board: &AttemptBoard) -> ActionFailure {
    let mut changes = board.changes();
    let mut linger = None;
    loop {
        changes.borrow_and_update();
        if let Some(failure) = found(board) {
            return failure;
        }
        let resets = board.facts().incidents.iter().filter(|i| is_reset(i)).count();
        if resets >= LOOP_RESETS {
            return on_resets(board, Cause::BootLoop);
        }
        if resets > 0 && linger.is_none() {
            linger = Some(Instant::now() + LINGER);
        }
        match linger {
            None => drop(changes.changed().await),
            Some(until) => tokio::select! {
                _ = changes.changed() => {}
                () = sleep_until(until) => return on_resets(board, Cause::UnexpectedReset),
            },
        }
    }
}

/// How long a console has to be quiet after a gap or garbage before nothing more is expected of it.
/// A target that pauses longer between two lines prints them again in the next attempt.
pub(super) const QUIET: Duration = Duration::from_secs(2);

/// Returns when a console has been quiet for a while after lost bytes, or after garbage in an
/// attempt that is retried because of it.
pub(super) async fn quiet_in_vain(
    board: &AttemptBoard,
    console: &ConsoleName,
    mut progress: watch::Receiver<WatcherProgress>,
) {
    let Some(line) = board.lines.get(console) else { return pending().await };
    let mut state = line.handle.state();
    loop {
        let (gap, reported) = {
            let state = state.borrow_and_update();
            (state.gaps > 0 && state.away.is_none() && state.attached, state.garbled > 0)
        };
        let doubtful = board.again && (reported || !board.emulated);
        let garbled = progress.borrow_and_update().garbled && doubtful;
        let quiet = async {
            if gap || garbled { sleep_until(Instant::now() + QUIET).await } else { pending().await }
        };
        // Errors mean that the capture or its watcher has ended, which is reported elsewhere.
        tokio::select! {
            changed = state.changed() => if changed.is_err() { pending().await },
            changed = progress.changed() => if changed.is_err() { pending().await },
            () = quiet => return,
        }
    }
}

/// Returns what has happened already that makes every wait pointless.
pub(super) fn found(board: &AttemptBoard) -> Option<ActionFailure> {
    let facts = board.facts();
    // A loss comes first in any order of reports: after it nothing is tried again.
    let losses = facts.incidents.iter().filter(|i| matches!(i.kind, IncidentKind::Lost(_)));
    losses.chain(&facts.incidents).find_map(fatal)
}

/// Returns the same, apart from what the log of a console shows: that is judged at the end.
pub(super) fn found_beside(board: &AttemptBoard, file: &str) -> Option<ActionFailure> {
    let facts = board.facts();
    let beside = |incident: &&Incident| {
        !matches!(incident.kind, IncidentKind::Recognised(_)) || incident.range.file != file
    };
    facts.incidents.iter().filter(beside).find_map(fatal)
}

/// Returns why the target can do nothing more in this boot, if it ended by itself.
pub(super) fn ended(board: &AttemptBoard) -> Option<ActionFailure> {
    found(board).or_else(|| {
        let code = board.facts().exit?;
        let detail = format!("the target had ended by itself (code {code})");
        Some(ActionFailure::new(Cause::ExpectMissed, detail))
    })
}

fn is_reset(incident: &Incident) -> bool {
    incident.kind == IncidentKind::Reset
}

fn fatal(incident: &Incident) -> Option<ActionFailure> {
    let cause = match incident.kind {
        IncidentKind::Lost(cause) | IncidentKind::Recognised(cause) => cause,
        IncidentKind::Lockup => Cause::Lockup,
        IncidentKind::Aborted => Cause::TargetAborted,
        IncidentKind::GuestPanic => Cause::GuestPanic,
        IncidentKind::Watchdog => Cause::WatchdogReset,
        // An exit may end a report as it should; the action that waits for the report decides.
        IncidentKind::Reset | IncidentKind::Exit(_) => return None,
    };
    Some(ActionFailure {
        cause,
        detail: incident.range.text.clone(),
        evidence: vec![incident.range.evidence()],
    })
}

/// Records a single reset or a boot loop for the judge.
fn on_resets(board: &AttemptBoard, cause: Cause) -> ActionFailure {
    let facts = board.facts();
    let resets: Vec<_> = facts.incidents.iter().filter(|i| is_reset(i)).cloned().collect();
    drop(facts);
    let detail = match cause {
        Cause::BootLoop => format!("the target reset itself {} times", resets.len()),
        _ => "the target reset itself".to_owned(),
    };
    let evidence: Vec<_> = resets.iter().map(|i| i.range.evidence()).collect();
    if let Some(last) = resets.last() {
        let mut range = last.range.clone();
        range.text.clone_from(&detail);
        board.incident(IncidentKind::Recognised(cause), range);
    }
    ActionFailure { cause, detail, evidence }
}

/// Waits until the target has ended this boot by itself; returns its exit code.
pub(super) async fn exit(board: &AttemptBoard) -> i32 {
    let mut changes = board.changes();
    loop {
        changes.borrow_and_update();
        let code = board.facts().exit;
        match code {
            Some(code) => return code,
            None => drop(changes.changed().await),
        }
    }
}
