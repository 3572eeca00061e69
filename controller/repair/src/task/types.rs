//! A task that can be carried out.

use std::path::PathBuf;
use std::time::Duration;

use jig_agents::{HttpDialect, TokenPrices};
use jig_model::power::WebAddress;

use crate::analysis::Preset;
use crate::convergence::ExecutionMode;

use super::limits::RepairLimits;

/// What a repair run is to reach, and what it may use. Paths are as written: relative to the file.
#[derive(Debug, Clone, PartialEq)]
pub struct RepairTask {
    /// What is to be reached, in words.
    pub goal: String,
    /// Git work tree.
    pub repo: PathBuf,
    /// A place or a board.
    pub board: String,
    /// An emulated place of the same board, on which candidates are tried before a real one is flashed.
    pub screen_on: Option<String>,
    /// Plan with the tests that must pass.
    pub plan: PathBuf,
    /// Plan that decides at the end and that no agent sees.
    pub held_out: Option<PathBuf>,
    /// Whether a person can be asked.
    pub mode: ExecutionMode,
    /// Thresholds of the convergence check, and the usual number of iterations.
    pub preset: Preset,
    /// Agents, in the order in which they are asked.
    pub agents: Vec<AgentRef>,
    /// The model that explains failures before agents are asked, if there is one.
    pub analyst: Option<AgentHttp>,
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
    /// The image that it makes, relative to the repository; the only ELF file that it makes where there
    /// is none.
    pub artifact: Option<PathBuf>,
    /// How long it may take.
    pub timeout: Duration,
}

/// An agent of the list.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentRef {
    /// Edits by templates, without a model.
    Templates,
    /// A client that fetches the evidence and hands in a patch.
    Mcp,
    /// A model behind HTTP.
    Http(AgentHttp),
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
    /// What an answer costs where the program does not say it, in millionths of a US dollar.
    pub micro_usd_per_call: Option<u64>,
}

/// A model behind HTTP.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentHttp {
    /// Its name.
    pub name: String,
    /// Address below which the paths of the dialect are.
    pub url: WebAddress,
    /// What the endpoint speaks.
    pub dialect: HttpDialect,
    /// The model, as the endpoint calls it.
    pub model: String,
    /// Variable that holds the key; the key itself is in no setting.
    pub key_env: Option<String>,
    /// Answers that are asked for.
    pub samples: u32,
    /// Most tokens of an answer.
    pub max_tokens: u32,
    /// Temperature; the endpoint's own where there is none.
    pub temperature: Option<f64>,
    /// What tokens cost.
    pub prices: TokenPrices,
    /// How long all samples may take together.
    pub timeout: Duration,
}

impl RepairTask {
    /// Lists the variables that agents and analyst are given; their values are secrets.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let analyst = self.analyst.iter().flat_map(|http| http.key_env.as_deref());
        self.agents.iter().flat_map(AgentRef::variables).chain(analyst)
    }
}

impl AgentRef {
    /// Lists the variables that an agent is given; their values are secrets.
    fn variables(&self) -> Vec<&str> {
        match self {
            Self::Templates | Self::Mcp => Vec::new(),
            Self::Http(http) => http.key_env.iter().map(String::as_str).collect(),
            Self::Command(command) => command.env.iter().map(String::as_str).collect(),
        }
    }
}
