//! Repairing the rig: whom to suspect, which steps to take, and what proves that they helped.
//!
//! Owns the order of the ladder, its budgets and its proofs. Refuses to touch anything: a
//! [`Bedside`] takes the steps, and a run's session is one.
//!
//! # Design
//! There is no list of faults and their cures. Whatever went wrong, the ladder is climbed from
//! its gentlest step, and after each step the rig must prove that it works: its checks answer,
//! and where a known-good image is at hand, that image passes on the same place in the same
//! way. A step without a proof is no cure. So a fault nobody foresaw is met by the same steps,
//! and the worst a wrong guess costs is time.

mod canary;
mod climb;
mod ladder;
mod triage;

pub use canary::{LONGEST, canary_plan, declared_plan, deploy_plan, repeatable};
pub use climb::{Bedside, Climbed, Proof, climb, climb_within};
pub use ladder::{ENUMERATION, Means, ladder};
pub use triage::{Suspicion, suspicion};
