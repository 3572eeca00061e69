//! Test reports: waiting for one.

use std::sync::Arc;
use std::time::Duration;

use jig_model::{Cause, ConsoleName};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::Actions;
use crate::attempt::abort_condition::{abort_condition, exit, found, quiet_in_vain};
use crate::attempt::board::{AttemptBoard, REASON, WatcherProgress};
use crate::attempt::board_timeout::BoardTimeout;
use crate::attempt::facts::Observed;
use crate::judge::ByteRange;
use crate::workflow::ActionFailure;

/// Bytes of the last output that a failure quotes: about three lines.
const QUOTE: u64 = 200;

/// The ends of reports that one wait has seen.
///
/// A target that prints complete reports one after the other does not hang: it leaves no moment at
/// which one of them is the last.
#[derive(Debug, Default)]
pub(in crate::attempt) struct ReportEnds {
    count: u32,
    last: Option<Instant>,
    /// The longest time from one to the next.
    longest: Duration,
}

impl ReportEnds {
    /// Fewest of them that are a repetition: a report may go on behind what looks like its end.
    const LEAST: u32 = 3;

    fn add(&mut self) {
        let now = Instant::now();
        if let Some(last) = self.last.replace(now) {
            self.longest = self.longest.max(now - last);
        }
        self.count += 1;
    }

    /// Tells whether the next one is not late yet.
    fn go_on(&self, settle: Duration) -> bool {
        let since = self.last.map(|last| last.elapsed());
        self.count >= Self::LEAST
            && since.is_some_and(|since| since <= self.longest.saturating_mul(2) + settle)
    }
}

/// What ended a wait for results.
enum ReportEnd {
    Marker,
    Exit(i32),
    Overdue,
    /// The report cannot pass any more, and nothing more is expected that would fail it.
    InVain,
}

/// Waits until a report of this boot has ended beyond the first `old`, or will not.
async fn report_end(
    board: &AttemptBoard,
    mut progress: watch::Receiver<WatcherProgress>,
    (boots, old): (usize, u32),
    board_timeout: &BoardTimeout,
) -> Result<ReportEnd, ActionFailure> {
    let in_vain = quiet_in_vain(board, &board.results, progress.clone());
    let ended = async {
        let ended = progress.wait_for(|p| p.boots >= boots && p.ended && p.reports > old).await;
        ended.is_ok()
    };
    tokio::select! {
        biased;
        failure = abort_condition(board) => Err(failure),
        ended = ended => if ended { Ok(ReportEnd::Marker) } else { Err(unread()) },
        code = exit(board) => Ok(ReportEnd::Exit(code)),
        () = board_timeout.run_out(board) => Ok(ReportEnd::Overdue),
        () = in_vain => Ok(ReportEnd::InVain),
    }
}

/// Returns the failure of a wait whose watcher has ended; the watcher reports the cause itself.
fn unread() -> ActionFailure {
    ActionFailure::new(Cause::StorageFailed, "the reader of the console's log has ended")
}

