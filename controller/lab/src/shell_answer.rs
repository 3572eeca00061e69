//! Whether the shell of a place answers, without a run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jig_drivers::shell::ShellFactory;
use jig_drivers::ssh::SshAccount;
use jig_model::profile::BoardProfile;
use jig_model::protocol::{
    BindContext, DriverError, NoLedger, NoSink, PartFactory as _, Protocols,
};
use jig_model::rig_file::Place;
use jig_model::shell::{SshHost, TargetShell};
use jig_model::{Cause, Fault};
use tokio::time::timeout;

use crate::Catalogue;

/// How long an answer is waited for: a server that resolves names may take some seconds.
const LIMIT: Duration = Duration::from_secs(20);

/// Says why a shell does not answer.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ShellSilence(#[from] DriverError);

impl ShellSilence {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        self.0.cause.fault().unwrap_or(Fault::Lab)
    }
}

impl Catalogue {
    /// Asks the shell of a place over SSH for the boot that it is in, and returns what it says: a text that
    /// differs from boot to boot. Nothing if no SSH server can be asked: the shell is on a serial console, or
    /// behind a port of an emulator that is started for each command.
    ///
    /// # Errors
    /// It does not answer, or refuses the user.
    pub async fn ask_shell(
        &self,
        place: &Place,
        profile: &Arc<BoardProfile>,
    ) -> Result<Option<String>, ShellSilence> {
        let shell = profile.shell_at(place).and_then(|shell| shell.ssh);
        if !shell.is_some_and(|ssh| matches!(ssh.host, SshHost::Named { .. })) {
            return Ok(None);
        }
        let context = BindContext {
            profile: Arc::clone(profile),
            place: Arc::new(place.clone()),
            sink: Arc::new(NoSink),
            // A question leaves no evidence.
            evidence: PathBuf::new(),
            images: self.images_dir(),
            ledger: Arc::new(NoLedger),
        };
        let factory = ShellFactory { account: SshAccount::of_process() };
        let Some(mut port) = factory.join(&context, Protocols::default())?.shell else {
            return Ok(None);
        };
        match timeout(LIMIT, port.boot_id()).await {
            Ok(said) => Ok(Some(said?)),
            Err(_) => {
                let words = format!("its shell did not answer within {LIMIT:?}");
                Err(DriverError::new(Cause::ShellUnreachable, words).into())
            }
        }
    }
}

/// Says how a shell is reached, in a few words.
pub(crate) fn ways(shell: &TargetShell) -> String {
    let ssh = shell.ssh.as_ref().map(|ssh| {
        let user = ssh.user.as_ref().map_or_else(String::new, |user| format!("{user}@"));
        match &ssh.host {
            SshHost::Named { host, port: 22 } => format!("ssh {user}{host}"),
            SshHost::Named { host, port } => format!("ssh {user}{host}:{port}"),
            SshHost::Forwarded(_) => format!("ssh {user}emulator"),
        }
    });
    let serial = shell.serial.as_ref().map(|serial| format!("serial {}", serial.console));
    ssh.into_iter().chain(serial).collect::<Vec<_>>().join(" or ")
}
