//! Two state machines, pure: the session as a person sees it, and the planner inside it.
//!
//! # Design
//! *Two machines, one journal.* The session's states say what a person can do now: answer, confirm,
//! cancel. The planner's states say which step of which iteration is next. The journal holds the events
//! of both; neither machine knows the other. While the planner is in `INIT` and `PARSING` the session
//! builds its context; from `EXECUTING` to `PLAN_DONE` it executes; `EVALUATING` and `PASSED` are its
//! verification, `ITERATING` its recovery.

mod operator_event;
mod operator_table;
mod planner_table;
mod render;

pub use operator_event::{ConfirmScope, OperatorEvent, OperatorTrigger};
pub use operator_table::{IllegalOperatorEvent, OperatorEffect, OperatorState, next, transition};
pub use planner_table::{IllegalPlannerEvent, PlannerEvent, PlannerState, next as planner_next};
pub use render::{render_operator, render_planner};
