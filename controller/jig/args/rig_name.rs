//! Names of rigs: files of this host, and connections.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use jig_drivers::ssh::{SshTarget, SshTargetError};

/// What `--rig` names.
#[derive(Debug, Clone)]
pub(crate) enum RigName {
    /// The rig file of this host.
    File(PathBuf),
    /// The rig of this host as it is found, without the service of this host: `local`.
    Local,
    /// The socket of `jig serve`: `unix:PATH`.
    Socket(PathBuf),
    /// The rig of another host: `ssh://HOST`.
    Ssh(SshTarget),
}

/// Says that a text names no rig.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum NotRigName {
    #[error("a path is missing: unix:PATH")]
    NoPath,
    #[error(transparent)]
    Ssh(#[from] SshTargetError),
}

impl fmt::Display for RigName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Local => f.write_str("local"),
            Self::Socket(path) => write!(f, "unix:{}", path.display()),
            Self::Ssh(target) => target.fmt(f),
        }
    }
}

impl FromStr for RigName {
    type Err = NotRigName;

    fn from_str(text: &str) -> Result<Self, NotRigName> {
        if text.starts_with("ssh://") {
            return Ok(Self::Ssh(text.parse()?));
        }
        if text == "local" {
            return Ok(Self::Local);
        }
        match text.strip_prefix("unix:") {
            Some("") => Err(NotRigName::NoPath),
            Some(path) => Ok(Self::Socket(path.into())),
            None => Ok(Self::File(text.into())),
        }
    }
}
