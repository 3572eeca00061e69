//! What a row of the journal says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fact::Fact;
use crate::machine::{RepairEvent, RepairState, RepairSubState};
use crate::task::RepairLimits;

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

/// What a run is held to from its first row on: later changes of the task file do not reach it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Contract {
    /// What is to be reached, in words.
    pub goal: String,
    /// SHA-256 of the task, in lower-case hex.
    pub task: String,
    /// Commit that every candidate is based on.
    pub base: String,
    /// Where the run ends at the latest.
    pub limits: RepairLimits,
    /// SHA-256 in lower-case hex of each file that the run has copied from the task, such as the
    /// held-out plan; empty in the journals of programs that did not write it.
    #[serde(default)]
    pub copies: BTreeMap<String, String>,
    /// Files of the task, such as its plan, that lie in the repository, as paths below it.
    #[serde(default)]
    pub own_files: Vec<String>,
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
    /// How often it flashes a real board at most. So often counts where the step is cut off.
    #[serde(default)]
    pub flashes: u8,
}

/// A step that has run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The state that was carried out.
    pub state: RepairState,
    /// The part of the state, where it has parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<RepairSubState>,
    /// What the step has found.
    #[serde(flatten)]
    pub result: StepResult,
}

/// What a step has found: everything of an outcome but the state, which the driver knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
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

impl StepResult {
    /// A result without evidence or facts.
    pub fn of(event: RepairEvent, reason: impl Into<String>) -> Self {
        Self { event: Some(event), reason: reason.into(), evidence: Vec::new(), facts: Vec::new() }
    }

    /// Adds a fact.
    #[must_use]
    pub fn with(mut self, fact: Fact) -> Self {
        self.facts.push(fact);
        self
    }
}

/// A place in a file of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceRef {
    /// The absolute path of the file: it lies in the folder of a run of the rig.
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
    Submit(SubmittedPatch),
}

/// A patch of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmittedPatch {
    /// Digest of what waited for it.
    pub answers: String,
    /// SHA-256 of the diff, by which the run's folder keeps it.
    pub diff: String,
    /// What the client takes for the cause; hostile text.
    pub hypothesis: String,
}
