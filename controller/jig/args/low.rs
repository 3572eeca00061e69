//! The command line as it is typed. Parsing only: of the system it sees arguments and
//! variables of the environment.

use std::path::PathBuf;

use clap::builder::Resettable;
use clap::{
    Arg, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum, ValueHint,
};
use clap_complete::Shell;
use jig_lab::ChipAtProbe;
use jig_model::{BoardId, ChipName, IdentityName, PlaceName};

use super::access::{AccessCommand, AuditArgs};
use super::ask::{AskArgs, SessionsCommand};
use super::common::{Common, key_name, size};
use super::console::ConsoleArgs;
use super::exec::{CopyArgs, ExecArgs};
use super::flashers::FlashersArgs;
use super::health::{DiscoverArgs, HealthArgs, RecoverArgs};
use super::hold::HoldArgs;
use super::inject::InjectArgs;
use super::knowledge::KbArgs;
use super::lease::{LeaseCommand, ShellArgs};
use super::mcp::McpCommand;
use super::power::PowerArgs;
use super::probe::{
    BacktraceOf, BpArgs, BtArgs, DumpArgs, EraseArgs, FlashArgs, GdbArgs, MemCommand, ProbeCommand,
    ProbeTarget, RegsArgs, ResetArgs, RttArgs, StepArgs,
};
use super::repair::RepairArgs;
use super::run::{RunArgs, TestArgs};
use super::serve::ServeArgs;
use super::top::TopArgs;

/// Runs firmware on real and emulated boards and says what happened, with evidence.
#[derive(Debug, Parser)]
#[command(name = "jig", version, about, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

impl Cli {
    /// Reads the arguments of this process.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let mut matches = without_empty_variables(Self::command()).try_get_matches()?;
        let mut cli = Self::from_arg_matches_mut(&mut matches)
            .map_err(|error| error.format(&mut Self::command()))?;
        cli.common.chip = cli.command.chip().cloned();
        Ok(cli)
    }
}

/// Takes empty variables of the environment for ones that are not set: CI systems set those whose
/// value they do not have.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let set = |arg: Arg| {
        let value = arg.get_env().and_then(std::env::var_os);
        if value.is_some_and(|value| value.is_empty()) { arg.env(Resettable::Reset) } else { arg }
    };
    command.mut_args(set).mut_subcommands(without_empty_variables)
}

const AFTER_HELP: &str = "\
Exit codes:
  0   pass                       4    inconclusive: evidence is missing
  1   the target failed          5    flaky
  2   usage                      70   bug in jig
  3   profile, plan or rig file  75   the rig failed
                                 130  cancelled

Start here: jig doctor, jig boards, jig run -b BOARD app.elf";

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Deploy an image, boot it, stream its console and judge what it reports
    Run(RunArgs),
    /// Run a test plan and write reports
    Test(TestArgs),
    /// Talk to a board's console
    Console(ConsoleArgs),
    /// Run a command on a board that runs an operating system; its exit status is this one's
    Exec(ExecArgs),
    /// Copy a file to a board that runs an operating system, or from it: FILE :PATH, or :PATH FILE
    Cp(CopyArgs),
    /// Keep a board powered, so that console, reset, flash and debug in other terminals reach it
    Hold(HoldArgs),
    /// Keep the consoles of real boards between runs: capture, scroll-back, hand-over to runs
    Serve(ServeArgs),
    /// Watch all places: health, leases, runs, consoles
    Top(TopArgs),
    /// Carry out one command of another program: a line of JSON on standard input
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// Serve the rig of this host to one caller, such as one that comes over SSH
    Rpc(RpcArgs),
    /// Have a place for yourself for a while: queue, priorities, who has what until when
    #[command(subcommand)]
    Lease(LeaseCommand),
    /// Have a place for yourself in a shell or for a command, which gives it back at its end
    Shell(ShellArgs),
    /// Tell who may do what at which places
    #[command(subcommand)]
    Access(AccessCommand),
    /// Show who used which place for what, and check that the log is whole
    Audit(AuditArgs),
    /// List board profiles and places, and where each came from
    Boards,
    /// List the chips that need no board profile, by parts of their names
    Chips(ChipsArgs),
    /// Prove that a place works, or recover it step by step until it does
    Recover(RecoverArgs),
    /// Say how places are, why, and what helps
    Health(HealthArgs),
    /// List attached serial ports, probes and hubs as a rig file to edit
    Discover(DiscoverArgs),
    /// Switch a board's power, or ask for it
    Power(PowerArgs),
    /// List debug probes, real and virtual, and who uses them
    Probes,
    /// Put an image on a board
    Flash(FlashArgs),
    /// List the programs that flash boards, and which of them this host has
    Flashers(FlashersArgs),
    /// Erase a board's flash
    Erase(EraseArgs),
    /// Reset a board
    Reset(ResetArgs),
    /// Stop a board's core
    Halt(ProbeTarget),
    /// Let a halted core run on
    #[command(visible_aliases = ["continue", "go"])]
    Resume(ProbeTarget),
    /// Execute single instructions
    Step(StepArgs),
    /// Show and set registers
    Regs(RegsArgs),
    /// Read and write memory
    #[command(subcommand)]
    Mem(MemCommand),
    /// Run to a breakpoint and say where the core stands
    Bp(BpArgs),
    /// Show the backtrace of a board or of a core dump
    Bt(BtArgs),
    /// Show and feed RTT channels; decodes defmt
    Rtt(RttArgs),
    /// Save registers and memory as a core dump
    Dump(DumpArgs),
    /// Offer a board to GDB
    Gdb(GdbArgs),
    /// Offer emulated boards to other probe-rs tools
    #[command(subcommand)]
    Probe(ProbeCommand),
    /// Check or show board profiles
    #[command(subcommand)]
    Profile(ProfileCommand),
    /// Check test plans
    #[command(subcommand)]
    Plan(PlanCommand),
    /// List, show and export runs; go on with the output of one
    Runs {
        #[command(subcommand)]
        command: Option<RunsCommand>,
    },
    /// Tell the faults that `--inject` makes a rig fail by
    Inject(InjectArgs),
    /// Say what is missing on this host and the command that fixes it
    Doctor(DoctorArgs),
    /// Print a state machine
    #[command(subcommand)]
    Machine(MachineCommand),
    /// Repair firmware: change code on evidence until its tests pass, proven on the board
    Repair(Box<RepairArgs>),
    /// Ask for work in words: planned, confirmed, carried out and verified on this rig
    Ask(Box<AskArgs>),
    /// What was asked, where it stands, and what came of it
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// What this lab has learnt: search it, add to it, check it
    Kb(Box<KbArgs>),
    /// Offer the rig to agents and editors by the Model Context Protocol
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Explain the failure of a run, or what the repair loop decides about figures
    #[command(subcommand)]
    Explain(ExplainCommand),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages into a folder
    Man {
        /// The folder; created if it is missing
        #[arg(value_hint = ValueHint::DirPath)]
        dir: PathBuf,
    },
}

