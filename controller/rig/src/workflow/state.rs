//! The words of the workflow: its states, its events and their owners.
//!
//! Owns the text forms, which records, tables and scripts rely on. What leads where is not
//! said here but in the table.

use jig_model::words;

words! {
    /// Names where a workflow stands.
    State, "workflow state" {
        /// Nothing has begun.
        Idle = "idle",
        /// A stage is under way.
        StageRunning = "stage_running",
        /// A step is under way.
        StepRunning = "step_running",
        /// A behaviour is under way.
        BehaviorRunning = "behavior_running",
        /// An action is under way.
        ActionRunning = "action_running",
        /// An action is done; what comes next is open.
        ActionCompleted = "action_completed",
        /// A behaviour is done.
        BehaviorCompleted = "behavior_completed",
        /// A step is done.
        StepCompleted = "step_completed",
        /// A stage is done.
        StageCompleted = "stage_completed",
        /// Everything is done.
        WorkflowCompleted = "workflow_completed",
        /// Something failed.
        Error = "error",
        /// The caller asked to stop.
        Cancelled = "cancelled",
        /// A proposed change of the workflow waits for an answer.
        WorkflowUpdatePending = "workflow_update_pending",
        /// A proposed change of a stage's steps waits for an answer.
        StepUpdatePending = "step_update_pending",
    }
}

words! {
    /// Names what can move a workflow.
    Event, "workflow event" {
        /// The workflow begins, or begins again after an error.
        StartWorkflow = "START_WORKFLOW",
        /// A stage's step begins.
        StartStep = "START_STEP",
        /// A step's goal is not reached: a behaviour begins, or begins again after an error.
        StartBehavior = "START_BEHAVIOR",
        /// The actions of a behaviour are known: the first one begins.
        StartAction = "START_ACTION",
        /// An action is done.
        CompleteAction = "COMPLETE_ACTION",
        /// A behaviour is done.
        CompleteBehavior = "COMPLETE_BEHAVIOR",
        /// A step's goal is reached.
        CompleteStep = "COMPLETE_STEP",
        /// A stage's goal is reached.
        CompleteStage = "COMPLETE_STAGE",
        /// The workflow's goal is reached.
        CompleteWorkflow = "COMPLETE_WORKFLOW",
        /// The next action of the behaviour begins.
        NextAction = "NEXT_ACTION",
        /// A further behaviour of the step begins.
        NextBehavior = "NEXT_BEHAVIOR",
        /// The next step of the stage begins.
        NextStep = "NEXT_STEP",
        /// The next stage begins.
        NextStage = "NEXT_STAGE",
        /// Something failed.
        Fail = "FAIL",
        /// The caller asked to stop.
        Cancel = "CANCEL",
        /// Back to the beginning.
        Reset = "RESET",
        /// A change of the workflow is proposed.
        UpdateWorkflow = "UPDATE_WORKFLOW",
        /// The proposed change of the workflow is accepted.
        UpdateWorkflowConfirmed = "UPDATE_WORKFLOW_CONFIRMED",
        /// The proposed change of the workflow is turned down.
        UpdateWorkflowRejected = "UPDATE_WORKFLOW_REJECTED",
        /// A change of a stage's steps is proposed.
        UpdateStep = "UPDATE_STEP",
        /// The proposed change of the steps is accepted.
        UpdateStepConfirmed = "UPDATE_STEP_CONFIRMED",
        /// The proposed change of the steps is turned down.
        UpdateStepRejected = "UPDATE_STEP_REJECTED",
    }
}

words! {
    /// Names the parties that may make a move.
    Owner, "workflow owner" {
        /// Judges goals and decides the strategy.
        Planning = "planning",
        /// Yields the actions of a behaviour.
        Generating = "generating",
        /// Navigates, does the actions, and speaks for the user.
        Client = "client",
    }
}
