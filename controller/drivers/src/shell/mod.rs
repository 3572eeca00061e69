//! The shell of a target that runs an operating system, over SSH.
//!
//! Owns the quoting for each kind of shell, the scripts that copy files, and the console that has the
//! output of commands. Refuses to judge: a status is handed on as it is. A shell on a serial console
//! has no driver, because the rig owns that console.

mod console;
mod decode;
mod error;
mod quote;
mod remote;
mod scripts;

pub use error::ShellError;
pub use quote::{QuoteError, command_line};

use std::sync::Arc;
use std::time::Duration;

use jig_model::protocol::{BindContext, DriverError, PartFactory, Protocols};

use self::remote::SshShell;
use crate::ssh::SshAccount;

/// How long a server that does not answer is waited for, unless the rig says otherwise: long enough for
/// one lost packet.
const READY: Duration = Duration::from_secs(3);

/// Adds the shell of a place that is reached over SSH.
pub struct ShellFactory {
    /// The account on this host whose keys are used.
    pub account: SshAccount,
}

impl PartFactory for ShellFactory {
    fn join(&self, context: &BindContext, mut built: Protocols) -> Result<Protocols, DriverError> {
        let Some(shell) = context.profile.shell_at(&context.place) else { return Ok(built) };
        if let Some(access) = shell.ssh.clone() {
            built.shell = Some(Box::new(SshShell {
                shell,
                access,
                account: self.account.clone(),
                sink: Arc::clone(&context.sink),
                address: None,
                ready_within: READY,
                output: None,
            }));
        }
        Ok(built)
    }
}
