//! A byte pipe to a program on another host over SSH, and nothing of what it carries.
//!
//! [`SshPipe::open`] uses libssh2: keys of an agent or in files, known hosts, `~/.ssh/config`, jump
//! hosts. [`SshPipe::open_with_client`] is the same pipe over OpenSSH's client, for what libssh2
//! cannot do.
//!
//! # Design
//! libssh2 is a library that one thread must own. So each session has a thread, which moves bytes
//! between its channel and one end of a socket pair; the other end is a tokio stream. A jump host is
//! a session whose channel leads on: its socket is the transport of the next session.

mod account;
mod agent;
mod auth;
mod command;
mod config;
mod connect;
mod end;
mod error;
mod files;
mod host_key;
mod key_file;
mod known_hosts;
mod link;
mod options;
mod pipe;
mod pump;
mod session;
mod target;
mod words;

pub use account::{SshAccount, SshConfigFile};
pub use end::{SshEnd, SshEnding};
pub use error::{ShownKey, SshError};
pub use options::SshOptions;
pub use pipe::{RemoteLine, SshEndHandle, SshPipe};
pub use target::{SshTarget, SshTargetError};
pub(crate) use words::shell_line;
pub use words::{WordsError, split_words};
