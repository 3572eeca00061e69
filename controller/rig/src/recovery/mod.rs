//! Repairing the rig: whom to suspect, which steps to take, and what proves that they helped.
//!
//! Owns the order of the ladder, its budgets and its proofs. Refuses to touch anything: a
//! [`StepActions`] takes the steps, and a run's session is one.
//!
//! # Design
//! There is no list of faults and their recoveries. Whatever went wrong, the ladder is run from
//! its gentlest step, and after each step the rig must prove that it works: its checks answer,
//! and where a known-good image is at hand, that image passes on the same place in the same
//! way. A step without a proof is no recovery. So a fault nobody foresaw is met by the same steps,
//! and the worst a wrong guess costs is time.

mod canary;
mod ladder;
mod run_ladder;
mod triage;

pub use canary::{LONGEST, canary_plan, declared_plan, deploy_plan, repeatable};
pub use ladder::{ENUMERATION, Means, ladder};
pub use run_ladder::{LadderOutcome, Proof, StepActions, ladder_timeout, run_ladder};
pub use triage::{Suspicion, suspicion};
