//! What users type after `jig kb`. Parsing only.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use jig_knowledge::store::LinkKind;
use jig_knowledge::unit::UnitId;

use super::common::duration;

/// Arguments of `jig kb`.
#[derive(Debug, Args)]
pub(crate) struct KbArgs {
    /// File that names an embedding model: search, reindex, stats, fit and bench use it
    #[arg(long, global = true, value_name = "FILE", env = "JIG_EMBEDDING", value_hint = ValueHint::FilePath)]
    pub(crate) embedding: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: KbCommand,
}

/// What to do with knowledge.
#[derive(Debug, Subcommand)]
pub(crate) enum KbCommand {
    /// Find units: words, a line of a log, or a whole log
    Search(KbSearchArgs),
    /// Show a unit: what it says, how far it is believed, where it comes from
    Show(KbShowArgs),
    /// Add a unit
    Add(KbAddArgs),
    /// Learn from runs that nothing was learnt from yet, or from one
    Capture(KbCaptureArgs),
    /// Change a unit; what stood there stays in its history
    Edit(KbEditArgs),
    /// Confirm that a unit is right
    Verify(KbJudgeArgs),
    /// Say that a unit is wrong; one that was rejected twice is archived
    Reject(KbJudgeArgs),
    /// Put a unit away: only searches with --all find it
    Archive(KbUnitArgs),
    /// Take an archived unit back; it has to be verified anew
    Restore(KbUnitArgs),
    /// Link two units
    Link(KbLinkArgs),
    /// Write all units as JSON lines with hashes
    Export(KbExportArgs),
    /// Read units that another lab has exported; none replaces one of this lab
    Import(KbImportArgs),
    /// Count units, feedback and what waits in the outbox
    Stats,
    /// Check the store, make index and missing vectors again, and archive what was unread for a year
    Reindex,
    /// Learn the order of answers from `verify --for` and `reject --for`; worse weights are not kept
    Fit,
    /// Measure searches on documents and questions with known answers
    Bench(KbBenchArgs),
}

/// Arguments of `jig kb search`.
#[derive(Debug, Args)]
pub(crate) struct KbSearchArgs {
    /// The question; - reads it from standard input
    #[arg(required = true, value_name = "WORDS")]
    pub(crate) question: Vec<String>,
    /// Only units about this kind of board, or about none
    #[arg(short, long, value_name = "BOARD")]
    pub(crate) board: Option<String>,
    /// Only units with this tag; may be repeated
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Only units of this line of products
    #[arg(long, value_name = "NAME")]
    pub(crate) product_line: Option<String>,
    /// File that the question is about, such as one of a backtrace; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Vec<String>,
    /// Signature of a failure: units that have it come first
    #[arg(long, value_name = "SIGNATURE")]
    pub(crate) signature: Option<String>,
    /// Only units of this time (90d)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) since: Option<Duration>,
    /// Only units that are older than this (30d)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) until: Option<Duration>,
    /// Only units whose source was this sure, from 0 to 1
    #[arg(long, value_name = "NUMBER", default_value_t = 0.5, value_parser = share)]
    pub(crate) min_confidence: f64,
    /// Most units
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub(crate) max_results: usize,
    /// Find expired and archived units, too
    #[arg(long)]
    pub(crate) all: bool,
    /// Longest time of the search; then what was found until then
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = duration)]
    pub(crate) timeout: Duration,
    /// Print the units as quotations for an agent, within this many characters
    #[arg(long, value_name = "CHARACTERS", num_args = 0..=1, default_missing_value = "8000")]
    pub(crate) context: Option<usize>,
}

/// Arguments of `jig kb show`.
#[derive(Debug, Args)]
pub(crate) struct KbShowArgs {
    /// The unit
    pub(crate) id: UnitId,
    /// Show its changes, too
    #[arg(long)]
    pub(crate) history: bool,
}

/// A unit.
#[derive(Debug, Args)]
pub(crate) struct KbUnitArgs {
    /// The unit
    pub(crate) id: UnitId,
}

/// Arguments of `jig kb verify` and `jig kb reject`.
#[derive(Debug, Args)]
pub(crate) struct KbJudgeArgs {
    /// The unit
    pub(crate) id: UnitId,
    /// The question that it answers, or does not answer: `jig kb fit` learns from it
    #[arg(long = "for", value_name = "QUESTION")]
    pub(crate) question: Option<String>,
}

