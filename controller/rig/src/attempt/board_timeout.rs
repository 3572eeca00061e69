//! Time-outs that count only the time in which the board could run.
//!
//! Owns what time counts. Time in which the emulator was stopped or starved, or in which Jig itself
//! was stopped, does not count: otherwise the firmware would be blamed for it. The extension of a
//! wait is bounded, and a wait that used all of it is a rig failure.
//!
//! # Design
//! The clock of a target continues while its emulator is stopped, so a failure in such an attempt
//! is retried; a pass stands. Starvation alone is no reason for a retry: on a busy host every
//! failure would be retried.

use std::time::Duration;

use jig_model::{Cause, Fault, Note};
use tokio::time::{Instant, sleep_until};

use super::board::AttemptBoard;
use super::exact_timer::sleep_exactly_until;
use super::facts::Observed;
use crate::workflow::ActionFailure;

/// Period of the timer by which Jig notices that it was stopped.
const BEAT: Duration = Duration::from_millis(100);

/// A tick later than this means that Jig was stopped: timers and a busy executor are late by a few
/// milliseconds only.
const LATE: Duration = Duration::from_millis(50);

/// Longest extension of a wait, as a multiple of it: a board that runs for less than a fifth of the
/// time is not worth waiting for.
const MOST: u32 = 4;
/// Longest extension of a short wait: enough for a stop of some seconds.
const LEAST: Duration = Duration::from_secs(10);

/// Reports the time in which Jig was stopped, for as long as the future is polled.
pub(super) async fn pulse(board: &AttemptBoard) -> std::convert::Infallible {
    loop {
        let due = Instant::now() + BEAT;
        sleep_until(due).await;
        let late = due.elapsed();
        if late > LATE {
            board.report(Observed::Late(late));
        }
    }
}

/// Shortest extension, and shortest wait, of which the report tells.
const NOTED: Duration = Duration::from_millis(500);

/// One wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoardTimeout {
    timeout: Duration,
    /// Its deadline, if no time is lost.
    until: Instant,
    /// Time that had been lost when it began.
    lost: (Duration, Duration),
    /// Time lost since then, as counted exactly by the board's driver.
    counted: Duration,
}

impl BoardTimeout {
    /// Begins to wait.
    pub(super) fn new(board: &AttemptBoard, timeout: Duration) -> Self {
        Self::since(board, Instant::now(), timeout)
    }

    /// Goes on with a wait that began at a moment, and of which nothing was lost so far.
    pub(super) fn since(board: &AttemptBoard, began: Instant, timeout: Duration) -> Self {
        let (until, lost) = (began + timeout, board.facts().time_lost());
        Self { timeout, until, lost, counted: Duration::ZERO }
    }

    /// Begins a wait that is a part of this one.
    pub(super) fn part(&self, board: &AttemptBoard, timeout: Duration) -> Self {
        let left = self.until(board).saturating_duration_since(Instant::now());
        Self::new(board, timeout.min(left))
    }

    /// Returns how long it was to be.
    pub(super) fn asked(&self) -> Duration {
        self.timeout
    }

    /// Takes in what was lost of it by an exact count, in all so far.
    pub(super) fn lose(&mut self, counted: Duration) {
        self.counted = counted;
    }

    /// Returns how much of the time that it took the board had; never more than what was wanted.
    pub(super) fn had(&self, board: &AttemptBoard, took: Duration) -> Duration {
        took.saturating_sub(self.lost(board)).min(self.timeout)
    }

    /// Returns its deadline, by the lost time known now.
    pub(super) fn until(&self, board: &AttemptBoard) -> Instant {
        self.until + self.lost(board).min(self.most())
    }

    /// Tells whether it is over.
    pub(super) fn is_over(&self, board: &AttemptBoard) -> bool {
        Instant::now() >= self.until(board)
    }

    /// Returns when it is over.
    pub(super) async fn run_out(&self, board: &AttemptBoard) {
        while !self.is_over(board) {
            sleep_exactly_until(self.until(board)).await;
        }
    }

    /// Returns the failure of a wait that is over: of the board, or of the rig if the board had too
    /// little time even with the extension.
    pub(super) fn judged(&self, board: &AttemptBoard, failure: ActionFailure) -> ActionFailure {
        let lost = self.lost(board);
        if lost < self.most() {
            self.note_extension(board);
            return failure;
        }
        starved(lost, &format!("a wait for {:?}", self.timeout), failure)
    }

    /// Notes of a wait that has ended well that it took longer than it was to be: a pass by it is one of
    /// a slower host.
    pub(super) fn met(&self, board: &AttemptBoard) {
        if Instant::now() > self.until {
            self.note_extension(board);
        }
    }

    fn note_extension(&self, board: &AttemptBoard) {
        let lost = self.lost(board);
        if lost.min(self.timeout) >= NOTED {
            let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            let note = Note::WaitExtended { wait_ms: ms(self.timeout), lost_ms: ms(lost) };
            board.report(Observed::Note(note));
        }
    }

    /// The lost times of the board and of Jig mostly overlap, so they are not added.
    fn lost(&self, board: &AttemptBoard) -> Duration {
        let (stood, late) = board.facts().time_lost();
        let stood = stood.saturating_sub(self.lost.0);
        stood.max(late.saturating_sub(self.lost.1)).max(self.counted)
    }

