//! What users type. Parsing only: nothing here touches the system.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use jig_lab::LabConfig;
use jig_model::pattern::Pattern;
use jig_model::{BoardId, PlaceName};

use super::console::ConsoleArgs;
use super::health::{DiscoverArgs, HealthArgs, RecoverArgs};
use super::inject::{FaultArgs, InjectArgs};
use super::power::PowerArgs;
use super::probe::{
    BpArgs, BtArgs, DumpArgs, EraseArgs, FlashArgs, GdbArgs, MemCommand, ProbeCommand, ProbeTarget,
    RegsArgs, ResetArgs, RttArgs, StepArgs,
};

/// Runs firmware on real and emulated boards and says what happened, with evidence.
#[derive(Debug, Parser)]
#[command(name = "jig", version, about, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
Exit codes:
  0   pass                       4    inconclusive: evidence is missing
  1   the target failed          5    flaky
  2   usage                      70   bug in jig
  3   profile, plan or rig file  75   the rig failed
                                 130  cancelled

Start here: jig doctor, jig boards, jig run -b BOARD app.elf";

/// Options every command knows.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// Rig file that says what this lab has
    #[arg(long, global = true, value_name = "FILE", env = "JIG_RIG", value_hint = ValueHint::FilePath)]
    pub(crate) rig: Option<PathBuf>,
    /// Folder of the runs
    #[arg(long, global = true, value_name = "DIR", env = "JIG_RUNS", value_hint = ValueHint::DirPath)]
    pub(crate) runs: Option<PathBuf>,
    /// Further folder of board profiles; wins over built-in ones
    #[arg(long, global = true, value_name = "DIR", env = "JIG_BOARDS", value_hint = ValueHint::DirPath)]
    pub(crate) boards: Option<PathBuf>,
    /// Print JSON on standard output instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only what was asked for: no progress, no console output
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Log more (-v what happens, -vv how, -vvv everything); RUST_LOG wins
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Form of the log on standard error
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, env = "JIG_LOG_FORMAT")]
    pub(crate) log_format: LogFormat,
}

impl Common {
    /// Says where the rig is described and its runs are kept.
    pub(crate) fn lab(&self) -> LabConfig {
        LabConfig {
            rig: self.rig.clone(),
            boards: self.boards.clone(),
            runs: self.runs.clone(),
            ..LabConfig::default()
        }
    }

    /// Returns the options that let another `jig` see the same rig.
    pub(crate) fn again(&self) -> Vec<OsString> {
        let named = [("--rig", &self.rig), ("--runs", &self.runs), ("--boards", &self.boards)];
        let mut args: Vec<OsString> = Vec::new();
        for (option, path) in named {
            args.extend(path.iter().flat_map(|path| [option.into(), path.clone().into()]));
        }
        args.extend(std::iter::repeat_n("-v".into(), self.verbose.into()));
        if self.log_format == LogFormat::Json {
            args.extend(["--log-format".into(), "json".into()]);
        }
        args
    }
}

/// Form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Deploy an image, boot it, stream its console and judge what it reports
    Run(RunArgs),
    /// Run a test plan and write reports
    Test(TestArgs),
    /// Talk to a board's console
    Console(ConsoleArgs),
    /// Keep the consoles of real boards between runs: capture, scroll-back, hand-over to runs
    Serve(ServeArgs),
    /// Carry out one command of another program: a line of JSON on standard input
    #[command(hide = true)]
    Worker,
    /// List board profiles and places, and where each came from
    Boards,
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
    /// List, show and export past runs
    Runs {
        #[command(subcommand)]
        command: Option<RunsCommand>,
    },
    /// Tell the faults that `--inject` makes a rig fail by
    Inject(InjectArgs),
    /// Say what is missing on this host and the command that fixes it
    Doctor,
    /// Print a state machine
    #[command(subcommand)]
    Machine(MachineCommand),
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

/// Arguments of `jig serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Check the health of idle real boards this often, "0s" for never; without it each as its
    /// profile says
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) check_every: Option<Duration>,
}

/// Which board to use.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// Place or board (see: jig boards)
    #[arg(short, long, value_name = "NAME", env = "JIG_BOARD")]
    pub(crate) board: PlaceName,
}

/// Arguments of `jig run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Image to run: ELF, Intel HEX, or FILE.bin@ADDRESS; not needed where the board boots an image
    /// set
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) image: Option<PathBuf>,
    /// Pass as soon as the console shows this; no test results are needed then
    #[arg(long, value_name = "REGEX")]
    pub(crate) until: Option<Pattern>,
    /// Give up after this long (10s, 2m, 500ms)
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
    #[command(flatten)]
    pub(crate) faults: FaultArgs,
}

/// Arguments of `jig test`.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    /// The plan
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) plan: PathBuf,
    /// Image that the plan's `deploy = true` puts on the board
    #[arg(long, value_hint = ValueHint::FilePath)]
    pub(crate) image: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
    #[command(flatten)]
    pub(crate) faults: FaultArgs,
}

/// What to make of a run.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Write a report: junit=FILE, json=FILE, tap=FILE, github=FILE; `-` is standard output
    #[arg(long, value_name = "FORMAT=FILE")]
    pub(crate) report: Vec<ReportRequest>,
    /// Run this many times: tells flaky from failing
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) repeat: u32,
    /// Most recoveries of the rig, each with a retry [default: profile's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=20))]
    pub(crate) max_recoveries: Option<u32>,
    /// Compare with an earlier JSON report: tells regressions from known failures
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) baseline: Option<PathBuf>,
}

/// A report to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReportRequest {
    pub(crate) format: ReportFormat,
    pub(crate) path: PathBuf,
}

/// Forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// JUnit XML
    Junit,
    /// The verdict as JSON
    Json,
    /// TAP 14
    Tap,
    /// Markdown for a CI step summary
    Github,
}

impl std::str::FromStr for ReportRequest {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (format, path) = text
            .split_once('=')
            .filter(|(_, path)| !path.is_empty())
            .ok_or("expected FORMAT=FILE, such as junit=report.xml")?;
        let format = ReportFormat::from_str(format, false)
            .map_err(|_| format!("unknown format {format:?}: use junit, json, tap or github"))?;
        Ok(Self { format, path: path.into() })
    }
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
    /// Show a profile as it is understood
    Show {
        /// The board
        board: BoardId,
    },
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

/// What to do with past runs. A run is named by its id, the beginning of it, or `last`.
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

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    jig_model::document::parse_duration(text).map_err(|error| error.to_string())
}

fn size(text: &str) -> Result<u64, String> {
    jig_model::document::parse_size(text).map(|size| size.0).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn report_requests_say_what_is_wrong() {
        assert!("junit=a.xml".parse::<ReportRequest>().is_ok());
        assert!("junit".parse::<ReportRequest>().unwrap_err().contains("FORMAT=FILE"));
        assert!("xml=a".parse::<ReportRequest>().unwrap_err().contains("junit, json"));
    }
}
