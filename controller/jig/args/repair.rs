//! What users type after `jig repair`. Parsing only.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use jig_model::PlaceName;

use super::inject::FaultArgs;

/// Arguments of `jig repair`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RepairArgs {
    #[command(subcommand)]
    pub(crate) command: Option<RepairCommand>,
    #[command(flatten)]
    pub(crate) start: RepairStart,
}

/// What to repair.
#[derive(Debug, Args)]
pub(crate) struct RepairStart {
    /// Task file; without one, --plan, --board, --build and --artifact say the same
    #[arg(value_hint = ValueHint::FilePath, required_unless_present = "plan")]
    pub(crate) task: Option<PathBuf>,
    /// Git work tree of the firmware; it is read and never changed
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "task")]
    pub(crate) repo: Option<PathBuf>,
    /// Plan whose tests must pass
    #[arg(long, value_hint = ValueHint::FilePath, conflicts_with = "task", requires = "board")]
    pub(crate) plan: Option<PathBuf>,
    /// Plan that a repair must pass, too, and that no agent is given
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "task")]
    pub(crate) held_out: Option<PathBuf>,
    /// Policy: what patches may change, and what has to be approved
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "task")]
    pub(crate) policy: Option<PathBuf>,
    /// Board or place
    #[arg(short, long, conflicts_with = "task")]
    pub(crate) board: Option<PlaceName>,
    /// What is to be reached, in words
    #[arg(long, value_name = "TEXT", conflicts_with = "task")]
    pub(crate) goal: Option<String>,
    /// Build command, its words separated by blanks
    #[arg(long, value_name = "COMMAND", conflicts_with = "task")]
    pub(crate) build: Option<String>,
    /// Image that the build makes, relative to the repository
    #[arg(long, value_name = "FILE", conflicts_with = "task")]
    pub(crate) artifact: Option<String>,
    /// Who can be asked [default: the task's]
    #[arg(long, value_parser = ["interactive", "ci", "auto"])]
    pub(crate) mode: Option<String>,
    /// Agents in their order, separated by commas [default: the task's]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) agents: Vec<String>,
    #[command(flatten)]
    pub(crate) faults: FaultArgs,
    /// Run of the plan in which the faults strike, from 1
    #[arg(long, value_name = "N", default_value_t = 1, requires = "inject")]
    pub(crate) inject_run: u32,
}

/// A format of other tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    /// A trace of OpenTelemetry, in the JSON of OTLP
    Otlp,
    /// A trajectory of Harbor (ATIF 1.7)
    Atif,
}

/// What to do with repair runs.
#[derive(Debug, Subcommand)]
pub(crate) enum RepairCommand {
    /// Say where a run stands, or list the runs
    Status {
        /// The run, a beginning of its name, or "last"
        run: Option<String>,
    },
    /// Follow a run until it ends
    Watch(RepairRun),
    /// Print the journal of a run, a row a line
    Log(RepairRun),
    /// Print a run in the format of another tool
    Export {
        #[command(flatten)]
        run: RepairRun,
        /// Format
        #[arg(long, value_enum)]
        format: ExportFormat,
    },
    /// Ask a run to end
    Stop {
        #[command(flatten)]
        run: RepairRun,
        /// Why
        #[arg(long, value_name = "TEXT", default_value = "stopped by hand")]
        why: String,
    },
    /// Drive a run on that was cut off or waits for an answer
    Resume(RepairRun),
    /// Begin another run with the rows of a run up to a number, as RUN@SEQ
    Fork {
        /// The run, and the last row that both have
        #[arg(value_name = "RUN[@SEQ]")]
        from: String,
    },
    /// Approve what a run waits for
    Approve {
        #[command(flatten)]
        run: RepairRun,
        /// Digest of what is approved, as `jig repair status` shows it
        #[arg(long, value_name = "sha256:HEX")]
        digest: String,
    },
    /// Propose a patch to a run that waits for one
    Submit {
        #[command(flatten)]
        run: RepairRun,
        /// Unified diff against the run's base; - reads it from standard input
        #[arg(value_hint = ValueHint::FilePath)]
        patch: PathBuf,
        /// What is taken for the cause
        #[arg(long, value_name = "TEXT")]
        why: String,
    },
    /// Serve a run to an MCP client on standard input and output
    Mcp(RepairRun),
    /// Refuse what a run waits for
    Reject {
        #[command(flatten)]
        run: RepairRun,
        /// Why, for the agent
        #[arg(long, value_name = "TEXT")]
        why: String,
    },
}

/// A repair run.
#[derive(Debug, Args)]
pub(crate) struct RepairRun {
    /// The run, a beginning of its name, or "last"
    pub(crate) run: String,
}
