//! The quiet period: the board is watched behind what a plan waits for, and halted at the end.
//!
//! # Design
//! *Stop, drain, judge.* A fault often comes right after the last "OK", so the board is watched for
//! a while longer. Then it is halted and its consoles are read to the end, so that what is judged
//! is all that was captured. A board that cannot be halted loses its power, which does the same.
//!
//! *The period is board time.* An event of the target comes later on a busy host. What was lost is
//! known exactly only of a halted board, so a board that was halted too early runs on. The time until
//! it runs again is counted, too. Otherwise, on a busy host, the rest of the period is over before the
//! board runs, it is halted again at once, and the fault watch never has its turn with a core that
//! stands at the handler of a fault.
//!
//! *Quiet means that no console prints.* On a slow line the first words of a failure take longer
//! than the period, so it begins again with each byte. That of a report began with its last one, a
//! millisecond before Jig has understood it. A target that never stops printing is
//! watched for [`MOST`] periods in all, and the verdict says that it was still printing.

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use jig_model::protocol::BoardSink as _;

use super::{Actions, by_driver};
use crate::attempt::abort_condition::{abort_condition, exit};
use crate::attempt::board::AttemptBoard;
use crate::attempt::board_timeout::BoardTimeout;
use crate::attempt::facts::Observed;
use crate::console::LogState;
use crate::judge::Listened;
use crate::workflow::ActionFailure;
use jig_model::{Cause, Fault};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Longest watch of a target that does not stop printing, as a multiple of the quiet period: the
/// output of 115200 baud behind the end of a report (1.3 KiB took 110 ms), and two long lines of
/// 9600 baud.
const MOST: u32 = 5;

/// When a board may be halted the next time in a wait.
///
/// To halt a board and let it run on may take a busy host longer than the rest of the wait: a board that was
/// halted again so soon would never have it. So it runs twice as long each time, up to a limit.
#[derive(Debug)]
pub(super) struct HaltPace {
    at: Instant,
    runs: Duration,
    longest: Duration,
}

impl HaltPace {
    /// Begins with a wait as long as this; the first halt may be at once.
    pub(super) fn new(wait: Duration) -> Self {
        Self { at: Instant::now(), runs: (wait / 40).max(SHORTEST), longest: wait * 2 }
    }

    /// Returns when it may be halted.
    pub(super) fn at(&self) -> Instant {
        self.at
    }

    /// Notes that the board runs on now.
    pub(super) fn runs_on(&mut self) {
        self.at = Instant::now() + self.runs;
        self.runs = self.runs.saturating_mul(2).min(self.longest);
    }
}

/// Shortest time between two halts.
const SHORTEST: Duration = Duration::from_millis(1);

/// How long it may take to understand a report behind its last byte. What takes longer may be a stop of the whole
/// host, of which nothing is counted as lost, or output from in front of what the plan did last.
const UNDERSTOOD: Duration = Duration::from_millis(5);

/// Where a quiet period begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuietFrom {
    Now,
    LastOutput,
}

/// The time that a board has lost since a moment.
///
/// What threads of an emulator waited side by side is added up until it is first halted, so the count of
/// a shorter time may be greater than that time.
#[derive(Debug)]
pub(in crate::attempt) struct LostSince {
    began: Instant,
    /// What had been lost by then.
    before: Duration,
}

impl LostSince {
    /// Begins now, where `total` has been lost in all.
    pub(in crate::attempt) fn new(total: Duration) -> Self {
        Self::since(Instant::now(), total)
    }

    /// Begins at an earlier moment; `total` has been lost in all by now. A wait for a processor that is
    /// not over yet is in no total, and may have begun at that moment.
    fn since(began: Instant, total: Duration) -> Self {
        Self { began, before: total }
    }

    /// Returns what was lost since, where `total` is lost in all: no more than has passed.
    pub(in crate::attempt) fn of(&mut self, total: Duration) -> Duration {
        self.before = self.before.max(total.saturating_sub(self.began.elapsed()));
        total.saturating_sub(self.before)
    }
}

