//! The one table of a session's transitions. The driver, the fold, the renderers and the tests read it.
//!
//! # Design
//! The source of the table gives most arrows without an event, or without a condition. Where it leaves
//! something open, the table decides:
//!
//! - Intake may call tools that read: whether a board is missing is not to be seen from words alone.
//! - An answer leads back to `INTAKE`: what was missing is judged anew, with the answer.
//! - A planner may find that a fact is missing which intake could not see: `PLANNING` leads to `CLARIFYING`, as
//!   where a request is unclear. The answer leads through `INTAKE` to a plan.
//! - A refusal, and a confirmation that does not come in time, lead to `SUMMARIZING`: nothing was done,
//!   and the summary says so.
//! - Where there is no plan to repair yet, a failure leads to `SUMMARIZING` and not to `RECOVERING`.
//! - A repair whose actions nothing has confirmed waits in `AWAITING_CONFIRMATION` as a plan does.
//! - `CANCEL` leads to `SUMMARIZING` from everywhere: a person who stops has to know what was done.

use super::operator_event::{OperatorEvent, OperatorTrigger};

jig_model::words! {
    /// Names where a session stands.
    OperatorState, "state of a session" {
        /// Nothing was asked.
        Idle = "IDLE",
        /// The request is parsed, and its rights and risks are judged.
        Intake = "INTAKE",
        /// Questions are asked.
        Clarifying = "CLARIFYING",
        /// Boards, runs and health that the plan depends on are read.
        ContextBuilding = "CONTEXT_BUILDING",
        /// The plan is made.
        Planning = "PLANNING",
        /// The steps are carried out.
        Executing = "EXECUTING",
        /// What was done is verified.
        Verifying = "VERIFYING",
        /// The summary is written.
        Summarizing = "SUMMARIZING",
        /// Dangerous actions wait for a confirmation.
        AwaitingConfirmation = "AWAITING_CONFIRMATION",
        /// A failure is handled: retry, degrade, roll back.
        Recovering = "RECOVERING",
        /// The round is over.
        Done = "DONE",
    }
}

jig_model::words! {
    /// Names what a transition asks the driver to do.
    OperatorEffect, "effect of a transition" {
        /// Parse the request and judge it.
        Parse = "parse",
        /// Ask what is missing.
        Ask = "ask",
        /// Read what the plan depends on.
        GatherContext = "gather_context",
        /// Make a plan.
        MakePlan = "make_plan",
        /// Show the dangerous actions and wait.
        ShowDanger = "show_danger",
        /// Carry out the steps that are next.
        RunSteps = "run_steps",
        /// Call the tool.
        CallTool = "call_tool",
        /// Keep what the tool has answered.
        KeepResult = "keep_result",
        /// Verify what was done.
        Verify = "verify",
        /// Handle the failure.
        Recover = "recover",
        /// Write the summary.
        Summarize = "summarize",
        /// End the round.
        Close = "close",
        /// Be ready for the next request.
        Rest = "rest",
    }
}

/// Says that no transition leads from a state by an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a session has no event {trigger} in state {from}")]
pub struct IllegalOperatorEvent {
    /// The state.
    pub from: OperatorState,
    /// The event.
    pub trigger: OperatorTrigger,
}

type Row = (OperatorState, OperatorTrigger, OperatorState, OperatorEffect);

