//! Test plans: stages > steps > behaviours > actions, read from TOML.
//!
//! Owns the plan language, its limits and its defaults. Refuses to know boards: whether a
//! place has what a plan names is found out when the two are bound.

mod action;
mod built_in;
mod check;
mod lower;
mod raw;
mod types;
mod update;

pub use action::defaults;
pub use built_in::{RunWaits, command_plan, console_plan, default_plan};
pub use check::MAX_WAIT;
pub use lower::MAX_ATTEMPTS;
pub use types::{
    Action, ActionKind, Assertion, Behavior, Markers, Plan, PowerOp, Requirements, Stage, Step,
};

#[cfg(test)]
mod tests;
