//! Agents: who proposes patches. An agent sees a bundle of evidence and answers with diffs; it can
//! neither run the rig, nor report a result, nor end a run.

pub mod analyst;
pub mod command;
pub mod http;
mod hypothesis;
pub mod templates;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jig_model::protocol::BoxFuture;

use crate::journal::Usage;

/// What an agent is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposalRequest {
    /// Folder with the evidence: the files of [`crate::bundle`].
    pub bundle: PathBuf,
    /// File with all suspect lines, of which the bundle has the first: rows of
    /// [`crate::localise::RankedSuspect`].
    pub suspects: PathBuf,
    /// Folder of the agent's own, empty, for logs and scratch files.
    pub scratch: PathBuf,
    /// The commit that a patch is made for.
    pub base: String,
    /// Its C sources, by their paths.
    pub sources: Arc<BTreeMap<String, String>>,
    /// Most that the answer may use.
    pub budget: AgentBudget,
}

/// What an agent may use for one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentBudget {
    /// Tokens and money that the run has left.
    pub left: Usage,
    /// Time for the answer.
    pub time: Duration,
}

/// A proposed change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchProposal {
    /// The change as a unified diff; hostile text.
    pub diff: String,
    /// What the agent takes for the cause; hostile text.
    pub hypothesis: String,
}

/// What an agent answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// Changes, the one that the agent likes best first.
    pub proposals: Vec<PatchProposal>,
    /// What they cost, all together.
    pub usage: Usage,
    /// What a person should know about it, such as a cost that is an estimate; may quote hostile text.
    pub notes: Vec<String>,
}

/// Says why an agent gave no answer that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct AgentError {
    /// Why; may quote hostile text.
    pub why: String,
    /// What it cost all the same.
    pub usage: Usage,
}

/// Proposes patches.
pub trait RepairAgent: Send + Sync {
    /// Tells whether it can be asked for a change that shows a failure and repairs nothing.
    fn can_diagnose(&self) -> bool {
        true
    }

    /// Tells whether it answers the same question always in the same way.
    fn is_deterministic(&self) -> bool {
        false
    }

    /// Tells whether tokens and money of its answers are known.
    fn counts_usage(&self) -> bool {
        true
    }

    /// Tells whether it runs a program, which could write what the user can write.
    fn runs_program(&self) -> bool {
        false
    }

    /// Asks for patches. Dropping the future ends what was started for the answer.
    fn propose<'a>(
        &'a self,
        request: &'a ProposalRequest,
    ) -> BoxFuture<'a, Result<Answer, AgentError>>;
}