impl CliCommand {
    /// Returns the chip that is the board of the verb, where it is one.
    pub(crate) fn chip(&self) -> Option<&ChipAtProbe> {
        let target = match self {
            Self::Run(args) => &args.target,
            Self::Test(args) => &args.target,
            Self::Console(args) => &args.target,
            Self::Hold(args) => &args.target,
            Self::Recover(args) => &args.target,
            Self::Exec(args) => &args.target,
            Self::Cp(args) => &args.target,
            Self::Flash(args) => &args.at.target,
            Self::Erase(args) => &args.at.target,
            Self::Reset(args) => &args.at.target,
            Self::Halt(at) | Self::Resume(at) => &at.target,
            Self::Step(args) => &args.at.target,
            Self::Regs(args) => &args.at.target,
            Self::Mem(MemCommand::Read { at, .. } | MemCommand::Write { at, .. }) => &at.target,
            Self::Bp(args) => &args.at.target,
            Self::Bt(BtArgs { of: BacktraceOf::Board(at), .. }) => &at.target,
            Self::Rtt(args) => &args.at.target,
            Self::Dump(args) => &args.at.target,
            Self::Gdb(args) => &args.at.target,
            _ => return None,
        };
        target.chip.as_ref()
    }
}

/// Arguments of `jig rpc`.
#[derive(Debug, Args)]
pub(crate) struct RpcArgs {
    /// Speak on standard input and output
    #[arg(long, required = true)]
    pub(crate) stdio: bool,
    /// As whom the caller acts: in access rules, leases, records and the audit log; this user without it
    #[arg(long = "as", value_name = "NAME", value_parser = key_name)]
    pub(crate) identity: Option<IdentityName>,
}

/// Arguments of `jig worker`.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// Carry out the job in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) job: Option<PathBuf>,
}

/// What to do with profiles.
#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// Report every problem of profiles and rig files at once
    Check {
        /// Files to check
        #[arg(required = true, value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
    },
    /// Write a profile to edit, out of what is known of a chip
    New(NewProfileArgs),
    /// Show a profile as it is understood
    Show {
        /// The board
        board: BoardId,
    },
}

/// Arguments of `jig profile new`.
#[derive(Debug, Args)]
pub(crate) struct NewProfileArgs {
    /// The chip (see: jig chips)
    #[arg(long, value_name = "NAME")]
    pub(crate) chip: ChipName,
    /// Tell what this program says of the board, too: its start, stack, RTT block and system
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) from_elf: Option<PathBuf>,
    /// Write the profile here instead of printing it; replaces none. The file's name is the board's
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// Arguments of `jig doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Look for what keeps this user from using this place: rights, other programs, missing devices
    #[arg(short, long, value_name = "PLACE")]
    pub(crate) board: Option<PlaceName>,
}