impl Actions<'_> {
    /// Watches the target for the quiet period, and leaves it halted where that is possible.
    pub(in crate::attempt) async fn settle(&mut self) -> Result<(), ActionFailure> {
        self.settle_from(QuietFrom::Now).await
    }

    /// Does so behind output that was awaited, which was printed some time before it was understood.
    pub(super) async fn settle_behind_output(&mut self) -> Result<(), ActionFailure> {
        self.settle_from(QuietFrom::LastOutput).await
    }

    async fn settle_from(&mut self, from: QuietFrom) -> Result<(), ActionFailure> {
        let board = Arc::clone(&self.board);
        if std::mem::replace(&mut self.settled, true) {
            return Ok(());
        }
        if !board.facts().on() {
            return self.looked_at_everything().await;
        }
        self.read_ahead();
        let total = self.lost_time().await?;
        let mut output = ConsoleOutput::new(&board);
        let began = match from {
            QuietFrom::Now => Instant::now(),
            QuietFrom::LastOutput => self.silent_since(total),
        };
        let mut lost = LostSince::since(began, total);
        let mut quiet = BoardTimeout::since(&board, began, self.settle);
        let mut bound = BoardTimeout::new(&board, self.settle.saturating_mul(MOST));
        // Time lost since the watch began, by the last count, and by that in front of the last byte.
        let (mut counted, mut before) = (Duration::ZERO, Duration::ZERO);
        let mut printed = false;
        let mut pace = HaltPace::new(self.settle);
        let ended = loop {
            tokio::select! {
                biased;
                failure = abort_condition(&board) => return Err(failure),
                _ = exit(&board) => return self.looked_at_everything().await,
                () = run_out(&board, &bound, pace.at()) => {}
                () = output.grows() => {
                    (quiet, before, printed) =
                        (BoardTimeout::new(&board, self.settle), counted, true);
                    continue;
                }
                () = run_out(&board, &quiet, pace.at()) => {}
            }
            let halted = self.halt().await?;
            counted = lost.of(self.lost_time().await?);
            // As long as the lost time that was counted, which goes on while the board stands.
            let over = began.elapsed();
            if output.grew() {
                (quiet, before, printed) = (BoardTimeout::new(&board, self.settle), counted, true);
            }
            quiet.lose(counted.saturating_sub(before));
            bound.lose(counted);
            let is_quiet = quiet.is_over(&board);
            if is_quiet || bound.is_over(&board) {
                let whole = if printed { &bound } else { &quiet };
                let listened = Listened { had: whole.had(&board, over), printing: !is_quiet };
                board.report(Observed::Listened(listened));
                if halted {
                    self.look_ahead();
                }
                break if is_quiet { quiet } else { bound };
            }
            self.run_on().await?;
            counted = lost.of(self.lost_time().await?);
            quiet.lose(counted.saturating_sub(before));
            bound.lose(counted);
            pace.runs_on();
        };
        self.looked_at_everything().await?;
        let starved = ActionFailure::new(Cause::Hang, "nothing was seen behind the end");
        match ended.judged(&board, starved) {
            ActionFailure { cause: Cause::Hang, .. } => Ok(()),
            // A core that stands in a fault does nothing else, however much time the host gives it.
            starved => match self.look_at_halted("behind its last output").await {
                Err(in_fault) if in_fault.cause.fault() == Some(Fault::Target) => Err(in_fault),
                _ => Err(starved),
            },
        }
    }

    /// Returns since when no console has printed, [`UNDERSTOOD`] ago at the most, and later by the time that the
    /// board has lost in `total` since its launch.
    fn silent_since(&self, total: Duration) -> Instant {
        let now = Instant::now();
        let states = self.board.lines.values().map(|line| line.handle.state());
        let Some(last) =
            states.filter_map(|state| state.borrow().printed_at).map(|at| at.mono_ns).max()
        else {
            return now;
        };
        let silent = Duration::from_nanos(self.clock.stamp().mono_ns.saturating_sub(last));
        now.checked_sub(silent.saturating_sub(total).min(UNDERSTOOD)).unwrap_or(now)
    }

    /// Watches the target for the quiet period before the plan takes the power at its end. What shows
    /// on the consoles meanwhile are incidents, which the judge sees; a core that stands in a fault has
    /// failed.
    pub(in crate::attempt) async fn settle_before_off(&mut self) -> Result<(), ActionFailure> {
        if !self.board.facts().on() {
            return Ok(());
        }
        self.run_on().await?;
        let settled = self.settle().await;
        settled.or_else(|failed| match failed.cause.fault() {
            Some(Fault::Lab | Fault::Cancelled) => Err(failed),
            _ if self.core.is_some() => Err(failed),
            _ => Ok(()),
        })
    }

    /// Halts the board and tells whether it stands; all that it has printed is captured then.
    pub(in crate::attempt) async fn halt(&mut self) -> Result<bool, ActionFailure> {
        let Some(control) = &mut self.protocols.control else {
            self.board.drained().await;
            return Ok(false);
        };
        // Set before the halt: if this future is dropped, the board may be halted or not.
        self.halted = true;
        control.halt().await.map_err(|error| by_driver(&error))
    }

    /// Lets a halted board run on.
    pub(in crate::attempt) async fn run_on(&mut self) -> Result<(), ActionFailure> {
        if !std::mem::take(&mut self.halted) {
            return Ok(());
        }
        if let Some(debug) = &mut self.protocols.debug {
            debug.runs_on();
        }
        let Some(control) = &mut self.protocols.control else { return Ok(()) };
        control.resume().await.map_err(|error| by_driver(&error))
    }

    /// Returns for how long the board could not run; zero where the clock of the host has to do, and
    /// of a board that has ended.
    pub(in crate::attempt) async fn lost_time(&mut self) -> Result<Duration, ActionFailure> {
        let Some(control) = &mut self.protocols.control else { return Ok(Duration::ZERO) };
        let lost = control.lost_time().await.map_err(|error| by_driver(&error))?;
        Ok(lost.unwrap_or_default())
    }
}

