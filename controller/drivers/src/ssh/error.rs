//! Why a connection over SSH fails, who has to act, and what to type next.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::process::SpawnError;
use jig_model::Fault;

use super::target::SshTargetError;
use super::words::WordsError;

/// Says why there is no connection, or none any more.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SshError {
    /// A command makes no command line.
    #[error("the command for the far side cannot be sent")]
    Command(#[source] WordsError),
    /// A file of the user cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Arc<io::Error>,
    },
    /// The SSH configuration holds a mistake.
    #[error("{}:{line}: {why}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// The SSH configuration asks for what the built-in SSH client cannot do.
    #[error("{option} of host {host} in {} is not supported by the built-in SSH client",
        path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The host.
        host: String,
        /// The option.
        option: String,
    },
    /// A jump host in the SSH configuration is no address.
    #[error("ProxyJump of host {host} in {}", path.display())]
    Jump {
        /// The file.
        path: PathBuf,
        /// The host.
        host: String,
        /// What is wrong.
        #[source]
        source: SshTargetError,
    },
    /// Jump hosts refer to each other.
    #[error("ProxyJump leads to {host} by more than 8 hosts (does a host jump through itself?)")]
    JumpLoop {
        /// The target.
        host: String,
    },
    /// The name has no address.
    #[error("{at}: the name does not resolve")]
    Resolve {
        /// Host and port.
        at: String,
        /// Why.
        #[source]
        source: Arc<io::Error>,
    },
    /// Nothing listens at the port.
    #[error("{at}: connection refused (is the SSH server running, and the port right?)")]
    Refused {
        /// Host and port.
        at: String,
    },
    /// There is no way to the host.
    #[error("{at}: cannot connect")]
    Unreachable {
        /// Host and port.
        at: String,
        /// Why.
        #[source]
        source: Arc<io::Error>,
    },
    /// A jump host does not connect to the next host.
    #[error("{at}: cannot connect through {via}")]
    JumpRefused {
        /// Host and port.
        at: String,
        /// Host and port of the jump host.
        via: String,
        /// Why.
        #[source]
        source: Arc<ssh2::Error>,
    },
    /// It took too long.
    #[error("{at}: no {what} within {} s", after.as_secs_f32())]
    Timeout {
        /// Host and port.
        at: String,
        /// What was awaited.
        what: &'static str,
        /// How long.
        after: Duration,
    },
    /// What answers does not speak SSH.
    #[error("{at}: not an SSH server{}", said(first))]
    NotSsh {
        /// Host and port.
        at: String,
        /// What it said first.
        first: String,
    },
    /// Both sides could not agree on keys.
    #[error("{at}: the SSH handshake failed")]
    Handshake {
        /// Host and port.
        at: String,
        /// Why.
        #[source]
        source: Arc<ssh2::Error>,
    },
    /// The host is not among the known hosts.
    #[error("{at}: the host is not known; its {} key is {}", key.kind, key.fingerprint)]
    HostKeyUnknown {
        /// Host and port.
        at: String,
        /// The key that it shows.
        key: Box<ShownKey>,
        /// The file for the line that makes it known.
        file: PathBuf,
    },
    /// The host shows another key than the known one.
    #[error(
        "{at}: THE HOST KEY HAS CHANGED: {known_kind} key expected by {}:{line}, {} key {} found; \
         somebody may be listening, or the host was installed again",
        file.display(), key.kind, key.fingerprint
    )]
    HostKeyChanged {
        /// Host and port.
        at: String,
        /// The key that it shows.
        key: Box<ShownKey>,
        /// Kind of the known key.
        known_kind: String,
        /// The file that has the known key.
        file: PathBuf,
        /// The line.
        line: usize,
    },
    /// The host shows a key that was revoked.
    #[error("{at}: THE HOST KEY IS REVOKED by {}:{line}: {} key {}", file.display(), key.kind,
        key.fingerprint)]
    HostKeyRevoked {
        /// Host and port.
        at: String,
        /// The key that it shows.
        key: Box<ShownKey>,
        /// The file.
        file: PathBuf,
        /// The line.
        line: usize,
    },
    /// The key of a new host cannot be written down.
    #[error("{at}: the host key cannot be added to {}", file.display())]
    HostKeyNotAdded {
        /// Host and port.
        at: String,
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: Arc<io::Error>,
    },
    /// The server accepts no keys.
    #[error("{user}@{at}: the server accepts no keys, only {offered}")]
    NoKeyMethod {
        /// Host and port.
        at: String,
        /// The user.
        user: String,
        /// What it accepts.
        offered: String,
    },
    /// There is no key to try.
    #[error("{user}@{at}: there is no usable key: {}", looked.join("; "))]
    NoKey {
        /// Host and port.
        at: String,
        /// The user.
        user: String,
        /// Where keys were looked for, and what was found.
        looked: Vec<String>,
        /// An encrypted key file, which an agent could hold.
        encrypted: Option<PathBuf>,
    },
    /// The server refused each key.
    #[error("{user}@{at}: permission denied; the server refused {}", tried.join(", "))]
    KeyRefused {
        /// Host and port.
        at: String,
        /// The user.
        user: String,
        /// The keys.
        tried: Vec<String>,
        /// An encrypted key file that was not tried.
        encrypted: Option<PathBuf>,
    },
    /// The agent did not answer.
    #[error("{at}: the SSH agent at {} does not answer", agent.display())]
    Agent {
        /// Host and port.
        at: String,
        /// Its socket.
        agent: PathBuf,
    },
    /// The server does not run programs for this key or account.
    #[error("{user}@{at}: the server refused to run the command")]
    ExecRefused {
        /// Host and port.
        at: String,
        /// The user.
        user: String,
        /// Why.
        #[source]
        source: Arc<ssh2::Error>,
    },
    /// There is no such program on the far side.
    #[error("{at}: there is no program `{program}`{}", said(stderr))]
    NoProgram {
        /// Host and port.
        at: String,
        /// The program.
        program: String,
        /// What the far side printed to standard error.
        stderr: String,
    },
    /// The program on the far side failed.
    #[error("{at}: {program} {how}{}", said(last_line(stderr)))]
    Ended {
        /// Host and port.
        at: String,
        /// The program.
        program: String,
        /// How it ended.
        how: String,
        /// What the far side printed to standard error.
        stderr: String,
    },
    /// The connection was lost.
    #[error("{at}: the connection was lost")]
    Lost {
        /// Host and port.
        at: String,
        /// Why.
        #[source]
        source: Arc<io::Error>,
    },
    /// The far side answers no more.
    #[error("{at}: the far side has not answered for {} s", after.as_secs_f32())]
    Silent {
        /// Host and port.
        at: String,
        /// For how long.
        after: Duration,
    },
    /// The system refuses what a connection needs.
    #[error("{at}: {what}")]
    System {
        /// Host and port.
        at: String,
        /// What was to be done.
        what: &'static str,
        /// Why.
        #[source]
        source: Arc<io::Error>,
    },
    /// The program that is to connect cannot be started.
    #[error("{0}")]
    Spawn(#[source] Arc<SpawnError>),
}

