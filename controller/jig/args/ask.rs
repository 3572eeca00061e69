//! What users type after `jig ask` and `jig sessions`. Parsing only.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use jig_operator::plan::RiskLevel;

use super::common::duration;

/// Arguments of `jig ask`.
#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    /// The request in words; with --resume the answers, with ";" between them
    pub(crate) words: Vec<String>,
    /// Plan in JSON instead of words, as --plan-only --json shows it; - for standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "resume")]
    pub(crate) plan: Option<PathBuf>,
    /// Show the plan, and carry out nothing of it
    #[arg(long, conflicts_with = "resume")]
    pub(crate) plan_only: bool,
    /// Confirm dangerous actions up to this risk in advance
    #[arg(long, value_name = "LEVEL", value_enum)]
    pub(crate) yes: Option<RiskWord>,
    /// Go on with a session: its name, a beginning of it, or "last"
    #[arg(long, value_name = "SESSION")]
    pub(crate) resume: Option<String>,
    /// Confirm what the session shows, by its digest
    #[arg(long, value_name = "DIGEST", requires = "resume", conflicts_with = "refuse")]
    pub(crate) confirm: Option<String>,
    /// Refuse what the session shows
    #[arg(long, requires = "resume")]
    pub(crate) refuse: bool,
    /// Longest time of a call [default: 60s, or as agents.toml says]
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "resume")]
    pub(crate) step_timeout: Option<Duration>,
    /// Longest time of all work of the session [default: 10m, or as agents.toml says]
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "resume")]
    pub(crate) session_timeout: Option<Duration>,
    /// Model of agents.toml that plans it, also what the grammar understands; none: ask no model
    #[arg(long, value_name = "NAME", conflicts_with_all = ["plan", "resume"])]
    pub(crate) model: Option<String>,
    /// List the forms of requests that are understood
    #[arg(long, conflicts_with_all = ["words", "plan", "resume"])]
    pub(crate) forms: bool,
}

/// A risk level as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RiskWord {
    /// What only reads, or uses emulated boards: needs no confirmation
    Low,
    /// What uses or flashes real boards
    Medium,
    /// What erases, disturbs other boards, or reaches beyond the rig
    High,
}

impl From<RiskWord> for RiskLevel {
    fn from(word: RiskWord) -> Self {
        match word {
            RiskWord::Low => Self::Low,
            RiskWord::Medium => Self::Medium,
            RiskWord::High => Self::High,
        }
    }
}

/// What to do with sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, the newest first
    #[command(visible_alias = "list")]
    Ls,
    /// Show where a session stands, its plan and its summary
    Show(SessionNamed),
    /// Print the rows of its journal
    Log(SessionNamed),
    /// Ask a session to end
    Cancel {
        #[command(flatten)]
        session: SessionNamed,
        /// Why, for the record
        #[arg(long, value_name = "WORDS", default_value = "a person asked for it")]
        why: String,
    },
    /// Write its journal as lines of JSON, a row each
    Export {
        #[command(flatten)]
        session: SessionNamed,
        /// Write what happened as log records instead, a line each
        #[arg(long, conflicts_with = "otlp")]
        records: bool,
        /// Write one trace of OpenTelemetry instead, in the JSON of OTLP
        #[arg(long)]
        otlp: bool,
    },
    /// Put back the files that its calls have changed
    Undo(SessionNamed),
    /// Show instructions of roles and their revisions; approve or reject a revision
    #[command(subcommand)]
    Instructions(InstructionsCommand),
}

/// What to do with instructions.
#[derive(Debug, Subcommand)]
pub(crate) enum InstructionsCommand {
    /// List the roles with the versions of their instructions, and all revisions
    #[command(visible_alias = "list")]
    Ls,
    /// Show the instruction of a role, or what a revision changes and what recorded cases say of it
    Show {
        /// A role (planner, code, test, analysis, knowledge), or the number of a revision
        #[arg(value_name = "ROLE|NUMBER")]
        what: String,
    },
    /// Make a revision part of the instruction
    Approve {
        /// Its number
        number: u64,
        /// Also where more recorded cases passed without it than failed by its class
        #[arg(long)]
        anyway: bool,
    },
    /// Refuse a revision; its failure class is not proposed again
    Reject {
        /// Its number
        number: u64,
    },
}

/// Names a session.
#[derive(Debug, Args)]
pub(crate) struct SessionNamed {
    /// The session, a beginning of its name, or "last"
    pub(crate) session: String,
}
