//! The account on this host that a connection is made for.

use std::path::PathBuf;

/// The account on this host whose keys and settings are used.
#[derive(Debug, Clone)]
pub struct SshAccount {
    /// Home folder, for `~`.
    pub home: PathBuf,
    /// Name of the user: that of the far side, too, if nothing else is said.
    pub user: String,
    /// Socket of the SSH agent: the value of `SSH_AUTH_SOCK`.
    pub agent: Option<PathBuf>,
}

/// Which SSH configuration is read.
#[derive(Debug, Clone, Default)]
pub enum SshConfigFile {
    /// None.
    None,
    /// `~/.ssh/config`, if it exists.
    #[default]
    OfUser,
    /// This file, which must exist.
    Path(PathBuf),
}
