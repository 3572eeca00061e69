//! Why something is captured.

use serde::{Deserialize, Serialize};

/// Why something is captured. The order is that of their priorities: P0, then P1, then P2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureTrigger {
    /// P0: it succeeded as a whole.
    Success,
    /// P0: a person marked it.
    Marked,
    /// P1: more than half was fixed, and it is clearly better.
    Partial,
    /// P2: the same failure several times.
    RepeatedFailure,
    /// P2: as many similar fixes as the threshold asks for.
    Threshold,
}

impl CaptureTrigger {
    /// Returns the priority: 0 is the most urgent.
    pub fn priority(self) -> u8 {
        match self {
            Self::Success | Self::Marked => 0,
            Self::Partial => 1,
            Self::RepeatedFailure | Self::Threshold => 2,
        }
    }
}
