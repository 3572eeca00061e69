//! The quiet period: the board is watched behind what a plan waits for, and halted at the end.
//!
//! # Design
//! *Stop, drain, judge.* A fault often comes right after the last "OK", so the board is watched for
//! a while longer. Then it is halted and its consoles are read to the end, so that what is judged
//! is all that was captured. A board that cannot be halted loses its power, which does the same.
//!
//! *The period is board time.* An event of the target comes later on a busy host. What was lost is
//! known exactly only of a halted board, so a board that was halted too early runs on.

use std::sync::Arc;
use std::time::Duration;

use jig_model::protocol::BoardSink as _;

use super::{Actions, by_driver};
use crate::attempt::abort_condition::{abort_condition, exit};
use crate::attempt::board_timeout::BoardTimeout;
use crate::attempt::facts::Observed;
use crate::judge::Listened;
use crate::workflow::ActionFailure;
use jig_model::{Cause, Fault};
use tokio::time::Instant;

impl Actions<'_> {
    /// Watches the target for the quiet period, and leaves it halted where that is possible.
    pub(in crate::attempt) async fn settle(&mut self) -> Result<(), ActionFailure> {
        let board = Arc::clone(&self.board);
        if std::mem::replace(&mut self.settled, true) {
            return Ok(());
        }
        if !board.facts().on() {
            return self.looked_at_everything().await;
        }
        let lost = self.lost_time().await?;
        let mut period = BoardTimeout::new(&board, self.settle);
        let began = Instant::now();
        loop {
            tokio::select! {
                biased;
                failure = abort_condition(&board) => return Err(failure),
                _ = exit(&board) => return self.looked_at_everything().await,
                () = period.run_out(&board) => {}
            }
            self.halt().await?;
            period.lose(self.lost_time().await?.saturating_sub(lost));
            // As long as the lost time that was counted, which goes on while the board stands.
            let over = began.elapsed();
            if period.is_over(&board) {
                let had = period.had(&board, over);
                board.report(Observed::Listened(Listened { had }));
                break;
            }
            self.run_on().await?;
        }
        self.looked_at_everything().await?;
        let starved = ActionFailure::new(Cause::Hang, "nothing was seen behind the end");
        match period.judged(&board, starved) {
            ActionFailure { cause: Cause::Hang, .. } => Ok(()),
            starved => Err(starved),
        }
    }

    /// Watches the target for the quiet period before the plan takes the power at its end. What shows
    /// on the consoles meanwhile are incidents, which the judge sees.
    pub(in crate::attempt) async fn settle_before_off(&mut self) -> Result<(), ActionFailure> {
        if !self.board.facts().on() {
            return Ok(());
        }
        self.run_on().await?;
        let settled = self.settle().await;
        settled.or_else(|failed| match failed.cause.fault() {
            Some(Fault::Lab | Fault::Cancelled) => Err(failed),
            _ => Ok(()),
        })
    }

    /// Halts the board where that is possible; all that it has printed is captured then.
    pub(in crate::attempt) async fn halt(&mut self) -> Result<(), ActionFailure> {
        let Some(control) = &mut self.protocols.control else {
            self.board.drained().await;
            return Ok(());
        };
        // Set before the halt: if this future is dropped, the board may be halted or not.
        self.halted = true;
        control.halt().await.map(drop).map_err(|error| by_driver(&error))
    }

    /// Lets a halted board run on.
    pub(in crate::attempt) async fn run_on(&mut self) -> Result<(), ActionFailure> {
        if !std::mem::take(&mut self.halted) {
            return Ok(());
        }
        let Some(control) = &mut self.protocols.control else { return Ok(()) };
        control.resume().await.map_err(|error| by_driver(&error))
    }

    /// Returns for how long the board could not run; zero where the clock of the host has to do, and
    /// of a board that has ended.
    pub(super) async fn lost_time(&mut self) -> Result<Duration, ActionFailure> {
        let Some(control) = &mut self.protocols.control else { return Ok(Duration::ZERO) };
        let lost = control.lost_time().await.map_err(|error| by_driver(&error))?;
        Ok(lost.unwrap_or_default())
    }
}
