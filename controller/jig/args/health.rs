//! What users type to look at a rig's health and at what is attached. Parsing only.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use jig_model::PlaceName;

/// Arguments of `jig health`.
#[derive(Debug, Args)]
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

/// Arguments of `jig discover`.
#[derive(Debug, Args)]
pub(crate) struct DiscoverArgs {
    /// Write the rig file here, where there is none yet, instead of printing it
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Where the kernel shows devices
    #[arg(long, value_name = "DIR", default_value = "/sys", hide = true)]
    pub(crate) sysfs: PathBuf,
    /// Where the nodes of devices are
    #[arg(long, value_name = "DIR", default_value = "/dev", hide = true)]
    pub(crate) dev: PathBuf,
}