/// Arguments of `jig chips`.
#[derive(Debug, Args)]
pub(crate) struct ChipsArgs {
    /// Parts of the name, of the family or of a core's architecture; all that are given must fit
    pub(crate) pattern: Vec<String>,
}

/// What to do with plans.
#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Report every problem of plans at once
    Check {
        /// Files to check
        #[arg(required = true, value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
    },
}

const ATTACH_HELP: &str = "\
A signal (Ctrl-C) detaches: the run goes on. `jig runs cancel RUN` cancels it.

Exit codes:
  0-75  that of the run, as its own command ends with
  130   detached, or the run was cancelled";

const ALLOW_HELP: &str = "\
Writes `allow_output = [...]` for a plan or a profile: one pattern for each kind of line, numbers left
open. Lines that look like a crash or tell of trouble are left in as comments. A run with --strict has
the lines of all its output; another one those behind its report. Read what you allow: a run passes in
spite of it.";

/// What to do with runs. A run is named by its id, the beginning of it, or `last`.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List them, newest first
    List,
    /// Show one: verdict, tests, evidence
    Show {
        /// Id, its beginning, or `last`
        #[arg(default_value = "last")]
        run: String,
    },
    /// Show everything that happened in one on a single time line
    Log {
        /// Id, its beginning, or `last`
        #[arg(default_value = "last")]
        run: String,
    },
    /// Propose patterns for the lines of one that nothing accounts for
    #[command(after_long_help = ALLOW_HELP)]
    Allow {
        /// Id, its beginning, or `last`
        #[arg(default_value = "last")]
        run: String,
    },
    /// Go on with the output of one that is under way, and end with its exit code
    #[command(after_long_help = ATTACH_HELP)]
    Attach {
        /// Id, its beginning, `last`, or the job that makes it
        #[arg(default_value = "last")]
        run: String,
        /// Leave out what its consoles have printed so far
        #[arg(long)]
        tail: bool,
    },
    /// Cancel one that is under way, and was started from elsewhere
    Cancel {
        /// Id, its beginning, `last`, or the job that makes it
        run: String,
    },
    /// Pack one into a .tar.gz
    Export {
        /// Id, its beginning, or `last`
        #[arg(default_value = "last")]
        run: String,
        /// Archive to write; `-` is standard output
        #[arg(short, long, value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
    /// Remove old runs
    Prune {
        /// Keep those younger than this many days
        #[arg(long, value_name = "N")]
        keep_days: Option<u32>,
        /// Keep the newest up to this many bytes (K, M and G allowed)
        #[arg(long, value_name = "SIZE", value_parser = size)]
        keep_size: Option<u64>,
    },
}

/// Which machine to print.
#[derive(Debug, Subcommand)]
pub(crate) enum MachineCommand {
    /// The workflow machine that runs plans
    Workflow {
        /// Form
        #[arg(long, value_enum, default_value_t = MachineFormat::Mermaid)]
        format: MachineFormat,
    },
    /// The health of a place
    Health {
        /// Form
        #[arg(long, value_enum, default_value_t = MachineFormat::Mermaid)]
        format: MachineFormat,
    },
    /// The loop that repairs firmware
    Repair {
        /// Form
        #[arg(long, value_enum, default_value_t = MachineFormat::Mermaid)]
        format: MachineFormat,
    },
    /// A session of jig ask
    Operator {
        /// Form
        #[arg(long, value_enum, default_value_t = MachineFormat::Mermaid)]
        format: MachineFormat,
    },
    /// The planner of a session
    Planner {
        /// Form
        #[arg(long, value_enum, default_value_t = MachineFormat::Mermaid)]
        format: MachineFormat,
    },
}

/// What to explain.
#[derive(Debug, Subcommand)]
pub(crate) enum ExplainCommand {
    /// How a run failed, whether it did before, and which run of the place passed last
    Failure {
        /// The run, a beginning of its id, or "last"
        run: String,
    },
    /// Whether a repair run has converged
    ///
    /// Each line of the file is an object with the lists "pass_counts" and "total_counts" (one number
    /// per iteration), "current_iteration", "max_iterations" and, if wanted, "criteria" with
    /// thresholds that differ from the defaults. It is printed with the answer as "expect".
    Convergence {
        /// File with one JSON object per line; - for standard input
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// How the results of a repair run develop
    ///
    /// Each line of the file is an object with "preset" (strict, balanced, aggressive) and "history",
    /// a list of results, one per iteration. It is printed with the answer as "expect".
    Analysis {
        /// File with one JSON object per line; - for standard input
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
}

/// Forms of a state machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MachineFormat {
    /// A Mermaid diagram
    Mermaid,
    /// The transition table
    Csv,
    /// States, events and transitions
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