/// Texts of a unit.
#[derive(Debug, Default, Args)]
pub(crate) struct KbTexts {
    /// One line
    #[arg(long, value_name = "WORDS")]
    pub(crate) title: Option<String>,
    /// What was seen
    #[arg(long, value_name = "TEXT")]
    pub(crate) symptom: Option<String>,
    /// Why it happened
    #[arg(long, value_name = "TEXT")]
    pub(crate) cause: Option<String>,
    /// What helped
    #[arg(long, value_name = "TEXT")]
    pub(crate) resolution: Option<String>,
    /// A few sentences
    #[arg(long, value_name = "TEXT")]
    pub(crate) summary: Option<String>,
    /// Step that helped; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) step: Vec<String>,
    /// File with the change that helped, as a unified diff
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) diff: Option<PathBuf>,
    /// Kind of board that it is about
    #[arg(short, long, value_name = "BOARD")]
    pub(crate) board: Option<String>,
    /// Part of the firmware or of the rig
    #[arg(long, value_name = "NAME")]
    pub(crate) component: Option<String>,
    /// Line of products
    #[arg(long, value_name = "NAME")]
    pub(crate) product_line: Option<String>,
    /// File that it is about; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Vec<String>,
    /// Class of the failure
    #[arg(long, value_name = "CLASS")]
    pub(crate) class: Option<String>,
    /// Signature of the failure
    #[arg(long, value_name = "SIGNATURE")]
    pub(crate) signature: Option<String>,
    /// Word to find it by; may be repeated
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// How sure it is, from 0 to 1
    #[arg(long, value_name = "NUMBER", value_parser = share)]
    pub(crate) confidence: Option<f64>,
}

/// Arguments of `jig kb add`.
#[derive(Debug, Args)]
pub(crate) struct KbAddArgs {
    #[command(flatten)]
    pub(crate) texts: KbTexts,
    /// File with `{"content":{...},"metadata":{...}}`, as `jig kb show --json` prints them; - is standard
    /// input. Options win over it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) from: Option<PathBuf>,
    /// Take symptom, evidence, signature and board from the failure of a run, or `last`
    #[arg(long, value_name = "RUN", conflicts_with = "from")]
    pub(crate) from_run: Option<String>,
}

/// Arguments of `jig kb capture`.
#[derive(Debug, Args)]
pub(crate) struct KbCaptureArgs {
    /// Run or repair run, a beginning of its name, or `last`; the latest 256 runs if missing
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
}

/// Arguments of `jig kb edit`.
#[derive(Debug, Args)]
pub(crate) struct KbEditArgs {
    /// The unit
    pub(crate) id: UnitId,
    #[command(flatten)]
    pub(crate) texts: KbTexts,
    /// File with `{"content":{...},"metadata":{...}}`; - is standard input. Options win over it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) from: Option<PathBuf>,
    /// Fail unless the unit has this version
    #[arg(long, value_name = "N")]
    pub(crate) if_version: Option<u32>,
}

/// How two units belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KbLinkKind {
    /// They are about the same thing
    Related,
    /// The first one says better what the other one says
    Supersedes,
    /// They cannot both be right
    Contradicts,
}

impl KbLinkKind {
    /// Returns the kind of the store.
    pub(crate) fn kind(self) -> LinkKind {
        match self {
            Self::Related => LinkKind::Related,
            Self::Supersedes => LinkKind::Supersedes,
            Self::Contradicts => LinkKind::Contradicts,
        }
    }
}

/// Arguments of `jig kb link`.
#[derive(Debug, Args)]
pub(crate) struct KbLinkArgs {
    /// The first unit
    pub(crate) one: UnitId,
    /// The other one
    pub(crate) other: UnitId,
    /// How they belong together
    #[arg(long, value_enum, default_value_t = KbLinkKind::Related)]
    pub(crate) kind: KbLinkKind,
}

/// Arguments of `jig kb export`.
#[derive(Debug, Args)]
pub(crate) struct KbExportArgs {
    /// File to write; - is standard output
    #[arg(default_value = "-", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Write archived units, too
    #[arg(long)]
    pub(crate) all: bool,
}

/// Arguments of `jig kb import`.
#[derive(Debug, Args)]
pub(crate) struct KbImportArgs {
    /// File to read; - is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Take what was verified there for verified here
    #[arg(long)]
    pub(crate) trust: bool,
}

/// Arguments of `jig kb bench`.
#[derive(Debug, Args)]
pub(crate) struct KbBenchArgs {
    /// Documents: JSON lines with id, time, title, text and files; may end in .gz
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) docs: PathBuf,
    /// Questions: JSON lines with id, time, text, files and relevant
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) queries: PathBuf,
    /// Folder for the store that is measured, on the disk that is to be measured; removed afterwards
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) scratch: Option<PathBuf>,
}

fn share(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    let fits = (0.0..=1.0).contains(&number);
    if fits { Ok(number) } else { Err("not a number from 0 to 1".to_owned()) }
}
