//! Planners: who makes and refines the plan of a session.
//!
//! A planner proposes and decides nothing: what it writes is lowered, judged and confirmed like anything
//! else. [`WordsPlanner`] needs no model.

mod questions;
mod steps;
mod targets;
mod words;

use jig_model::protocol::BoxFuture;

use crate::context::SessionContext;
use crate::error::OperatorError;
use crate::grammar::UserRequest;
use crate::journal::ClarifyingQuestion;
use crate::plan::{PlanDraft, SessionPlan};

pub(crate) use questions::history;
pub use targets::{RequestAnswers, clarifying_questions};
pub use words::WordsPlanner;

/// What a planner is given.
#[derive(Debug, Clone)]
pub struct PlanningTask<'s> {
    /// The request, as it is understood.
    pub request: &'s UserRequest,
    /// What the plan depends on.
    pub context: &'s SessionContext,
    /// Answers to the questions of the session, by their slots.
    pub answers: &'s RequestAnswers,
}

/// What is known of a plan that has not reached its goal.
#[derive(Debug, Clone)]
pub struct PlanFeedback<'s> {
    /// The plan.
    pub plan: &'s SessionPlan,
    /// Why it has not.
    pub error: &'s OperatorError,
    /// The steps whose runs blame the rig and not the target.
    pub rig_failed: &'s [u32],
}

/// Makes plans.
pub trait SessionPlanner: Send + Sync {
    /// Makes a plan.
    fn plan<'a>(
        &'a self,
        task: PlanningTask<'a>,
    ) -> BoxFuture<'a, Result<PlanDraft, OperatorError>>;

    /// Refines a plan after its evaluation; nothing where there is nothing to refine.
    fn refine<'a>(
        &'a self,
        feedback: PlanFeedback<'a>,
    ) -> BoxFuture<'a, Result<Option<PlanDraft>, OperatorError>>;

    /// Finds what is missing in a request, and changes its plan. At most three questions.
    ///
    /// # Errors
    /// Words of the request that stand where a board is named are none.
    fn questions(
        &self,
        request: &UserRequest,
        context: &SessionContext,
        answers: &RequestAnswers,
    ) -> Result<Vec<ClarifyingQuestion>, OperatorError> {
        clarifying_questions(request, context, answers)
    }
}
