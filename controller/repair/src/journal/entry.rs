//! What a row of the journal says.

use serde::{Deserialize, Serialize};

use super::fact::Fact;
use crate::machine::{RepairEvent, RepairState, RepairSubState};

jig_model::words! {
    /// Names what a step leaves behind where it is cut off.
    Effect, "effect class" {
        /// Nothing: it only reads.
        Pure = "pure",
        /// Something that the same step replaces when it runs again.
        Idempotent = "idempotent",
        /// A board in an unknown state.
        Device = "device",
    }
}

/// What a row says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Entry {
    /// The run begins. Always the first row, and only that.
    Begun(Contract),
    /// A step is about to run.
    Intent(Intent),
    /// A step has run.
    Outcome(Outcome),
    /// Another process asks for something.
    Request(Request),
}

impl Entry {
    /// Returns the word by which rows of this kind are found.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Begun(_) => "begun",
            Self::Intent(_) => "intent",
            Self::Outcome(_) => "outcome",
            Self::Request(_) => "request",
        }
    }
}

/// What a run is held to from its first row on: later changes of the task file do not reach it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// What is to be reached, in words.
    pub goal: String,
    /// SHA-256 of the task, in lower-case hex.
    pub task: String,
    /// Commit that every candidate is based on.
    pub base: String,
    /// Where the run ends at the latest.
    pub limits: RepairLimits,
}

/// RepairLimits of a run. Each is finite.
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

impl Default for RepairLimits {
    fn default() -> Self {
        Self {
            iterations: 10,
            wall_s: 30 * 60,
            tokens: 200_000,
            micro_usd: 5_000_000,
            flash_cycles: 200,
        }
    }
}

/// A step that is about to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// The state that it carries out.
    pub state: RepairState,
    /// The part of the state, where it has parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<RepairSubState>,
    /// What it leaves behind where it is cut off.
    pub effect: Effect,
    /// SHA-256 of the run's state that the step is given, in lower-case hex.
    pub input: String,
}

/// What a step has found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The state that was carried out.
    pub state: RepairState,
    /// The part of the state, where it has parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<RepairSubState>,
    /// What moves the run; `None` where the next part of the state follows.
    pub event: Option<RepairEvent>,
    /// Why, in a sentence.
    pub reason: String,
    /// What it rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceRef>,
    /// What later steps need to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
}

/// A place in a file of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceRef {
    /// The file, relative to the folder of the run that wrote it.
    pub file: String,
    /// Offsets of the first byte and of the one behind the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<(u64, u64)>,
}

/// What another process may ask of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub enum Request {
    /// A process drives the run on. Until then no time of the run has passed.
    Resume,
    /// The run is to end.
    Stop {
        /// Why.
        why: String,
    },
    /// What waits for an approval is approved.
    Approve {
        /// Digest of what is approved; any change of it voids the approval.
        digest: String,
    },
    /// What waits is refused: the patch that wants an approval, or the wish for a patch.
    Reject {
        /// Why.
        why: String,
    },
    /// A client proposes a patch, where the run waits for one.
    Submit {
        /// Digest of what waited for it.
        answers: String,
        /// SHA-256 of the diff, by which the run's folder keeps it.
        diff: String,
        /// What the client takes for the cause.
        hypothesis: String,
    },
}
