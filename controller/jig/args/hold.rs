//! What users type after `jig hold`. Parsing only.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use super::common::duration;
use super::target::TargetArgs;

/// Arguments of `jig hold`.
#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Image to put on the board first: ELF, Intel HEX, or FILE.bin@ADDRESS; without it the board
    /// boots what it has
    #[arg(long, visible_alias = "elf", value_hint = ValueHint::FilePath)]
    pub(crate) image: Option<PathBuf>,
    /// Wait this long while another process uses the board
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    pub(crate) wait: Duration,
}
