//! Test plans: stages > steps > behaviours > actions, read from TOML.

mod types;

pub use types::{
    Action, ActionKind, Assertion, Behavior, Markers, Plan, PowerOp, Requirements, Stage, Step,
};
