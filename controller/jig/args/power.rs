//! What users type to switch power. Parsing only.

use std::time::Duration;

use clap::{Args, ValueEnum};
use jig_model::{PlaceName, command};

use super::common::duration;

/// Arguments of `jig power`.
#[derive(Debug, Args)]
pub(crate) struct PowerArgs {
    /// Place or board (see: jig boards)
    #[arg(
        short,
        long,
        value_name = "NAME",
        env = "JIG_BOARD",
        required_unless_present = "explain"
    )]
    pub(crate) board: Option<PlaceName>,
    /// What to do
    #[arg(value_enum, required_unless_present = "explain")]
    pub(crate) action: Option<PowerVerb>,
    /// Say what would be switched, and who shares it; touches nothing
    #[arg(long, value_name = "NAME", num_args = 0..=1, conflicts_with = "action")]
    pub(crate) explain: Option<Option<PlaceName>>,
    /// How long a cycle stays off, if not as the rig file says
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) off_time: Option<Duration>,
    /// Switch although places on the same outlet are in use
    #[arg(long)]
    pub(crate) force: bool,
    /// Wait this long for another user of the board, or of one on the same outlet
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    pub(crate) wait: Duration,
}

/// What to do with a board's power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PowerVerb {
    /// Give it
    On,
    /// Take it away
    Off,
    /// Take it away, wait, and give it again
    Cycle,
    /// Ask
    Status,
    /// Ask, and ask the power sense as well: an outlet, the debug port, or the console's silence
    Verify,
}

impl PowerVerb {
    /// Returns what is asked of the rig.
    pub(crate) fn asked(self) -> command::PowerAction {
        match self {
            Self::On => command::PowerAction::On,
            Self::Off => command::PowerAction::Off,
            Self::Cycle => command::PowerAction::Cycle,
            Self::Status => command::PowerAction::Status,
            Self::Verify => command::PowerAction::Verify,
        }
    }
}