    fn most(&self) -> Duration {
        self.timeout.saturating_mul(MOST).max(LEAST)
    }
}

/// The time that a plan takes. It is not extended: the plan says when a run has to be over.
#[derive(Debug)]
pub(super) struct PlanTime(BoardTimeout);

impl PlanTime {
    /// Begins a plan.
    pub(super) fn new(board: &AttemptBoard) -> Self {
        Self(BoardTimeout::new(board, Duration::ZERO))
    }

    /// Returns the failure of a plan whose time is over: of the target, or of the rig if the board ran for
    /// less than a fifth of it. So much was lost of it by an exact count.
    pub(super) fn judged(
        &mut self,
        board: &AttemptBoard,
        counted: Duration,
        failure: ActionFailure,
    ) -> ActionFailure {
        self.0.lose(counted);
        let (lost, took) = (self.0.lost(board), self.0.until.elapsed());
        if lost < took * MOST / (MOST + 1) || failure.cause.fault() != Some(Fault::Target) {
            return failure;
        }
        starved(lost, &format!("the {:.1} s of its plan", took.as_secs_f64()), failure)
    }
}

fn starved(lost: Duration, whole: &str, failure: ActionFailure) -> ActionFailure {
    let lost = lost.as_secs_f64();
    let detail = format!(
        "the board could not run for {lost:.1} s of {whole}, so it proves nothing: {}",
        failure.detail
    );
    ActionFailure { cause: Cause::RigUnhealthy, detail, ..failure }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use jig_model::RunEvent;
    use jig_model::event::BoardEvent;
    use jig_model::protocol::BoardSink as _;
    use tokio::time::{advance, timeout};

    use super::*;
    use crate::attempt::board::RunEventSink;

    struct Nobody;
    impl RunEventSink for Nobody {
        fn emit(&self, _event: RunEvent) {}
    }

    const SECOND: Duration = Duration::from_secs(1);

    fn board() -> AttemptBoard {
        let name: jig_model::ConsoleName = "uart0".parse().unwrap();
        AttemptBoard::new(BTreeMap::new(), (name.clone(), name), (false, true), Arc::new(Nobody))
    }

    fn stand(board: &AttemptBoard, time: Duration) {
        let ms = u64::try_from(time.as_millis()).unwrap();
        board.event(BoardEvent::Stood { ms, stopped: false });
    }

    /// Returns how long a wait of three seconds takes.
    async fn wait(board: &AttemptBoard, stands: Duration) -> (Duration, BoardTimeout) {
        let began = Instant::now();
        let board_timeout = BoardTimeout::new(board, SECOND * 3);
        advance(SECOND * 2).await;
        stand(board, stands);
        board_timeout.run_out(board).await;
        (began.elapsed(), board_timeout)
    }

    #[tokio::test(start_paused = true)]
    async fn time_that_the_board_did_not_have_does_not_count() {
        let board = board();
        stand(&board, SECOND * 600);
        let missed = || ActionFailure::new(Cause::Hang, "missed");
        for (stands, takes, cause) in [
            (Duration::ZERO, SECOND * 3, Cause::Hang),
            (SECOND * 2, SECOND * 5, Cause::Hang),
            (SECOND * 12, SECOND * 15, Cause::RigUnhealthy),
            (SECOND * 900, SECOND * 15, Cause::RigUnhealthy),
        ] {
            let (took, board_timeout) = wait(&board, stands).await;
            assert!(took >= takes && took < takes + SECOND, "{stands:?}: {took:?}");
            assert_eq!(board_timeout.judged(&board, missed()).cause, cause, "{stands:?}");
        }
        let told: Vec<String> = board.facts().notes.iter().map(ToString::to_string).collect();
        let told_of_passes = |stands| {
            let board = self::board();
            async move {
                let (_, met) = wait(&board, stands).await;
                met.met(&board);
                board.facts().notes.len()
            }
        };
        assert_eq!(told_of_passes(SECOND * 2).await, 1);
        assert_eq!(told_of_passes(Duration::ZERO).await, 0);
        let words = "a wait for 3 s was extended by 2.0 s, in which the board could not run";
        assert!(matches!(&told[..], [only] if only.starts_with(words)), "{told:?}");
        let whole = BoardTimeout::new(&board, SECOND * 3);
        assert_eq!(whole.part(&board, SECOND * 9).timeout, SECOND * 3);
        assert_eq!(whole.part(&board, SECOND).timeout, SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_jig_stood_still_does_not_count_either() {
        let board = board();
        let board_timeout = BoardTimeout::new(&board, SECOND * 3);
        let felt = timeout(SECOND / 2, pulse(&board)).await;
        assert!(felt.is_err() && board.facts().time_lost().1.is_zero());
        let freeze = async {
            tokio::task::yield_now().await;
            // No task is polled meanwhile.
            advance(SECOND * 20).await;
        };
        tokio::select! {
            biased;
            never = pulse(&board) => match never {},
            () = async { freeze.await; tokio::time::sleep(SECOND).await } => {}
        }
        let late = board.facts().time_lost().1;
        assert!(late > SECOND * 19 && late < SECOND * 21, "{late:?}");
        assert_eq!(board.facts().standstill().latest, late);
        // The same time lost by the board does not count twice.
        stand(&board, SECOND * 9);
        assert_eq!(board_timeout.lost(&board), late);
    }
}