pub(super) const ROWS: &[Row] = {
    use OperatorEffect as F;
    use OperatorState as S;
    use OperatorTrigger as T;
    &[
        (S::Idle, T::UserMessage, S::Intake, F::Parse),
        (S::Intake, T::ToolCallRequest, S::Intake, F::CallTool),
        (S::Intake, T::ToolCallResult, S::Intake, F::KeepResult),
        (S::Intake, T::ContextMissing, S::Clarifying, F::Ask),
        (S::Intake, T::RequestUnderstood, S::ContextBuilding, F::GatherContext),
        (S::Intake, T::NotPossible, S::Summarizing, F::Summarize),
        (S::Intake, T::Timeout, S::Summarizing, F::Summarize),
        (S::Intake, T::Cancel, S::Summarizing, F::Summarize),
        (S::Clarifying, T::ClarificationAnswer, S::Intake, F::Parse),
        (S::Clarifying, T::Timeout, S::Summarizing, F::Summarize),
        (S::Clarifying, T::Cancel, S::Summarizing, F::Summarize),
        (S::ContextBuilding, T::ToolCallRequest, S::ContextBuilding, F::CallTool),
        (S::ContextBuilding, T::ToolCallResult, S::ContextBuilding, F::KeepResult),
        (S::ContextBuilding, T::ContextReady, S::Planning, F::MakePlan),
        (S::ContextBuilding, T::NotPossible, S::Summarizing, F::Summarize),
        (S::ContextBuilding, T::Timeout, S::Summarizing, F::Summarize),
        (S::ContextBuilding, T::Cancel, S::Summarizing, F::Summarize),
        (S::Planning, T::ContextMissing, S::Clarifying, F::Ask),
        (S::Planning, T::DangerousPlanReady, S::AwaitingConfirmation, F::ShowDanger),
        (S::Planning, T::PlanReady, S::Executing, F::RunSteps),
        (S::Planning, T::NotPossible, S::Summarizing, F::Summarize),
        (S::Planning, T::Timeout, S::Summarizing, F::Summarize),
        (S::Planning, T::Cancel, S::Summarizing, F::Summarize),
        (S::Executing, T::ToolCallRequest, S::Executing, F::CallTool),
        (S::Executing, T::ToolCallResult, S::Executing, F::KeepResult),
        (S::Executing, T::StepFailed, S::Recovering, F::Recover),
        (S::Executing, T::StepsDone, S::Verifying, F::Verify),
        (S::Executing, T::Timeout, S::Recovering, F::Recover),
        (S::Executing, T::Cancel, S::Summarizing, F::Summarize),
        (S::Verifying, T::ToolCallRequest, S::Verifying, F::CallTool),
        (S::Verifying, T::ToolCallResult, S::Verifying, F::KeepResult),
        (S::Verifying, T::VerificationPassed, S::Summarizing, F::Summarize),
        (S::Verifying, T::VerificationFailed, S::Recovering, F::Recover),
        (S::Verifying, T::Timeout, S::Recovering, F::Recover),
        (S::Verifying, T::Cancel, S::Summarizing, F::Summarize),
        (S::Summarizing, T::Summarized, S::Done, F::Close),
        (S::AwaitingConfirmation, T::ConfirmYes, S::Executing, F::RunSteps),
        (S::AwaitingConfirmation, T::ConfirmNo, S::Summarizing, F::Summarize),
        (S::AwaitingConfirmation, T::Timeout, S::Summarizing, F::Summarize),
        (S::AwaitingConfirmation, T::Cancel, S::Summarizing, F::Summarize),
        (S::Recovering, T::Repairable, S::Executing, F::RunSteps),
        (S::Recovering, T::DangerousPlanReady, S::AwaitingConfirmation, F::ShowDanger),
        (S::Recovering, T::Blocked, S::Summarizing, F::Summarize),
        (S::Recovering, T::Timeout, S::Summarizing, F::Summarize),
        (S::Recovering, T::Cancel, S::Summarizing, F::Summarize),
        (S::Done, T::Closed, S::Idle, F::Rest),
    ]
};

/// Returns the state that follows, and what is to be done there.
///
/// # Errors
/// Refuses a pair that the table does not hold.
pub fn next(
    from: OperatorState,
    event: &OperatorEvent,
) -> Result<(OperatorState, OperatorEffect), IllegalOperatorEvent> {
    transition(from, event.trigger())
}

/// Returns the same for an event without what it carries.
///
/// # Errors
/// Refuses a pair that the table does not hold.
pub fn transition(
    from: OperatorState,
    trigger: OperatorTrigger,
) -> Result<(OperatorState, OperatorEffect), IllegalOperatorEvent> {
    let row = ROWS.iter().find(|row| row.0 == from && row.1 == trigger);
    row.map(|row| (row.2, row.3)).ok_or(IllegalOperatorEvent { from, trigger })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_pair_occurs_once_and_each_trigger_and_effect_is_used() {
        let pairs: BTreeSet<_> = ROWS.iter().map(|row| (row.0, row.1)).collect();
        assert_eq!(pairs.len(), ROWS.len());
        let triggers: BTreeSet<_> = ROWS.iter().map(|row| row.1).collect();
        assert_eq!(triggers.len(), OperatorTrigger::ALL.len());
        let effects: BTreeSet<_> = ROWS.iter().map(|row| row.3).collect();
        assert_eq!(effects.len(), OperatorEffect::ALL.len());
    }

    #[test]
    fn every_state_is_reached_and_left() {
        let to: BTreeSet<_> = ROWS.iter().map(|row| row.2).collect();
        let from: BTreeSet<_> = ROWS.iter().map(|row| row.0).collect();
        assert_eq!(to.len(), OperatorState::ALL.len());
        assert_eq!(from.len(), OperatorState::ALL.len());
    }

    #[test]
    fn a_state_that_is_entered_asks_for_the_same_whatever_led_there() {
        let entered = ROWS.iter().filter(|row| row.0 != row.2);
        let effects: BTreeSet<_> = entered.map(|row| (row.2, row.3)).collect();
        assert_eq!(effects.len(), OperatorState::ALL.len());
    }

    #[test]
    fn nothing_dangerous_is_executed_without_a_confirmation() {
        use OperatorTrigger as T;
        let into = ROWS.iter().filter(|row| row.2 == OperatorState::Executing && row.0 != row.2);
        let by: BTreeSet<_> = into.map(|row| row.1).collect();
        assert_eq!(by, BTreeSet::from([T::PlanReady, T::ConfirmYes, T::Repairable]));
    }

    #[test]
    fn a_session_at_work_can_always_be_cancelled() {
        for &state in OperatorState::ALL {
            let resting = matches!(
                state,
                OperatorState::Idle | OperatorState::Done | OperatorState::Summarizing
            );
            let cancelled = transition(state, OperatorTrigger::Cancel).map(|(to, _)| to);
            assert_eq!(cancelled == Ok(OperatorState::Summarizing), !resting, "{state}");
        }
    }
}
