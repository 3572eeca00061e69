//! Arguments of `jig top`.

use clap::Args;

/// Arguments of `jig top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Print the view once as plain text and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Show only places that have this text in a column
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
}
