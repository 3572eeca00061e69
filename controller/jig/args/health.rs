//! What users type to look at a rig's health, to recover it, and to see what is attached. Parsing
//! only.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use jig_model::PlaceName;
use jig_model::recovery::RecoveryStep;

use super::target::TargetArgs;

const HEALTH_HELP: &str = "\
Exit codes:
  0    every place that was asked for is fit for use
  2    there is no such place
  3    profile or rig file
  75   a place is not fit for use (unhealthy or quarantined), or a check has just failed

See also: jig recover -b NAME, jig machine health";

/// Arguments of `jig health`.
#[derive(Debug, Args)]
#[command(after_long_help = HEALTH_HELP)]
pub(crate) struct HealthArgs {
    /// Place or board; all places if missing (see: jig boards)
    #[arg(short, long, value_name = "NAME", env = "JIG_BOARD")]
    pub(crate) board: Option<PlaceName>,
    /// Run the checks now, and note what they show
    #[arg(long)]
    pub(crate) check: bool,
    /// Show what happened, newest first, and what it adds up to
    #[arg(long, value_name = "ENTRIES", num_args = 0..=1, default_missing_value = "20")]
    pub(crate) history: Option<u32>,
}

const RECOVER_HELP: &str = "\
A place that proves to work is left as it is. Else the steps of its ladder are taken, gentlest
first, until one is proven to have helped. All of it is recorded as a run.";

const RECOVER_CODES: &str = "\
Exit codes:
  0    the place works; with --dry-run: nothing was touched
  2    there is no such place or step
  3    profile or rig file
  75   no step helped, or the place is in use
  130  cancelled

See also: jig health -b NAME, jig runs log";

/// Says what `jig recover` does, which steps there are, and how it may end.
fn recover_help() -> String {
    let name = |step: &RecoveryStep| step.as_str().len();
    let width = RecoveryStep::ALL.iter().map(name).max().unwrap_or_default();
    let line = |step: &RecoveryStep| {
        let meaning = step.meaning().trim_end_matches('.');
        format!("  {:<width$}  {meaning}\n", step.as_str())
    };
    let steps: String = RecoveryStep::ALL.iter().map(line).collect();
    format!("{RECOVER_HELP}\n\nSteps:\n{steps}\n{RECOVER_CODES}")
}

/// Arguments of `jig recover`.
#[derive(Debug, Args)]
#[command(after_long_help = recover_help())]
pub(crate) struct RecoverArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Begin with this step, even if the place works (see --dry-run)
    #[arg(long, value_name = "STEP", value_parser = steps(), hide_possible_values = true)]
    pub(crate) from: Option<RecoveryStep>,
    /// Show the ladder as it stands at this place, and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

const DISCOVER_HELP: &str = "\
No device is opened. Name the boards in what is printed, and check it: jig profile check rig.toml

Exit codes:
  0    whatever is attached, also nothing
  2    the file of --output is there already
  75   the host cannot be looked at, or the file cannot be written";

/// Arguments of `jig discover`.
#[derive(Debug, Args)]
#[command(after_long_help = DISCOVER_HELP)]
pub(crate) struct DiscoverArgs {
    /// Write the rig file here instead of printing it; replaces none
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Where the kernel shows devices
    #[arg(long, value_name = "DIR", default_value = "/sys", hide = true)]
    pub(crate) sysfs: PathBuf,
    /// Where the nodes of devices are
    #[arg(long, value_name = "DIR", default_value = "/dev", hide = true)]
    pub(crate) dev: PathBuf,
}

/// Reads a step of the ladder; a list, so that shells complete it.
fn steps() -> impl TypedValueParser<Value = RecoveryStep> {
    let value = |step: &RecoveryStep| {
        PossibleValue::new(step.as_str()).help(step.meaning().trim_end_matches('.'))
    };
    let values: Vec<PossibleValue> = RecoveryStep::ALL.iter().map(value).collect();
    PossibleValuesParser::new(values).try_map(|text| text.parse::<RecoveryStep>())
}
