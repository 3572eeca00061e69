//! A task that can be carried out.

use std::path::PathBuf;
use std::time::Duration;

use crate::analysis::Preset;
use crate::convergence::ExecutionMode;
use crate::journal::RepairLimits;

/// What a repair run is to reach, and what it may use. Paths are as written: relative to the file.
#[derive(Debug, Clone, PartialEq)]
pub struct RepairTask {
    /// What is to be reached, in words.
    pub goal: String,
    /// Git work tree.
    pub repo: PathBuf,
    /// A place or a board.
    pub board: String,
    /// Plan with the tests that must pass.
    pub plan: PathBuf,
    /// Plan that decides at the end and that no agent sees.
    pub held_out: Option<PathBuf>,
    /// Whether a person can be asked.
    pub mode: ExecutionMode,
    /// Thresholds of the analysis.
    pub preset: Preset,
    /// Agents, in the order in which they are asked.
    pub agents: Vec<AgentRef>,
    /// How the firmware is built.
    pub build: BuildTask,
    /// Where the run ends at the latest.
    pub limits: RepairLimits,
    /// The policy file.
    pub policy: Option<PathBuf>,
}

/// How the firmware is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildTask {
    /// Program and arguments.
    pub command: Vec<String>,
    /// The image that it makes, relative to the repository.
    pub artifact: PathBuf,
    /// How long it may take.
    pub timeout: Duration,
}

/// An agent of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentRef {
    /// Edits by templates, without a model.
    Templates,
    /// A client that fetches the evidence and hands in a patch.
    Mcp,
    /// A model behind HTTP, by its name in the settings of this host.
    Http(String),
    /// A program.
    Command(AgentCommand),
}

/// An agent that is a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCommand {
    /// Its name.
    pub name: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// How long one proposal may take.
    pub timeout: Duration,
    /// Variables that are passed on to it.
    pub env: Vec<String>,
}
