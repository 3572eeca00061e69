//! The limits of a run.

use serde::{Deserialize, Serialize};

use crate::analysis::{AnalysisCriteria, Preset};

/// Where a run ends at the latest. Each limit is finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RepairLimits {
    /// Most iterations.
    pub iterations: u64,
    /// Longest time in seconds from the first row on.
    pub wall_s: u64,
    /// Most tokens of all agents.
    pub tokens: u64,
    /// Most money, in millionths of a US dollar.
    pub micro_usd: u64,
    /// Most times that a real board is flashed.
    pub flash_cycles: u64,
}

impl RepairLimits {
    /// Returns the limits of a task that names none.
    pub fn of(preset: Preset) -> Self {
        Self {
            iterations: AnalysisCriteria::of(preset).max_iterations.into(),
            wall_s: 30 * 60,
            tokens: 200_000,
            micro_usd: 5_000_000,
            flash_cycles: 200,
        }
    }
}

impl Default for RepairLimits {
    fn default() -> Self {
        Self::of(Preset::Balanced)
    }
}
