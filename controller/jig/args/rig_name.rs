//! Names of rigs: files of this host, and connections.

use std::path::PathBuf;
use std::str::FromStr;

/// What `--rig` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RigName {
    /// The rig file of this host.
    File(PathBuf),
    /// The socket of `jig serve`: `unix:PATH`.
    Socket(PathBuf),
}

/// Says that a text names no rig.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotRigName {
    #[error("a path is missing: unix:PATH")]
    NoPath,
}

impl FromStr for RigName {
    type Err = NotRigName;

    fn from_str(text: &str) -> Result<Self, NotRigName> {
        match text.strip_prefix("unix:") {
            Some("") => Err(NotRigName::NoPath),
            Some(path) => Ok(Self::Socket(path.into())),
            None => Ok(Self::File(text.into())),
        }
    }
}
