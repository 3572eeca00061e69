//! Options and forms of values that several commands share.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum, ValueHint};
use jig_lab::{CatalogueReader, ChipAtProbe, LabConfig};
pub(super) use jig_model::document::parse_duration as duration;
use jig_model::document::{QuantityError, parse_size};
use jig_model::identity::IdentityError;
use jig_model::lease::RigUser;
use jig_model::{Fault, Identity, IdentityName, LeaseId};
use jig_rig::identity::own_identity;

use super::rig_name::RigName;
use crate::failure::Failure;

/// Options every command knows.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// Rig file that says what this lab has, or a rig elsewhere: ssh://[USER@]HOST[:PORT][/PATH/OF/JIG]
    /// or unix:SOCKET
    #[arg(long, global = true, value_name = "RIG", env = "JIG_RIG", value_hint = ValueHint::FilePath)]
    pub(crate) rig: Option<RigName>,
    /// Reach a rig over this SSH client instead of the built-in one, such as "ssh -F lab.conf"
    #[arg(long, global = true, value_name = "COMMAND", env = "JIG_SSH_COMMAND")]
    pub(crate) ssh_command: Option<String>,
    /// Trust an SSH host that is not known yet, and remember its key
    #[arg(long, global = true, env = "JIG_SSH_ACCEPT_NEW", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) ssh_accept_new: bool,
    /// Lease to use places under; any lease of this user if not named
    #[arg(long, global = true, value_name = "LEASE", env = "JIG_LEASE")]
    pub(crate) lease: Option<LeaseId>,
    /// Folder of the runs
    #[arg(long, global = true, value_name = "DIR", env = "JIG_RUNS", value_hint = ValueHint::DirPath)]
    pub(crate) runs: Option<PathBuf>,
    /// Folder of locks, leases, health and console logs: one for all that share a rig
    #[arg(long, global = true, value_name = "DIR", env = "JIG_STATE", value_hint = ValueHint::DirPath)]
    pub(crate) state: Option<PathBuf>,
    /// Further folder of board profiles; wins over built-in ones
    #[arg(long, global = true, value_name = "DIR", env = "JIG_BOARDS", value_hint = ValueHint::DirPath)]
    pub(crate) boards: Option<PathBuf>,
    /// Print JSON on standard output instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only what was asked for: no progress, no console output
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Log more (-v what happens, -vv how, -vvv everything); RUST_LOG wins
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Form of the log on standard error
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, env = "JIG_LOG_FORMAT")]
    pub(crate) log_format: LogFormat,
    /// The chip that is the board of the verb, where it is one.
    #[arg(skip)]
    pub(crate) chip: Option<ChipAtProbe>,
    /// As whom the rig of this host is used; this user if nothing is said.
    #[arg(skip)]
    pub(crate) identity: Option<Identity>,
    /// Keeps what was read of the rig of this host.
    #[arg(skip)]
    pub(crate) reader: Arc<CatalogueReader>,
}

impl Common {
    /// Says where the rig is described and its runs are kept; it has to be the rig of this host.
    pub(crate) fn lab(&self) -> Result<LabConfig, Failure> {
        match &self.rig {
            None | Some(RigName::File(_)) => Ok(self.own_lab()),
            Some(there @ (RigName::Socket(_) | RigName::Ssh(_))) => {
                let words = "this verb works on the rig of this host, not on one elsewhere";
                let way = match there {
                    RigName::Ssh(target) => {
                        let port = target.port().map(|port| format!("-p {port} "));
                        let user = target.user().map(|user| format!("{user}@"));
                        let (port, user) = (port.unwrap_or_default(), user.unwrap_or_default());
                        format!(": ssh {port}{user}{}", target.host())
                    }
                    RigName::Socket(_) | RigName::File(_) => String::new(),
                };
                Err(Failure::new(Fault::Usage, words).help(format!(
                    "run it at the rig's host{way}; for this host leave out --rig and JIG_RIG"
                )))
            }
        }
    }

    /// Tells whether the rig is that of another host, or behind a socket.
    pub(crate) fn is_elsewhere(&self) -> bool {
        matches!(self.rig, Some(RigName::Socket(_) | RigName::Ssh(_)))
    }

    /// Says where the rig of this host is described and its runs are kept.
    pub(crate) fn own_lab(&self) -> LabConfig {
        let rig = match &self.rig {
            Some(RigName::File(file)) => Some(file.clone()),
            None | Some(RigName::Socket(_) | RigName::Ssh(_)) => None,
        };
        LabConfig {
            rig,
            boards: self.boards.clone(),
            runs: self.runs.clone(),
            state: self.state.clone(),
            chip: self.chip.clone(),
            user: RigUser {
                identity: self.identity.clone().unwrap_or_else(own_identity),
                lease: self.lease.clone(),
                ..RigUser::default()
            },
            ..LabConfig::default()
        }
    }

    /// Returns the options that let another `jig` see the same rig.
    pub(crate) fn again(&self) -> Vec<OsString> {
        let rig = self.own_lab().rig;
        let named = [
            ("--rig", &rig),
            ("--runs", &self.runs),
            ("--state", &self.state),
            ("--boards", &self.boards),
        ];
        let mut args: Vec<OsString> = Vec::new();
        for (option, path) in named {
            args.extend(path.iter().flat_map(|path| [option.into(), path.clone().into()]));
        }
        args.extend(std::iter::repeat_n("-v".into(), self.verbose.into()));
        if self.log_format == LogFormat::Json {
            args.extend(["--log-format".into(), "json".into()]);
        }
        args
    }
}

/// Reads the name of a key. One of a user of this host would be taken for that user.
pub(super) fn key_name(text: &str) -> Result<IdentityName, IdentityError> {
    let name: IdentityName = text.parse()?;
    if name.is_local() { Err(IdentityError::of(text)) } else { Ok(name) }
}

/// Names the user that this process runs as.
pub(crate) fn own_name() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
    user.map_or_else(|| nix::unistd::geteuid().to_string(), |user| user.name)
}

/// Form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

pub(super) fn size(text: &str) -> Result<u64, QuantityError> {
    parse_size(text).map(|size| size.0)
}
