//! What is known of a place's health, and how much it takes to change it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Names how a place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthState {
    /// Nothing speaks against it.
    Healthy,
    /// Something of the rig failed lately.
    Suspect,
    /// The rig failed again and again, or could not be recovered.
    Unhealthy,
    /// Its state is unknown; it takes proof to use it again.
    Quarantined,
}

impl HealthState {
    /// Lists all of them, from the best to the worst.
    pub const ALL: &'static [Self] =
        &[Self::Healthy, Self::Suspect, Self::Unhealthy, Self::Quarantined];

    /// Returns the stable text form, as used in JSON and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Suspect => "suspect",
            Self::Unhealthy => "unhealthy",
            Self::Quarantined => "quarantined",
        }
    }

    /// Tells whether a place in this state may be relied on.
    pub fn usable(self) -> bool {
        match self {
            Self::Healthy | Self::Suspect => true,
            Self::Unhealthy | Self::Quarantined => false,
        }
    }

    pub(super) fn of_text(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|state| state.as_str() == text)
    }
}

impl std::fmt::Display for HealthState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is known of the health of one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceHealth {
    /// How it is.
    pub state: HealthState,
    /// When it became so; nothing if it was never otherwise.
    pub since: Option<Timestamp>,
    /// Why it is so, in one line; empty if nothing ever happened. May quote anything: escape it
    /// before printing.
    pub why: String,
    /// How many passes in a row are missing until it is healthy; 0 if it is.
    pub passes_needed: u32,
    /// Passes in a row since the last failure, while it is not healthy.
    pub passes: u32,
    /// Failures in a row since the last pass.
    pub failures: u32,
}

impl PlaceHealth {
    /// Returns the health of a place whose name other devices had before.
    pub fn of_changed_place(before: &str) -> Self {
        let before: String = before.chars().take(200).collect();
        let why =
            format!("nothing is known yet: its name was that of another place before ({before})");
        Self { why, ..Self::unknown_to_anybody() }
    }

    /// Returns the health of a place without an event.
    pub fn unknown_to_anybody() -> Self {
        Self {
            state: HealthState::Healthy,
            since: None,
            why: String::new(),
            passes_needed: 0,
            passes: 0,
            failures: 0,
        }
    }
}

/// Says what leads out of quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// A known-good image that runs.
    Canary,
    /// Checks that all pass, for places without a known-good image. A canary counts as well.
    Checks,
}

/// Whose health it is, and how much it takes to change its state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HealthSubject {
    /// How much it takes.
    pub policy: HealthPolicy,
    /// The board and the devices that are the place, in words that stay the same as long as these do.
    /// What was noted of other ones is not known of these. Empty where it is not told.
    pub device: String,
}

impl From<HealthPolicy> for HealthSubject {
    fn from(policy: HealthPolicy) -> Self {
        Self { policy, device: String::new() }
    }
}

/// How much it takes to change the state of a place. A 0 counts as 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthPolicy {
    /// Failures in a row that make a place unhealthy.
    pub failures_to_unhealthy: u32,
    /// Passes in a row that make a suspect or unhealthy place healthy.
    pub passes_to_healthy: u32,
    /// Proofs in a row that lead out of quarantine.
    pub passes_out_of_quarantine: u32,
    /// What counts as such a proof.
    pub proof: Proof,
}

impl Default for HealthPolicy {
    /// The second failure in a row is no accident any more; a fault that comes and goes rarely
    /// leaves out two passes in a row; and where nothing is known, three.
    fn default() -> Self {
        Self {
            failures_to_unhealthy: 2,
            passes_to_healthy: 2,
            passes_out_of_quarantine: 3,
            proof: Proof::Canary,
        }
    }
}

impl HealthPolicy {
    /// Returns how many passes in a row lead from a state to health.
    pub fn passes_out_of(&self, state: HealthState) -> u32 {
        match state {
            HealthState::Healthy => 0,
            HealthState::Suspect | HealthState::Unhealthy => self.passes_to_healthy.max(1),
            HealthState::Quarantined => self.passes_out_of_quarantine.max(1),
        }
    }
}
