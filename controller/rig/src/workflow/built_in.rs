//! The planner and generator that do what the plan says.

use jig_model::plan::{Action, Plan};
use jig_model::protocol::BoxFuture;

use super::planning::{
    Decision, Generator, Planner, PlannerError, PlannerObservation, PlanningResponse, Proposal,
    UpdateDecider,
};
use super::state::State;

/// Judges by the plan: a goal is reached when everything that stands under it was done.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanPlanner;

impl Planner for PlanPlanner {
    fn check_goal<'a>(
        &'a mut self,
        observation: &'a PlannerObservation<'a>,
    ) -> BoxFuture<'a, Result<PlanningResponse, PlannerError>> {
        Box::pin(std::future::ready(Ok(judge(observation))))
    }
}

fn judge(observation: &PlannerObservation<'_>) -> PlanningResponse {
    let PlannerObservation { plan, position, .. } = observation;
    match observation.state() {
        State::ActionCompleted | State::BehaviorRunning => {
            let more = position.has_next_behavior(plan);
            PlanningResponse::new(!more, more)
        }
        State::StepCompleted => PlanningResponse::new(!position.has_next_step(plan), false),
        State::StageCompleted => PlanningResponse::new(!position.has_next_stage(plan), false),
        State::Idle
        | State::StageRunning
        | State::StepRunning
        | State::ActionRunning
        | State::BehaviorCompleted
        | State::WorkflowCompleted
        | State::Error
        | State::Cancelled
        | State::WorkflowUpdatePending
        | State::StepUpdatePending => PlanningResponse::new(false, false),
    }
}

/// Yields the actions that the plan lists.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanGenerator;

impl Generator for PlanGenerator {
    fn actions<'a>(
        &'a mut self,
        observation: &'a PlannerObservation<'a>,
    ) -> BoxFuture<'a, Result<Vec<Action>, PlannerError>> {
        let behavior = observation.position.behavior(observation.plan);
        let actions = behavior.map(|b| b.actions.clone()).unwrap_or_default();
        Box::pin(std::future::ready(Ok(actions)))
    }
}

/// Turns every proposal down: where no planner watches, a plan is run as it was written.
#[derive(Debug, Clone, Copy, Default)]
pub struct RejectUpdates;

impl UpdateDecider for RejectUpdates {
    fn decide<'a>(&'a mut self, _: &'a Proposal, _: &'a Plan) -> BoxFuture<'a, Decision> {
        Box::pin(std::future::ready(Decision::Reject))
    }
}
