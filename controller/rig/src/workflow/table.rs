//! The one table of moves. Everything else reads it: the machine, the renderers, the tests.
//!
//! Owns which event leads from which state to which, and by whom. Refuses nothing itself.

use super::state::{Event, Owner, State};

/// One move that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// State before.
    pub from: State,
    /// What moves it.
    pub event: Event,
    /// State after.
    pub to: State,
    /// The party that may make the move.
    pub owner: Owner,
}

/// Says that no move leads from a state by an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the workflow has no move {event} in state {from}")]
pub struct Illegal {
    /// The state.
    pub from: State,
    /// The event.
    pub event: Event,
}

/// Lists every move; a pair of state and event occurs at most once.
pub const TRANSITIONS: &[Transition] = {
    use Event as E;
    use Owner::{Client, Generating, Planning};
    use State as S;
    const fn by(owner: Owner, from: State, event: Event, to: State) -> Transition {
        Transition { from, event, to, owner }
    }
    &[
        // Forward.
        by(Planning, S::Idle, E::StartWorkflow, S::StageRunning),
        by(Planning, S::StageRunning, E::StartStep, S::StepRunning),
        by(Planning, S::StageRunning, E::CompleteStage, S::StageCompleted),
        by(Planning, S::StepRunning, E::StartBehavior, S::BehaviorRunning),
        by(Planning, S::StepRunning, E::CompleteStep, S::StepCompleted),
        by(Generating, S::BehaviorRunning, E::StartAction, S::ActionRunning),
        by(Planning, S::BehaviorRunning, E::CompleteBehavior, S::BehaviorCompleted),
        by(Client, S::ActionRunning, E::CompleteAction, S::ActionCompleted),
        by(Client, S::ActionCompleted, E::NextAction, S::ActionRunning),
        by(Planning, S::ActionCompleted, E::CompleteBehavior, S::BehaviorCompleted),
        by(Planning, S::BehaviorCompleted, E::NextBehavior, S::BehaviorRunning),
        by(Planning, S::BehaviorCompleted, E::CompleteStep, S::StepCompleted),
        by(Client, S::StepCompleted, E::NextStep, S::StepRunning),
        by(Planning, S::StepCompleted, E::CompleteStage, S::StageCompleted),
        by(Client, S::StageCompleted, E::NextStage, S::StageRunning),
        by(Planning, S::StageCompleted, E::CompleteWorkflow, S::WorkflowCompleted),
        by(Client, S::WorkflowCompleted, E::Reset, S::Idle),
        // Proposed changes.
        by(Planning, S::ActionRunning, E::UpdateWorkflow, S::WorkflowUpdatePending),
        by(Planning, S::ActionRunning, E::UpdateStep, S::StepUpdatePending),
        by(Client, S::WorkflowUpdatePending, E::UpdateWorkflowConfirmed, S::ActionCompleted),
        by(Client, S::WorkflowUpdatePending, E::UpdateWorkflowRejected, S::ActionCompleted),
        by(Client, S::WorkflowUpdatePending, E::CompleteAction, S::WorkflowUpdatePending),
        by(Client, S::StepUpdatePending, E::UpdateStepConfirmed, S::ActionCompleted),
        by(Client, S::StepUpdatePending, E::UpdateStepRejected, S::Error),
        // Failure and cancellation.
        by(Client, S::StageRunning, E::Fail, S::Error),
        by(Client, S::StageRunning, E::Cancel, S::Cancelled),
        by(Client, S::StepRunning, E::Fail, S::Error),
        by(Client, S::StepRunning, E::Cancel, S::Cancelled),
        by(Client, S::BehaviorRunning, E::Fail, S::Error),
        by(Client, S::BehaviorRunning, E::Cancel, S::Cancelled),
        by(Client, S::ActionRunning, E::Fail, S::Error),
        by(Client, S::ActionRunning, E::Cancel, S::Cancelled),
        by(Client, S::ActionCompleted, E::Fail, S::Error),
        by(Client, S::ActionCompleted, E::Cancel, S::Cancelled),
        by(Client, S::BehaviorCompleted, E::Fail, S::Error),
        by(Client, S::BehaviorCompleted, E::Cancel, S::Cancelled),
        by(Client, S::StepCompleted, E::Fail, S::Error),
        by(Client, S::StepCompleted, E::Cancel, S::Cancelled),
        by(Client, S::StageCompleted, E::Cancel, S::Cancelled),
        by(Client, S::WorkflowUpdatePending, E::Cancel, S::Cancelled),
        by(Client, S::StepUpdatePending, E::Cancel, S::Cancelled),
        // Recovery.
        by(Client, S::Error, E::Reset, S::Idle),
        by(Client, S::Error, E::StartWorkflow, S::StageRunning),
        by(Client, S::Error, E::StartBehavior, S::BehaviorRunning),
        by(Client, S::Cancelled, E::Reset, S::Idle),
    ]
};

/// Finds the move that leads from a state by an event.
pub fn find(from: State, event: Event) -> Option<&'static Transition> {
    TRANSITIONS.iter().find(|t| t.from == from && t.event == event)
}

/// Returns the state that follows.
///
/// # Errors
/// Refuses a pair that the table does not hold.
pub fn next(from: State, event: Event) -> Result<State, Illegal> {
    find(from, event).map(|t| t.to).ok_or(Illegal { from, event })
}