/// A key that a host shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownKey {
    /// Its kind, such as `ssh-ed25519`.
    pub kind: String,
    /// Its fingerprint in OpenSSH's form.
    pub fingerprint: String,
    /// The host's name in files of known hosts.
    pub name: String,
    /// The line of such a file that makes it known.
    pub line: String,
}

impl SshError {
    pub(super) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source: Arc::new(source) }
    }

    pub(super) fn system(at: &str, what: &'static str, source: impl Into<io::Error>) -> Self {
        Self::System { at: at.to_owned(), what, source: Arc::new(source.into()) }
    }

    /// Returns who has to act before a connection can work.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Command(_)
            | Self::Read { .. }
            | Self::Config { .. }
            | Self::Unsupported { .. }
            | Self::Jump { .. }
            | Self::JumpLoop { .. }
            | Self::Resolve { .. }
            | Self::NotSsh { .. }
            | Self::HostKeyUnknown { .. }
            | Self::HostKeyChanged { .. }
            | Self::HostKeyRevoked { .. }
            | Self::HostKeyNotAdded { .. }
            | Self::NoKeyMethod { .. }
            | Self::NoKey { .. }
            | Self::KeyRefused { .. }
            | Self::Agent { .. } => Fault::Usage,
            Self::Spawn(error) => match **error {
                SpawnError::Refused { .. } => Fault::Lab,
                SpawnError::NotFound { .. }
                | SpawnError::NoFile { .. }
                | SpawnError::NoInterpreter { .. } => Fault::Usage,
            },
            Self::Refused { .. }
            | Self::Unreachable { .. }
            | Self::JumpRefused { .. }
            | Self::Timeout { .. }
            | Self::Handshake { .. }
            | Self::ExecRefused { .. }
            | Self::NoProgram { .. }
            | Self::Ended { .. }
            | Self::Lost { .. }
            | Self::Silent { .. }
            | Self::System { .. } => Fault::Lab,
        }
    }

    /// Tells whether the reason may be over soon without anybody acting: a server that is about to
    /// start, or a network that is about to come up.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. }
                | Self::Unreachable { .. }
                | Self::JumpRefused { .. }
                | Self::Timeout { .. }
                // A port that is forwarded accepts before its server listens.
                | Self::NotSsh { .. }
                | Self::Handshake { .. }
                | Self::Lost { .. }
                | Self::Silent { .. }
        )
    }

    /// Tells whether a server was reached, or is known, and cannot be used as things are set up: keys,
    /// host keys, the SSH configuration.
    pub fn is_refusal(&self) -> bool {
        self.fault() == Fault::Usage && !matches!(self, Self::Resolve { .. } | Self::NotSsh { .. })
            || matches!(self, Self::ExecRefused { .. })
    }

    /// Returns what to type or to change next.
    pub fn help(&self) -> Option<String> {
        let fall_back = "use OpenSSH's client: --ssh-command ssh";
        Some(match self {
            Self::Unsupported { .. } | Self::Handshake { .. } => fall_back.to_owned(),
            Self::Resolve { at, .. } => format!("try: getent hosts {}", host_of(at)),
            Self::HostKeyUnknown { key, file, .. } => format!(
                "compare the fingerprint with that on the host (ssh-keygen -lf \
                 /etc/ssh/ssh_host_ed25519_key.pub); if it is the same, add --ssh-accept-new, or \
                 add to {}: {}",
                file.display(),
                key.line
            ),
            Self::HostKeyChanged { key, file, .. } => format!(
                "ask the host's owner; if the new key is right, forget the old one: ssh-keygen -f \
                 {} -R '{}'",
                file.display(),
                key.name
            ),
            Self::NoKey { encrypted: Some(key), .. }
            | Self::KeyRefused { encrypted: Some(key), .. } => {
                format!("unlock the key in an agent: ssh-add {}", key.display())
            }
            Self::NoKey { encrypted: None, user, at, .. } => format!(
                "make a key and copy it to the host: ssh-keygen -t ed25519; {}",
                copy_id(user, at)
            ),
            Self::KeyRefused { encrypted: None, user, at, .. } => format!(
                "allow a key on the host: {}; the host's log says why a key is refused",
                copy_id(user, at)
            ),
            Self::NoKeyMethod { .. } => "allow PubkeyAuthentication in the host's sshd_config, \
                                         or --ssh-command ssh"
                .to_owned(),
            Self::Agent { .. } => "start an agent: eval \"$(ssh-agent)\"; ssh-add".to_owned(),
            Self::NoProgram { at, .. } => {
                format!("install Jig on {}, or name its path: ssh://HOST/path/of/jig", host_of(at))
            }
            Self::Command(_)
            | Self::Read { .. }
            | Self::Config { .. }
            | Self::Jump { .. }
            | Self::JumpLoop { .. }
            | Self::Refused { .. }
            | Self::Unreachable { .. }
            | Self::JumpRefused { .. }
            | Self::Timeout { .. }
            | Self::NotSsh { .. }
            | Self::HostKeyRevoked { .. }
            | Self::HostKeyNotAdded { .. }
            | Self::ExecRefused { .. }
            | Self::Ended { .. }
            | Self::System { .. }
            | Self::Spawn(_) => return None,
            Self::Lost { at, .. } | Self::Silent { at, .. } => {
                format!(
                    "try again; if it is lost again, the log of sshd on {} says why",
                    host_of(at)
                )
            }
        })
    }
}

