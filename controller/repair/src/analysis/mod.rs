//! Analyses the trend of a repair run over its last iterations. Pure.
//!
//! Owns the presets, the five weighted scores, and the three rules by which a history counts as
//! converged. It advises and is recorded; [`crate::convergence`] ends runs.

mod analyse;
mod iteration;
mod preset;
mod scores;
mod slope;

pub use analyse::{ConvergenceAnalysis, Trend, analyse};
pub use iteration::IterationResult;
pub use preset::{AnalysisCriteria, Preset};
