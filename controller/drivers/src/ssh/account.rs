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

impl SshAccount {
    /// Returns the account of the user of this process, by its environment.
    pub fn of_process() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
        let home = set("HOME").map(PathBuf::from).or(user.as_ref().map(|user| user.dir.clone()));
        Self {
            home: home.unwrap_or_else(|| PathBuf::from("/")),
            user: user.map(|user| user.name).unwrap_or_default(),
            agent: set("SSH_AUTH_SOCK").map(PathBuf::from),
        }
    }
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
