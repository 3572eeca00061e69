//! What a patch may do: the operator's policy, and the review of a patch by it. Pure.
//!
//! Owns the policy file, the files and lines that are protected where it says nothing, and the
//! score of risk. A patch that a rule refuses is never applied; one that is risky asks for an
//! approval. Rules are data with examples (`rules.toml`).

mod directives;
mod file;
mod globs;
mod review;
mod rules;
mod shadow;

pub use file::Policy;
pub use globs::{GlobError, Globs};
pub use review::{PatchReview, is_test, may_write, review};
pub use rules::RuleError;
pub use shadow::shadowed;

#[cfg(test)]
mod tests;
