//! Recovery of the rig: which verdicts make it suspect, which steps are taken, and what proves a
//! step.
//!
//! Owns the order of the ladder, its budgets and its proofs. Refuses to touch anything: a
//! [`StepActions`] takes the steps, and a run's session is one.
//!
//! # Design
//! There is no list of faults and their remedies. Every rig failure takes the ladder from its
//! gentlest step, and after each step the rig must prove that it works: its checks answer, and
//! the known-good image, where there is one, passes on the same place in the same way. A step
//! without a proof is no recovery. An unforeseen fault therefore takes the same steps, and a wrong
//! guess costs only time.
//!
//! `wait` asks for its proof again, with growing pauses: what killed an emulator or kept a device
//! away may do so during the recovery, too, and be over a moment later.

mod canary;
mod ladder;
mod run_ladder;
mod triage;

pub use canary::{LONGEST, canary_plan, declared_plan, deploy_plan, repeatable};
pub use ladder::{ENUMERATION, Means, ladder};
pub use run_ladder::{LadderOutcome, Proof, StepActions, ladder_timeout, run_ladder};
pub use triage::{Suspicion, suspicion};
