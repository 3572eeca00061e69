//! The planner: thirteen states, and the events that the work of each state brings about.
//!
//! # Design
//! The source has arrows without events; each event here is the condition of an arrow. Two places of the
//! source disagree about `ITERATING`: the figure leads back to `PLANNING`, the code to `EXECUTING` with a
//! plan that was refined on the way. The code holds here, being exact about what happens between.

jig_model::words! {
    /// Names where the planner stands.
    PlannerState, "state of the planner" {
        /// The session begins.
        Init = "INIT",
        /// The request is parsed.
        Parsing = "PARSING",
        /// The plan is made.
        Planning = "PLANNING",
        /// The next step is looked for.
        Executing = "EXECUTING",
        /// A step is carried out.
        StepExec = "STEP_EXEC",
        /// A step has ended.
        StepDone = "STEP_DONE",
        /// All steps are done.
        PlanDone = "PLAN_DONE",
        /// The results are evaluated.
        Evaluating = "EVALUATING",
        /// The evaluation has passed.
        Passed = "PASSED",
        /// The plan is refined.
        Iterating = "ITERATING",
        /// The task is over.
        Completed = "COMPLETED",
        /// The task has failed.
        Failed = "FAILED",
        /// The session is over.
        Done = "DONE",
    }
}

jig_model::words! {
    /// Names the condition of an arrow.
    PlannerEvent, "event of the planner" {
        /// The session is initialised.
        Initialized = "initialized",
        /// The request is parsed.
        Parsed = "parsed",
        /// The plan is made.
        Planned = "planned",
        /// A step is left.
        StepLeft = "step_left",
        /// No step is left.
        NoStepLeft = "no_step_left",
        /// The step has a result.
        StepResult = "step_result",
        /// The step succeeded.
        StepOk = "step_ok",
        /// The step is retried, as it is or adjusted.
        StepAdjusted = "step_adjusted",
        /// The step is not retried.
        StepGivenUp = "step_given_up",
        /// The results are to be evaluated.
        EvaluationDue = "evaluation_due",
        /// The evaluation has passed.
        EvaluationPassed = "evaluation_passed",
        /// The evaluation has not passed.
        EvaluationFailed = "evaluation_failed",
        /// The case is kept.
        CaseStored = "case_stored",
        /// The plan is refined.
        PlanRefined = "plan_refined",
        /// No iteration is left, or nothing would change.
        IterationsUsedUp = "iterations_used_up",
        /// The session is closed.
        Closed = "closed",
        /// Something that no state handles.
        Exception = "exception",
    }
}

/// Says that no transition leads from a state of the planner by an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the planner has no event {event} in state {from}")]
pub struct IllegalPlannerEvent {
    /// The state.
    pub from: PlannerState,
    /// The event.
    pub event: PlannerEvent,
}

type Row = (PlannerState, PlannerEvent, PlannerState);

pub(super) const ROWS: &[Row] = {
    use PlannerEvent as E;
    use PlannerState as S;
    &[
        (S::Init, E::Initialized, S::Parsing),
        (S::Parsing, E::Parsed, S::Planning),
        (S::Planning, E::Planned, S::Executing),
        (S::Executing, E::StepLeft, S::StepExec),
        (S::Executing, E::NoStepLeft, S::PlanDone),
        (S::StepExec, E::StepResult, S::StepDone),
        (S::StepDone, E::StepOk, S::Executing),
        (S::StepDone, E::StepAdjusted, S::StepExec),
        (S::StepDone, E::StepGivenUp, S::Failed),
        (S::PlanDone, E::EvaluationDue, S::Evaluating),
        (S::Evaluating, E::EvaluationPassed, S::Passed),
        (S::Evaluating, E::EvaluationFailed, S::Iterating),
        (S::Passed, E::CaseStored, S::Completed),
        (S::Iterating, E::PlanRefined, S::Executing),
        (S::Iterating, E::IterationsUsedUp, S::Completed),
        (S::Completed, E::Closed, S::Done),
        (S::Failed, E::CaseStored, S::Done),
    ]
};

/// Returns the state that follows. An exception leads to `FAILED` from every state in which the planner
/// is at work.
///
/// # Errors
/// Refuses a pair that the table does not hold.
pub fn next(from: PlannerState, event: PlannerEvent) -> Result<PlannerState, IllegalPlannerEvent> {
    let at_work =
        !matches!(from, PlannerState::Completed | PlannerState::Failed | PlannerState::Done);
    if event == PlannerEvent::Exception && at_work {
        return Ok(PlannerState::Failed);
    }
    let row = ROWS.iter().find(|row| row.0 == from && row.1 == event);
    row.map(|row| row.2).ok_or(IllegalPlannerEvent { from, event })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_thirteen_states_and_each_is_reached_and_left() {
        assert_eq!(PlannerState::ALL.len(), 13);
        let to: BTreeSet<_> = ROWS.iter().map(|row| row.2).collect();
        let from: BTreeSet<_> = ROWS.iter().map(|row| row.0).collect();
        for &state in PlannerState::ALL {
            assert_eq!(to.contains(&state), state != PlannerState::Init, "{state}");
            assert_eq!(from.contains(&state), state != PlannerState::Done, "{state}");
        }
    }

    #[test]
    fn a_task_that_failed_is_never_completed() {
        let mut reached = BTreeSet::from([PlannerState::Failed]);
        loop {
            let more = ROWS.iter().filter(|row| reached.contains(&row.0)).map(|row| row.2);
            let more: BTreeSet<_> = more.collect();
            if more.is_subset(&reached) {
                break;
            }
            reached.extend(more);
        }
        assert_eq!(reached, BTreeSet::from([PlannerState::Failed, PlannerState::Done]));
    }
}
