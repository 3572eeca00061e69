//! What users type after `jig access` and `jig audit`. Parsing only.

use std::time::Duration;

use clap::{Args, Subcommand};
use jig_model::access::AccessRight;
use jig_model::{IdentityName, PlaceName};

use super::common::duration;

/// What to do with access rules.
#[derive(Debug, Subcommand)]
pub(crate) enum AccessCommand {
    /// Tell what an identity may do at places, and by which rule
    Check(AccessCheckArgs),
}

/// Arguments of `jig access check`.
#[derive(Debug, Args)]
pub(crate) struct AccessCheckArgs {
    /// Identity: a key such as ci, or a user of this host as unix:alice [default: this user]
    #[arg(long = "as", value_name = "IDENTITY")]
    pub(crate) identity: Option<IdentityName>,
    /// Place; each place if missing
    #[arg(short, long, value_name = "NAME")]
    pub(crate) board: Option<PlaceName>,
    /// Right (see, use, power, flash, administer) or verb (run, console, erase); each right if missing
    #[arg(value_name = "VERB")]
    pub(crate) right: Option<AccessRight>,
}

/// Arguments of `jig audit`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) command: Option<AuditCommand>,
    /// Show the lines of this time only (30m, 2d)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) since: Option<Duration>,
}

/// What else to do with the audit log.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Check the chain of its lines, and name the first bad one
    Verify {
        /// Hash of a line that was noted elsewhere: it has to be there
        #[arg(long, value_name = "SHA256")]
        contains: Option<String>,
    },
}
