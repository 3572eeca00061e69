//! The one table of transitions. Everything else reads it: the driver, replay, the renderers, the
//! tests.
//!
//! # Design
//! Three events are possible in every state in which a run can stand: an abort, a time-out and an
//! error that a step does not know. They are one rule each, not thirteen rows.

use super::state::{RepairEvent, RepairState};

/// Says that no transition leads from a state by an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a repair run has no event {event} in state {from}")]
pub struct IllegalRepairEvent {
    /// The state.
    pub from: RepairState,
    /// The event.
    pub event: RepairEvent,
}

type Row = (RepairState, RepairEvent, RepairState, &'static str);

const ROWS: &[Row] = {
    use RepairEvent as E;
    use RepairState as S;
    &[
        (S::Idle, E::TaskRequested, S::Init, "on task_request"),
        (S::Init, E::ContextReady, S::CodeAnalysis, "context ready"),
        (S::Init, E::BaselineRefused, S::Failure, "baseline flaky or already green"),
        (S::CodeAnalysis, E::PatchPlanned, S::PatchGeneration, "patch_plan ok"),
        (S::CodeAnalysis, E::AnalysisFailed, S::ErrorRecovery, "analysis failed"),
        (S::PatchGeneration, E::PatchValid, S::PatchApply, "patch valid"),
        (S::PatchGeneration, E::PatchInvalid, S::ErrorRecovery, "patch invalid / unsafe"),
        (S::PatchApply, E::WorkspaceUpdated, S::BuildSetup, "workspace updated"),
        (S::PatchApply, E::ApplyFailed, S::ErrorRecovery, "apply failed"),
        (S::BuildSetup, E::BuildReady, S::BuildRun, "build env ready"),
        (S::BuildSetup, E::ToolchainMissing, S::ErrorRecovery, "toolchain missing"),
        (S::BuildRun, E::BuildPassed, S::TestSetup, "build ok"),
        (S::BuildRun, E::BuildFailed, S::ErrorRecovery, "build failed"),
        (S::TestSetup, E::EnvironmentReady, S::TestRun, "env ready"),
        (S::TestSetup, E::EnvironmentFailed, S::ErrorRecovery, "env failed"),
        (S::TestRun, E::TestFinished, S::ResultCollection, "test finished"),
        (S::TestRun, E::RunnerFailed, S::ErrorRecovery, "runner crashed / timeout"),
        (S::ResultCollection, E::ResultNormalized, S::ResultAnalysis, "result normalized"),
        (S::ResultCollection, E::ArtifactsMissing, S::ErrorRecovery, "artifacts missing"),
        (S::ResultAnalysis, E::DecisionProduced, S::ConvergenceCheck, "decision produced"),
        (S::ResultAnalysis, E::DecisionFailed, S::ErrorRecovery, "decision failed"),
        (S::ResultAnalysis, E::EnvironmentBlamed, S::ErrorRecovery, "environment error"),
        (S::ConvergenceCheck, E::Continue, S::CodeAnalysis, "continue (next iter)"),
        (S::ConvergenceCheck, E::StrategySwitched, S::CodeAnalysis, "plateau: strategy switch"),
        (S::ConvergenceCheck, E::Converged, S::Success, "converged"),
        (S::ConvergenceCheck, E::AcceptedWithWarning, S::Success, "plateau: success with warning"),
        (S::ConvergenceCheck, E::NoProgress, S::Failure, "max_iter reached / no progress"),
        (S::ConvergenceCheck, E::HumanReview, S::Aborted, "plateau: human review"),
        (S::ErrorRecovery, E::RecoveredToAnalysis, S::CodeAnalysis, "recovered to analysis"),
        (S::ErrorRecovery, E::RecoveredToBuildSetup, S::BuildSetup, "recovered to build setup"),
        (S::ErrorRecovery, E::RecoveredToBuild, S::BuildRun, "recovered to build"),
        (S::ErrorRecovery, E::RecoveredToTestSetup, S::TestSetup, "recovered to test setup"),
        (
            S::ErrorRecovery,
            E::RecoveredToCollection,
            S::ResultCollection,
            "recovered to collection",
        ),
        (S::ErrorRecovery, E::Unrecoverable, S::Failure, "unrecoverable"),
        (S::Success, E::Reported, S::Idle, ""),
        (S::Failure, E::Reported, S::Idle, ""),
        (S::Aborted, E::Reported, S::Idle, ""),
    ]
};

/// Returns where an event leads that is possible in every state that is not final.
fn anywhere(event: RepairEvent) -> Option<RepairState> {
    match event {
        RepairEvent::Abort => Some(RepairState::Aborted),
        RepairEvent::TimedOut | RepairEvent::UnhandledError => Some(RepairState::ErrorRecovery),
        _ => None,
    }
}

/// Returns the state that follows.
///
/// # Errors
/// Refuses a pair that the table does not hold.
pub fn next(from: RepairState, event: RepairEvent) -> Result<RepairState, IllegalRepairEvent> {
    let to = row(from, event).map(|row| row.2);
    let to = to.or_else(|| anywhere(event).filter(|_| !from.is_final()));
    to.ok_or(IllegalRepairEvent { from, event })
}

/// Returns in words when an event is seen that the table has for this state alone.
pub fn condition(from: RepairState, event: RepairEvent) -> Option<&'static str> {
    row(from, event).map(|row| row.3)
}

fn row(from: RepairState, event: RepairEvent) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.0 == from && row.1 == event)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_pair_of_state_and_event_occurs_once_and_each_event_is_used() {
        let pairs: BTreeSet<_> = ROWS.iter().map(|row| (row.0, row.1)).collect();
        assert_eq!(pairs.len(), ROWS.len());
        assert!(ROWS.iter().all(|row| anywhere(row.1).is_none()));
        for &event in RepairEvent::ALL {
            assert!(RepairState::ALL.iter().any(|&from| next(from, event).is_ok()), "{event}");
        }
    }

    #[test]
    fn every_state_that_is_not_final_can_be_aborted_and_can_time_out() {
        for &state in RepairState::ALL {
            let to = |event| next(state, event).ok();
            let (abort, recovery) = if state.is_final() {
                (None, None)
            } else {
                (Some(RepairState::Aborted), Some(RepairState::ErrorRecovery))
            };
            assert_eq!(to(RepairEvent::Abort), abort, "{state}");
            assert_eq!(to(RepairEvent::TimedOut), recovery, "{state}");
            assert_eq!(to(RepairEvent::UnhandledError), recovery, "{state}");
        }
    }

    #[test]
    fn every_state_can_be_reached_and_left() {
        let to = |from: RepairState| {
            RepairEvent::ALL.iter().filter_map(move |&event| next(from, event).ok())
        };
        let reached: BTreeSet<_> = RepairState::ALL.iter().flat_map(|&from| to(from)).collect();
        assert_eq!(reached.len(), RepairState::ALL.len());
        for &state in RepairState::ALL {
            assert!(to(state).next().is_some(), "{state} cannot be left");
        }
    }
}
