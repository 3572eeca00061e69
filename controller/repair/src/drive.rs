//! The driver: the only place with a loop, and the only writer of intents and outcomes.
//!
//! It asks the fold where the run stands, writes what it is about to do, lets the step of that state
//! do it, and writes what came of it. What a step found is never kept anywhere else, so that a
//! process that is killed and started again goes on as if nothing had happened.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::driver_lock::DriverLock;
use crate::journal::{
    Effect, Entry, Fact, Intent, Journal, JournalError, Outcome, StepResult, now_ms,
};
use crate::machine::{RepairEvent, RepairState, RepairSubState};
use crate::poll::poll_once;
use crate::recovery::ErrorClass;
use crate::run::{FoldError, Run};

pub use crate::waiting::Waiting;

/// How often requests of other processes are looked for.
const LOOK: Duration = Duration::from_millis(200);

/// The work of one state, or of one part of it.
pub trait RepairStep: Send + Sync {
    /// Says what it leaves behind where it is cut off.
    fn effect(&self) -> Effect;
    /// Says how often it flashes a real board at most.
    fn flashes(&self) -> u8;
    /// Says how long it may take.
    fn limit(&self) -> Duration;
    /// Does the work. Where it is not waited for to its end, dropping it ends what it started.
    fn run<'a>(&'a self, run: &'a Run) -> StepFuture<'a>;
}

/// What a step does.
pub type StepFuture<'a> = Pin<Box<dyn Future<Output = StepResult> + Send + 'a>>;

/// Finds the step of a state.
pub trait RepairSteps: Send + Sync {
    /// Returns the step of a state, or of a part of it.
    fn step(&self, state: RepairState, part: Option<RepairSubState>) -> Box<dyn RepairStep + '_>;
}

/// Says why a run cannot be driven.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal is not that of a run.
    #[error("the journal is not that of a repair run")]
    Fold(#[from] FoldError),
}

/// Drives a run from where its journal stands to its end, or to where it waits for an answer, and
/// returns it. `lock` is held meanwhile: one process at a time drives a run.
///
/// It waits for the disk between two steps: give it a thread of its own.
///
/// # Errors
/// The journal cannot be read or written. The run can be driven on from its last row.
pub async fn drive(
    journal: &mut Journal,
    _lock: &DriverLock,
    steps: &dyn RepairSteps,
    waiting: Waiting,
) -> Result<Run, DriveError> {
    let mut run = Run::of(&journal.rows()?)?;
    let mut result = None;
    loop {
        // What came of a step and what is done next cost one flush.
        let step = journal.together(|journal| advance(journal, &mut run, result.take(), steps))?;
        match step {
            Some(step) => result = Some(watched(journal, &run, step).await?),
            None if run.state == RepairState::Idle || !waiting.awaits(&run, now_ms()) => {
                return Ok(run);
            }
            None => tokio::time::sleep(LOOK).await,
        }
    }
}

/// Writes what came of a step, and what is done next; returns the step that does it. There is none
/// where the run has ended or waits for an answer.
fn advance<'s>(
    journal: &mut Journal,
    run: &mut Run,
    mut result: Option<StepResult>,
    steps: &'s dyn RepairSteps,
) -> Result<Option<Box<dyn RepairStep + 's>>, DriveError> {
    catch_up(journal, run)?;
    loop {
        while let Some(result) = result.take().or_else(|| without_step(run)) {
            let outcome = Outcome { state: run.state, part: run.part, result };
            write(journal, run, &Entry::Outcome(outcome))?;
        }
        if run.state == RepairState::Idle || !run.is_answered() {
            return Ok(None);
        }
        let step = steps.step(run.state, run.part);
        let (effect, flashes, input) = (step.effect(), step.flashes(), run.hash.to_string());
        let intent = Intent { state: run.state, part: run.part, effect, input, flashes };
        write(journal, run, &Entry::Intent(intent))?;
        // What only reads can be made again: its rows need no flush of their own.
        result = if effect == Effect::Pure { poll_once(step.run(run)) } else { None };
        if result.is_none() {
            return Ok(Some(step));
        }
    }
}

/// Returns what is known without a step: a request to stop, and a step that was cut off beside a
/// board.
fn without_step(run: &Run) -> Option<StepResult> {
    if let Some(stopped) = stopped(run) {
        return Some(stopped);
    }
    let cut_off = run.begun_step.as_ref().filter(|step| step.effect == Effect::Device)?;
    // In these states the table leads to the recovery of the rig, which looks at its health first.
    let event = match cut_off.state {
        RepairState::TestSetup => RepairEvent::EnvironmentFailed,
        RepairState::TestRun => RepairEvent::RunnerFailed,
        RepairState::ResultAnalysis => RepairEvent::EnvironmentBlamed,
        _ => return None,
    };
    let reason = "the step was cut off, and the board may be in any state";
    let class = ErrorClass::TestEnvFailure;
    let mut result = StepResult::of(event, reason).with(Fact::Failed { class });
    result.facts.extend((0..cut_off.flashes).map(|_| Fact::Flashed));
    Some(result)
}

/// Returns the end of a run that another process has asked to stop.
fn stopped(run: &Run) -> Option<StepResult> {
    let over = run.state.is_final() || run.ended.is_some();
    let why = run.stop.as_ref().filter(|_| !over)?;
    Some(StepResult::of(RepairEvent::Abort, why.clone()))
}

/// Runs a step until it ends, takes too long, or the run is to stop.
async fn watched(
    journal: &Journal,
    run: &Run,
    step: Box<dyn RepairStep + '_>,
) -> Result<StepResult, DriveError> {
    let mut work = step.run(run);
    let allowed = step.limit().min(run.time_left(now_ms()));
    let limit = tokio::time::sleep(allowed);
    tokio::pin!(limit);
    let mut looks = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            biased;
            result = &mut work => return Ok(result),
            () = &mut limit => {
                let reason = format!("{} took longer than {} s", run.state, allowed.as_secs());
                let failed = Fact::Failed { class: ErrorClass::Timeout };
                return Ok(StepResult::of(RepairEvent::TimedOut, reason).with(failed));
            }
            _ = looks.tick() => {
                let mut now = run.clone();
                catch_up(journal, &mut now)?;
                if let Some(stopped) = stopped(&now) {
                    return Ok(stopped);
                }
            }
        }
    }
}

/// Reads the rows that are new.
fn catch_up(journal: &Journal, run: &mut Run) -> Result<(), DriveError> {
    for row in journal.rows_behind(run.seq, run.hash)? {
        run.apply(&row)?;
    }
    Ok(())
}

fn write(journal: &mut Journal, run: &mut Run, entry: &Entry) -> Result<(), DriveError> {
    journal.append(entry)?;
    catch_up(journal, run)
}

#[cfg(test)]
#[path = "drive_tests.rs"]
mod tests;
