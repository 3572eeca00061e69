//! Decides after each iteration whether a repair run has converged. Pure.
//!
//! Owns the criteria, the indicators computed from the counts of passed tests, the order in which
//! the outcomes are tried, and what a plateau means in each mode. Knows no run, clock or report.

mod counts;
mod criteria;
mod decide;
mod indicators;
mod plateau;

pub use counts::{IterationCounts, TestCounts};
pub use criteria::ConvergenceCriteria;
pub use decide::{ConvergenceDecision, ConvergenceOutcome, decide};
pub use plateau::{ExecutionMode, PlateauOutcome, PlateauStrategy, handle_plateau};
