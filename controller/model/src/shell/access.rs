//! The two ways to a target's shell.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::ConsoleName;
use crate::document::Choice;
use crate::pattern::Pattern;
use crate::power::SecretSource;

/// Names the ways to a target's shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShellWay {
    /// Over SSH. Standard output and error go to a console of their own.
    Ssh,
    /// Over a serial console, where commands are typed and their output is read.
    Serial,
}

impl Choice for ShellWay {
    const WHAT: &'static str = "way to a shell";
    const CHOICES: &'static [(&'static str, Self)] =
        &[("ssh", Self::Ssh), ("serial", Self::Serial)];
}

impl fmt::Display for ShellWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ssh => "ssh",
            Self::Serial => "serial",
        })
    }
}

/// Names the host keys that are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostKeyCheck {
    /// Those in the file of known hosts.
    Known,
    /// These, and that of a host without an entry, which is then written down.
    AcceptNew,
    /// Any. For a board that makes a new key at each boot, on a network where no other host can take
    /// its address.
    Any,
}

impl Choice for HostKeyCheck {
    const WHAT: &'static str = "check of host keys";
    const CHOICES: &'static [(&'static str, Self)] =
        &[("known", Self::Known), ("accept-new", Self::AcceptNew), ("any", Self::Any)];
}

/// Where an SSH server listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SshHost {
    /// At a host of the network.
    Named {
        /// Its name or address.
        host: String,
        /// Its port.
        port: u16,
    },
    /// Behind a port that the emulator of the board forwards, by its name.
    Forwarded(String),
}

/// How a shell is reached over SSH.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SshAccess {
    /// Where the server listens.
    pub host: SshHost,
    /// The user; as the SSH configuration says, else the user of Jig, if missing.
    pub user: Option<String>,
    /// The file of the private key, absolute or below `~/`; agent and usual files if missing.
    pub identity: Option<PathBuf>,
    /// The file of known hosts, absolute or below `~/`; the usual files if missing.
    pub known_hosts: Option<PathBuf>,
    /// Which host keys are accepted.
    pub host_key: HostKeyCheck,
    /// The console of the run that has the output of commands.
    pub console: ConsoleName,
}

/// How a shell is reached over a serial console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SerialAccess {
    /// The console.
    pub console: ConsoleName,
    /// What the shell prints when it takes a command.
    pub prompt: Pattern,
    /// How to log in, where the console asks for it.
    pub login: Option<SerialLogin>,
}

/// How to log in at a serial console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SerialLogin {
    /// The user.
    pub user: String,
    /// What the console prints when it wants the user.
    pub user_prompt: Pattern,
    /// Where the password is kept, if there is one.
    pub password: Option<SecretSource>,
    /// What the console prints when it wants the password.
    pub password_prompt: Pattern,
}
