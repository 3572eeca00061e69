//! How long to wait for a target: as long as was asked for, of the time that it had.
//!
//! Owns what time counts. Time in which the rig gave the board none, or in which Jig itself stood
//! still and could neither read nor be told, does not: a time-out that ran out then would blame
//! the firmware for it. What is added is bounded, and a wait that needed all of it proves nothing.
//!
//! # Design
//! The clock of a target continues while its emulator is stopped, so a failure in such an attempt
//! is retried; a pass stands. Starvation alone puts no failure in doubt: a busy host would blame
//! itself for every bug.

use std::time::Duration;

use jig_model::Cause;
use tokio::time::{Instant, sleep_until};

use super::board::Board;
use super::facts::Observed;
use crate::workflow::ActionFailure;

/// How often Jig feels its own pulse.
const BEAT: Duration = Duration::from_millis(100);

/// A beat that is later than this was held up: timers and a busy executor are late by a few
/// milliseconds.
const LATE: Duration = Duration::from_millis(50);

/// Most that is added to a wait, as a multiple of it: a board that had less than a fifth of the
/// time cannot be waited for.
const MOST: u32 = 4;
/// However short the wait is, a stop of some seconds may be made up for.
const LEAST: Duration = Duration::from_secs(10);

/// Feels Jig's own pulse, for as long as it is polled, and reports it.
pub(super) async fn pulse(board: &Board) -> std::convert::Infallible {
    loop {
        let due = Instant::now() + BEAT;
        sleep_until(due).await;
        let late = due.elapsed();
        if late > LATE {
            board.report(Observed::Late(late));
        }
    }
}

/// One wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoardTimeout {
    timeout: Duration,
    /// When it is over, if no time is lost.
    until: Instant,
    /// What had been lost when it began.
    lost: (Duration, Duration),
}

impl BoardTimeout {
    /// Begins to wait.
    pub(super) fn new(board: &Board, timeout: Duration) -> Self {
        Self { timeout, until: Instant::now() + timeout, lost: board.facts().time_lost() }
    }

    /// Begins a wait that is a part of this one.
    pub(super) fn part(&self, board: &Board, timeout: Duration) -> Self {
        let left = self.until(board).saturating_duration_since(Instant::now());
        Self::new(board, timeout.min(left))
    }

    /// Returns when it is over, by what is known now.
    pub(super) fn until(&self, board: &Board) -> Instant {
        self.until + self.lost(board).min(self.most())
    }

    /// Tells whether it is over.
    pub(super) fn is_over(&self, board: &Board) -> bool {
        Instant::now() >= self.until(board)
    }

    /// Returns when it is over.
    pub(super) async fn run_out(&self, board: &Board) {
        while !self.is_over(board) {
            sleep_until(self.until(board)).await;
        }
    }

    /// Says what it means that nothing came: the board's failure, or, where it had not its
    /// time however long was waited, the rig's.
    pub(super) fn judged(&self, board: &Board, failure: ActionFailure) -> ActionFailure {
        let lost = self.lost(board);
        if lost < self.most() {
            return failure;
        }
        let (lost, timeout) = (lost.as_secs_f64(), self.timeout);
        let detail = format!(
            "the board could not run for {lost:.1} s of a wait for {timeout:?}, so it proves \
             nothing: {}",
            failure.detail
        );
        ActionFailure { cause: Cause::RigUnhealthy, detail, ..failure }
    }

    /// The board's and Jig's lost time are mostly the same, so they do not add up.
    fn lost(&self, board: &Board) -> Duration {
        let (stood, late) = board.facts().time_lost();
        let stood = stood.saturating_sub(self.lost.0);
        stood.max(late.saturating_sub(self.lost.1))
    }

    fn most(&self) -> Duration {
        self.timeout.saturating_mul(MOST).max(LEAST)
    }
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
    use crate::attempt::board::EventSink;

    struct Nobody;
    impl EventSink for Nobody {
        fn emit(&self, _event: RunEvent) {}
    }

    const SECOND: Duration = Duration::from_secs(1);

    fn board() -> Board {
        let name: jig_model::ConsoleName = "uart0".parse().unwrap();
        Board::new(BTreeMap::new(), (name.clone(), name), false, Arc::new(Nobody))
    }

    fn stand(board: &Board, time: Duration) {
        let ms = u64::try_from(time.as_millis()).unwrap();
        board.event(BoardEvent::Stood { ms, stopped: false });
    }

    /// Returns how long a wait of three seconds takes.
    async fn wait(board: &Board, stands: Duration) -> (Duration, BoardTimeout) {
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
            // Nobody is polled meanwhile.
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
        // The board's own loss of the same time is no further one.
        stand(&board, SECOND * 9);
        assert_eq!(board_timeout.lost(&board), late);
    }
}