fn copy_id(user: &str, at: &str) -> String {
    let port = at.rsplit_once(':').map_or("22", |(_, port)| port);
    format!("ssh-copy-id -p {port} {user}@{}", host_of(at))
}

/// Returns the host of host and port, without brackets.
fn host_of(at: &str) -> &str {
    let host = at.rsplit_once(':').map_or(at, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Shows what was said, behind a message.
fn said(text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => format!(": {}", printable(text)),
    }
}

/// Returns the last line that is not empty.
fn last_line(text: &str) -> &str {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

/// Longest text of the far side within a message.
const SHOWN: usize = 300;

/// Makes a text of the far side harmless in a message: one line, no control characters.
fn printable(text: &str) -> String {
    let shown = text.chars().take(SHOWN).map(|c| match c {
        '\n' | '\r' | '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_far_side_is_harmless_and_short() {
        let (at, program) = ("rig7:22".to_owned(), "jig".to_owned());
        let stderr = format!("first\n\u{1b}[31mred{}\n\n", "x".repeat(1000));
        let error = SshError::Ended { at, program, how: "ended with code 1".to_owned(), stderr };
        let text = error.to_string();
        assert!(text.starts_with("rig7:22: jig ended with code 1: \u{fffd}[31mred"), "{text}");
        assert!(text.len() < 400 && !text.contains('\u{1b}'), "{text}");
    }

    /// An error is returned by value in each step.
    #[test]
    fn an_error_is_small() {
        assert!(size_of::<SshError>() < 128, "{}", size_of::<SshError>());
    }

    #[test]
    fn help_is_a_command_with_host_and_port() {
        let (at, user) = ("[::1]:2222".to_owned(), "lab".to_owned());
        let error = SshError::KeyRefused { at, user, tried: Vec::new(), encrypted: None };
        assert!(error.help().unwrap().contains("ssh-copy-id -p 2222 lab@::1"));
    }
}
