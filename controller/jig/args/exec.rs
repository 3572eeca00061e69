//! What users type after `jig exec` and `jig cp`. Parsing only.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use jig_model::command::{Command, ShellCommand, ShellTask};
use jig_model::shell::ShellWay;

use super::common::duration;
use super::ms;
use super::target::TargetArgs;

/// Arguments of `jig exec`.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) how: ShellHow,
    /// Program and arguments, handed on one by one
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) argv: Vec<String>,
}

/// Arguments of `jig cp`.
#[derive(Debug, Args)]
pub(crate) struct CopyArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) how: ShellHow,
    /// File to copy: FILE of this host, or :PATH of the target
    #[arg(value_name = "FROM")]
    pub(crate) from: String,
    /// Where to: :PATH of the target, or FILE of this host; a folder gets the file's own name
    #[arg(value_name = "TO")]
    pub(crate) to: String,
}

/// How a shell is reached.
#[derive(Debug, Args)]
pub(crate) struct ShellHow {
    /// Reach the shell this way [default: the board's own]
    #[arg(long, value_name = "WAY")]
    pub(crate) via: Option<WayArg>,
    /// Give up after this long (10s, 2m)
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    pub(crate) timeout: Duration,
}

/// A way to a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WayArg {
    /// Over SSH
    Ssh,
    /// Over a serial console
    Serial,
}

/// Both ends of a copy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CopyEnds {
    /// From this host to the target.
    Upload {
        /// The file.
        from: PathBuf,
        /// The path on the target.
        to: String,
    },
    /// From the target to this host.
    Download {
        /// The path on the target.
        from: String,
        /// The file, or a folder.
        to: PathBuf,
    },
}

impl ShellHow {
    fn command(&self, target: &TargetArgs, what: ShellTask) -> Command {
        Command::Shell(ShellCommand {
            place: target.board.clone(),
            what,
            via: self.via.map(|way| match way {
                WayArg::Ssh => ShellWay::Ssh,
                WayArg::Serial => ShellWay::Serial,
            }),
            timeout_ms: ms(self.timeout),
        })
    }
}

impl ExecArgs {
    /// Returns the command.
    pub(crate) fn command(&self) -> Command {
        self.how.command(&self.target, ShellTask::Exec { argv: self.argv.clone() })
    }
}

impl CopyArgs {
    /// Returns both ends, of which one begins with `:`; nothing if both or none do.
    pub(crate) fn ends(&self) -> Option<CopyEnds> {
        match (self.from.strip_prefix(':'), self.to.strip_prefix(':')) {
            (None, Some(to)) => {
                Some(CopyEnds::Upload { from: PathBuf::from(&self.from), to: to.to_owned() })
            }
            (Some(from), None) => {
                Some(CopyEnds::Download { from: from.to_owned(), to: PathBuf::from(&self.to) })
            }
            (Some(_), Some(_)) | (None, None) => None,
        }
    }

    /// Returns the command that copies.
    pub(crate) fn command(&self, what: ShellTask) -> Command {
        self.how.command(&self.target, what)
    }
}
