//! Plans: what is to be done, in which order, at what risk, and how it is verified. Pure.
//!
//! # Design
//! *Two shapes.* A [`PlanDraft`] is what a planner writes, be it the grammar, a person or a model: tools by
//! name, parameters that may refer to earlier results, dependencies by number. It is lowered to a [`SessionPlan`]:
//! every tool exists, every call fits its schema, every reference points backwards. Nothing carries out a
//! draft.

mod danger;
mod draft;
mod lower;
mod problem;
mod references;
mod types;
mod waves;

pub use danger::{BoardNature, CallDanger, DangerousCall, call_danger, confirmation_digest};
pub use draft::{MAX_DRAFT, PlanDraft, PlanDraftStep, read_draft};
pub use lower::{PlanOrigin, lower};
pub(crate) use lower::{bound_call, verification_call};
pub use problem::{PlanProblem, VerificationCommandError};
pub use references::{StepOutcomes, resolve};
pub use types::{
    Artifact, ArtifactKind, RiskLevel, SessionPlan, SessionStep, StepStatus, ToolCallTemplate,
    VerificationMode, VerificationPolicy,
};
pub use waves::next_wave;
