//! Reaching the rig of another host over SSH.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jig_drivers::ssh::{
    SshAccount, SshEndHandle, SshError, SshOptions, SshPipe, SshTarget, split_words,
};
use jig_model::Fault;
use jig_model::command::Refusal;
use jig_model::protocol::{BoxFuture, NoLedger};
use jig_service::client::{Connect, Connected};
use tokio::time::timeout;

use crate::args::{Common, own_name};
use crate::failure::{Failure, chain};

/// How long the end of a connection may take to be explained, once its output has ended.
const EXPLAIN: Duration = Duration::from_secs(2);

/// Starts `jig rpc --stdio` on another host.
pub(super) struct SshConnect {
    target: SshTarget,
    how: SshWay,
    /// How the last connection ends.
    last: Mutex<Option<SshEndHandle>>,
}

enum SshWay {
    BuiltIn(Box<SshOptions>),
    /// A client with OpenSSH's options.
    Client(Vec<String>),
}

impl SshConnect {
    /// Reads how the host is reached; nothing is connected yet.
    pub(super) fn new(common: &Common, target: SshTarget) -> Result<Self, Failure> {
        let how = match &common.ssh_command {
            Some(client) => SshWay::Client(split_words(client).map_err(|error| {
                Failure::new(Fault::Usage, format!("--ssh-command: {}", chain(&error)))
            })?),
            None => {
                let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
                let home = set("HOME").map(PathBuf::from).ok_or_else(|| {
                    let words = "HOME is not set, so there are no SSH keys to be found";
                    Failure::new(Fault::Usage, words).help("set HOME, or use --ssh-command")
                })?;
                let agent = set("SSH_AUTH_SOCK").map(PathBuf::from);
                let account = SshAccount { home, user: own_name(), agent };
                let options = SshOptions::new(target.clone(), remote_command(&target), account);
                let accept_new = common.ssh_accept_new || options.accept_new;
                SshWay::BuiltIn(Box::new(SshOptions { accept_new, ..options }))
            }
        };
        Ok(Self { target, how, last: Mutex::default() })
    }
}

fn remote_command(target: &SshTarget) -> Vec<String> {
    let program = target.program().unwrap_or("jig");
    [program, "rpc", "--stdio"].map(str::to_owned).to_vec()
}

impl Connect for SshConnect {
    fn host(&self) -> String {
        self.target.to_string()
    }

    fn connect(&self) -> BoxFuture<'_, Result<Connected, Refusal>> {
        Box::pin(async {
            let opened = match &self.how {
                SshWay::BuiltIn(options) => SshPipe::open((**options).clone()).await,
                SshWay::Client(client) => {
                    let command = remote_command(&self.target);
                    let ledger = Arc::new(NoLedger);
                    SshPipe::open_with_client(client, &self.target, &command, ledger).await
                }
            };
            let pipe = opened.map_err(|error| refusal(&error))?;
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(pipe.end_handle());
            let (from, to) = tokio::io::split(pipe);
            Ok(Connected { from: Box::new(from), to: Box::new(to) })
        })
    }

    fn why_ended(&self) -> BoxFuture<'_, Option<Refusal>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async {
            let end = timeout(EXPLAIN, last?.ended()).await.ok()??;
            end.result().err().map(|error| refusal(&error))
        })
    }
}

fn refusal(error: &SshError) -> Refusal {
    let (fault, help) = (error.fault(), error.help());
    Refusal { fault, message: chain(error), help, problems: Vec::new() }
}
