//! What users type after `jig lease` and `jig shell`. Parsing only.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use jig_model::lease::{LeaseAsk, LeaseNamed, PlaceSelector};
use jig_model::{ClassName, LeaseId, PlaceName};

use super::command::ms;
use super::common::duration;

/// What to do with leases.
#[derive(Debug, Subcommand)]
pub(crate) enum LeaseCommand {
    /// Get a place for yourself for a while
    Acquire(AcquireArgs),
    /// Show places, who has them until when, and who waits
    #[command(visible_alias = "list")]
    Ls,
    /// Have a lease end later
    Extend {
        /// Lease or place; that of --lease if missing
        #[arg(value_parser = lease_or_place)]
        of: Option<LeaseNamed>,
        /// By how much
        #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
        by: Duration,
    },
    /// Give a place back, or leave the queue
    Release {
        /// Lease or place; that of --lease if missing
        #[arg(value_parser = lease_or_place)]
        of: Option<LeaseNamed>,
    },
    /// End the lease of another user, whose command under it is stopped
    Steal {
        /// The place
        place: PlaceName,
        /// Why, for the other user and for the record
        #[arg(long, value_name = "WORDS")]
        why: String,
    },
}

/// Arguments of `jig lease acquire`.
#[derive(Debug, Args)]
pub(crate) struct AcquireArgs {
    #[command(flatten)]
    pub(crate) wanted: WantedPlace,
    /// How long it lasts (30m, 2h) [default: as the rig file says, else 30m]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) ttl: Option<Duration>,
    /// Keep the board powered as long as the lease lasts, with this image: ELF, Intel HEX, or
    /// FILE.bin@ADDRESS
    #[arg(long, visible_alias = "elf", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) image: Option<PathBuf>,
    /// Let only commands that name the lease use it (--lease, JIG_LEASE): for jobs that share a user
    #[arg(long)]
    pub(crate) by_id: bool,
}

/// Which place a lease is for, and how it is waited for.
#[derive(Debug, Args)]
pub(crate) struct WantedPlace {
    /// Place or board, or what it must have: arch=arm,tag=radio; keys are place, board, arch, chip,
    /// tag, has (probe, power, console, network, canary) and kind (real, emulated)
    #[arg(short, long, value_name = "SELECTOR", env = "JIG_BOARD")]
    pub(crate) board: PlaceSelector,
    /// Stand in the queue for this long (10m, 2h)
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    pub(crate) wait: Duration,
    /// Wait as a user of this class, such as ci; not one that goes before your own
    #[arg(long, value_name = "CLASS")]
    pub(crate) priority: Option<ClassName>,
    /// What it is for, as others see it
    #[arg(long, value_name = "WORDS")]
    pub(crate) comment: Option<String>,
}

/// Arguments of `jig shell`.
#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    pub(crate) wanted: WantedPlace,
    /// Keep the board powered as long as the shell runs, with this image: ELF, Intel HEX, or
    /// FILE.bin@ADDRESS
    #[arg(long, visible_alias = "elf", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) image: Option<PathBuf>,
    /// Program to run in place of the shell, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl WantedPlace {
    /// Returns the question, under an id that no other lease has.
    pub(crate) fn ask(&self, lease: LeaseId) -> LeaseAsk {
        LeaseAsk {
            lease,
            need: self.board.clone(),
            ttl_ms: None,
            class: self.priority.clone(),
            comment: self.comment.clone(),
            by_id: false,
            kept: false,
        }
    }
}

impl AcquireArgs {
    /// Returns the question, under an id that no other lease has.
    pub(crate) fn ask(&self, lease: LeaseId) -> LeaseAsk {
        let ask = self.wanted.ask(lease);
        LeaseAsk { ttl_ms: self.ttl.map(ms), by_id: self.by_id, ..ask }
    }
}

/// A lease begins with `lease-`; another name is that of a place.
fn lease_or_place(text: &str) -> Result<LeaseNamed, jig_model::NameError> {
    match text.starts_with("lease-") {
        true => Ok(LeaseNamed::Lease(text.parse()?)),
        false => Ok(LeaseNamed::Place(text.parse()?)),
    }
}
