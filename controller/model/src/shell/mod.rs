//! The shell of a target that runs an operating system: how it is commanded, and by what.
//!
//! A profile says what all boards of a kind have in common (kind of shell, prompt, how to reboot), a
//! place says where its board is reached (host, user, key). [`ShellTable::over`] puts the place's keys
//! before the profile's, key by key, and `BoardProfile::shell_at` returns what holds at a place.
//! Nothing here connects to anything.

mod access;
mod posix;
mod raw;
#[cfg(test)]
mod tests;

pub use access::{HostKeyCheck, SerialAccess, SerialLogin, ShellWay, SshAccess, SshHost};
pub use posix::{posix_line, posix_word};
pub(crate) use raw::RawShell;
pub(crate) use raw::{check_in_profile, lower, sound};

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::ConsoleName;
use crate::document::Choice;
use crate::pattern::Pattern;

/// Name of the console that has the output of commands over SSH, unless the board has one of this
/// name.
pub const SHELL_CONSOLE: &str = "shell";

/// Names the shells that Jig can quote for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShellKind {
    /// A POSIX shell, such as dash, bash or busybox ash.
    #[default]
    Sh,
    /// PowerShell, 5.1 or later.
    PowerShell,
    /// `cmd.exe`.
    Cmd,
}

impl Choice for ShellKind {
    const WHAT: &'static str = "kind of shell";
    const CHOICES: &'static [(&'static str, Self)] =
        &[("sh", Self::Sh), ("powershell", Self::PowerShell), ("cmd", Self::Cmd)];
}

impl ShellKind {
    /// Returns the command that reboots a system with this shell, unless a table says another one.
    pub(crate) fn reboot(self) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Sh => &["reboot"],
            Self::PowerShell | Self::Cmd => &["shutdown", "/r", "/t", "0"],
        };
        words.iter().map(|&word| word.to_owned()).collect()
    }
}

/// Names the encodings in which a target prints. The console of a run has UTF-8.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextEncoding {
    /// UTF-8, and bytes of other encodings as they are.
    #[default]
    Utf8,
    /// UTF-16, low byte first.
    Utf16le,
    /// Code page 437: consoles of an English Windows.
    Cp437,
    /// Code page 850: consoles of a Western European Windows.
    Cp850,
    /// Code page 1252: programs without a console on a Western European Windows.
    Cp1252,
}

impl Choice for TextEncoding {
    const WHAT: &'static str = "encoding";
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("utf-8", Self::Utf8),
        ("utf-16le", Self::Utf16le),
        ("cp437", Self::Cp437),
        ("cp850", Self::Cp850),
        ("cp1252", Self::Cp1252),
    ];
}

/// The `[shell]` table of a profile or place: what it says, and nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ShellTable {
    /// The kind of shell.
    pub kind: Option<ShellKind>,
    /// The encoding of its output.
    pub encoding: Option<TextEncoding>,
    /// Which way commands take if a plan does not say.
    pub via: Option<ShellWay>,
    /// The host, by name or address.
    pub host: Option<String>,
    /// Its SSH port.
    pub port: Option<u16>,
    /// Name of the port of the emulator behind which the SSH server listens.
    pub forwarded: Option<String>,
    /// The user to log in as over SSH.
    pub user: Option<String>,
    /// The file of the private key.
    pub identity: Option<PathBuf>,
    /// The file of known hosts.
    pub known_hosts: Option<PathBuf>,
    /// Which host keys are accepted.
    pub host_key: Option<HostKeyCheck>,
    /// The serial console of the shell.
    pub console: Option<ConsoleName>,
    /// What the shell prints when it takes a command.
    pub prompt: Option<Pattern>,
    /// How to log in at the serial console.
    pub login: Option<SerialLogin>,
    /// The command that reboots the target.
    pub reboot: Option<Vec<String>>,
}

impl ShellTable {
    /// Returns this table, with the keys of another one where this one has none.
    #[must_use]
    pub fn over(&self, base: &Self) -> Self {
        let (this, base) = (self.clone(), base.clone());
        Self {
            kind: this.kind.or(base.kind),
            encoding: this.encoding.or(base.encoding),
            via: this.via.or(base.via),
            host: this.host.or(base.host),
            port: this.port.or(base.port),
            forwarded: this.forwarded.or(base.forwarded),
            user: this.user.or(base.user),
            identity: this.identity.or(base.identity),
            known_hosts: this.known_hosts.or(base.known_hosts),
            host_key: this.host_key.or(base.host_key),
            console: this.console.or(base.console),
            prompt: this.prompt.or(base.prompt),
            login: this.login.or(base.login),
            reboot: this.reboot.or(base.reboot),
        }
    }
}

/// The shell of a board at a place. At least one of `ssh` and `serial` is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TargetShell {
    /// The kind of shell.
    pub kind: ShellKind,
    /// The encoding of its output.
    pub encoding: TextEncoding,
    /// How it is reached over SSH.
    pub ssh: Option<SshAccess>,
    /// How it is reached over a serial console.
    pub serial: Option<SerialAccess>,
    /// Which way commands take if a plan does not say; that way exists.
    pub via: ShellWay,
    /// The command that reboots the target. Never empty.
    pub reboot: Vec<String>,
}

impl TargetShell {
    /// Returns the way a command takes, if it exists here.
    pub fn way(&self, asked: Option<ShellWay>) -> Option<ShellWay> {
        let way = asked.unwrap_or(self.via);
        let exists = match way {
            ShellWay::Ssh => self.ssh.is_some(),
            ShellWay::Serial => self.serial.is_some(),
        };
        exists.then_some(way)
    }
}