/// Waits until a wait is over, and a board may be halted.
async fn run_out(board: &AttemptBoard, wait: &BoardTimeout, halt: Instant) {
    wait.run_out(board).await;
    sleep_until(halt).await;
}

/// How much each console of a board has printed.
struct ConsoleOutput(Vec<(watch::Receiver<LogState>, u64)>);

impl ConsoleOutput {
    fn new(board: &AttemptBoard) -> Self {
        let states = board.lines.values().map(|line| line.handle.state());
        Self(states.map(|state| (state.clone(), state.borrow().len)).collect())
    }

    /// Tells whether a console has printed since this was last told.
    fn grew(&mut self) -> bool {
        self.0.iter_mut().fold(false, |grew, (state, known)| {
            let len = state.borrow_and_update().len;
            grew | (std::mem::replace(known, len) < len)
        })
    }

    /// Returns when a console has printed since that was last told.
    async fn grows(&mut self) {
        while !self.grew() {
            let mut changes: Vec<Pin<Box<dyn Future<Output = ()> + Send + '_>>> = Vec::new();
            for (state, _) in &mut self.0 {
                changes.push(Box::pin(async {
                    // A capture that has ended prints nothing more.
                    if state.changed().await.is_err() {
                        pending().await
                    }
                }));
            }
            poll_fn(|context| {
                let changed = changes.iter_mut().any(|one| one.as_mut().poll(context).is_ready());
                if changed { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What threads of an emulator waited side by side, before it is halted for the first time, is more than has
    /// passed.
    #[tokio::test(start_paused = true)]
    async fn no_more_of_a_wait_is_lost_than_has_passed() {
        let ms = Duration::from_millis;
        let mut lost = LostSince::new(ms(10));
        assert_eq!(lost.of(ms(10)), ms(0));
        tokio::time::advance(ms(50)).await;
        assert_eq!(lost.of(ms(160)), ms(50));
        tokio::time::advance(ms(50)).await;
        assert_eq!(lost.of(ms(165)), ms(55));
    }
}