impl Actions<'_> {
    /// Waits for the end of a report. Results that follow it while the target is watched
    /// mean that it was not the end: the wait goes on, independent of timing.
    pub(super) async fn wait_for_results(
        &mut self,
        timeout: Duration,
    ) -> Result<String, ActionFailure> {
        let board = Arc::clone(&self.board);
        let boots = board.boots();
        let board_timeout = BoardTimeout::new(&board, timeout);
        let began = Instant::now();
        // A report that an earlier wait of this boot has consumed does not count again.
        let old = if self.heard.0 == boots { self.heard.1 } else { 0 };
        self.ends = ReportEnds::default();
        loop {
            self.run_on().await?;
            match report_end(&board, self.progress(), (boots, old), &board_timeout).await? {
                ReportEnd::Overdue => {
                    let missed = self.overdue(timeout);
                    return Err(board_timeout.judged(&board, missed));
                }
                ReportEnd::InVain => {
                    let waited = began.elapsed().as_millis();
                    let waited = Duration::from_millis(u64::try_from(waited).unwrap_or(u64::MAX));
                    return Err(self.hang(waited));
                }
                ReportEnd::Exit(code) => {
                    self.looked_at_everything().await?;
                    self.hear();
                    return Ok(format!("the target ended with code {code}"));
                }
                ReportEnd::Marker => self.ends.add(),
            }
            let mut progress = self.progress();
            let reports = progress.borrow_and_update().reports;
            let goes_on = |p: &WatcherProgress| !p.ended || p.reports > reports;
            let mut later = progress.clone();
            self.settled = false;
            tokio::select! {
                biased;
                // A report that is repeated without end never ends the wait.
                Ok(_) = later.wait_for(goes_on) => if board_timeout.is_over(&board) {
                    let missed = self.overdue(timeout);
                    return Err(board_timeout.judged(&board, missed));
                },
                settled = self.settle_behind_output() => {
                    settled?;
                    // The last bytes before the board was halted may have begun another report.
                    if goes_on(&progress.borrow()) && !board_timeout.is_over(&board) {
                        continue;
                    }
                    self.hear();
                    return Ok("end marker seen".to_owned());
                }
            }
        }
    }

    fn progress(&self) -> watch::Receiver<WatcherProgress> {
        self.watched[&self.board.results].clone()
    }

    /// Records that the plan has got a report in this boot, so that it counts.
    fn hear(&mut self) {
        let WatcherProgress { boots, reports, .. } = *self.progress().borrow();
        self.heard = (boots, reports);
        self.board.report(Observed::Heard { boot: boots });
    }

    /// Waits until the watchers have read all that the target, which has ended or is halted, has
    /// printed, and know of each crash whether it counts; fails with what they found in it.
    pub(super) async fn looked_at_everything(&mut self) -> Result<(), ActionFailure> {
        let board = Arc::clone(&self.board);
        let looked = async {
            for (name, line) in &board.lines {
                let Some(progress) = self.watched.get_mut(name) else { continue };
                let len = line.handle.state().borrow().len;
                // An error means that the watcher has ended, which it reports itself.
                drop(progress.wait_for(|p| p.processed >= len && !p.undecided).await);
            }
        };
        let _ = timeout(REASON, looked).await;
        found(&board).map_or(Ok(()), Err)
    }

    /// Says what became of a wait that is over.
    fn overdue(&mut self, timeout: Duration) -> ActionFailure {
        self.repeated_reports().unwrap_or_else(|| self.hang(timeout))
    }

    /// Says that the reports that the present wait has seen are repeated without end.
    pub(super) fn repeated_reports(&self) -> Option<ActionFailure> {
        let settle = self.settle;
        if !self.ends.go_on(settle) {
            return None;
        }
        let detail = format!(
            "complete reports follow each other without end, and none is followed by {settle:?} \
             without output, so it is not known which one counts: let the target print its report \
             once, or pause behind it"
        );
        Some(ActionFailure::new(Cause::ReportIncomplete, detail))
    }

    fn hang(&mut self, timeout: Duration) -> ActionFailure {
        let console = self.board.results.clone();
        let reporting = self.progress().borrow().reporting;
        let what = if reporting { "the report did not end" } else { "no report was seen" };
        let (file, len) = match self.board.lines.get(&console) {
            Some(line) => (line.file.clone(), line.handle.state().borrow().len),
            None => (String::new(), 0),
        };
        let (start, last) = self.last_bytes(&console, len);
        let detail = format!("{what} within {timeout:?}; the last output is {last:?}");
        let range = ByteRange { file, start, end: len, text: "last output".to_owned() };
        ActionFailure { cause: Cause::Hang, detail, evidence: vec![range.evidence()] }
    }

    fn last_bytes(&mut self, console: &ConsoleName, len: u64) -> (u64, String) {
        let start = len.saturating_sub(QUOTE);
        let Ok(follower) = self.cursor(console) else { return (start, String::new()) };
        let start = start.max(follower.floor());
        let mut bytes = vec![0; len.saturating_sub(start) as usize];
        let read = follower.read_at(start, &mut bytes).unwrap_or_default();
        (start, String::from_utf8_lossy(&bytes[..read]).into_owned())
    }
}
