//! Commanding a target that runs an operating system.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::PlaceName;
use crate::shell::ShellWay;

/// Runs a command on a target, or copies a file to or from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellCommand {
    /// The place.
    pub place: PlaceName,
    /// What to do.
    pub what: ShellTask,
    /// The way to the shell; as the board says if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<ShellWay>,
    /// How long it may take, in milliseconds.
    pub timeout_ms: u64,
}

/// What to do by the shell of a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ShellTask {
    /// Run a program. Any exit status passes.
    Exec {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// Copy a file of the caller's host to the target.
    Upload {
        /// The file.
        from: PathBuf,
        /// The path on the target.
        to: String,
        /// Its permissions there, such as 0o755.
        mode: u32,
    },
    /// Copy a file of the target into the run.
    Download {
        /// The path on the target.
        from: String,
        /// The name in the run.
        to: String,
    },
}
