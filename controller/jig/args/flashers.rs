//! Arguments of `jig flashers`. Parsing only.

use clap::Args;

/// Arguments of `jig flashers`.
#[derive(Debug, Args)]
pub(crate) struct FlashersArgs {
    /// Tell all that is known about this one
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}
