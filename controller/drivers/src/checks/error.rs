//! What a check finds wrong.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use nix::errno::Errno;

use crate::power::PowerError;

/// Says what a check finds wrong.
#[derive(Debug, thiserror::Error)]
pub(super) enum HostCheckError {
    #[error("{} is not there", .0.display())]
    Missing(PathBuf),
    #[error("look at {}", path.display())]
    Unseen { path: PathBuf, source: io::Error },
    #[error("{} is no serial port", .0.display())]
    NotPort(PathBuf),
    #[error("{} is no socket", .0.display())]
    NotSocket(PathBuf),
    #[error("{} is in use by {by}", path.display())]
    InUse { path: PathBuf, by: String },
    #[error("this user may not read and write {}", .0.display())]
    Denied(PathBuf),
    #[error("use {}", path.display())]
    Unusable { path: PathBuf, source: Errno },
    #[error("there is no program {0} in PATH")]
    NoProgram(String),
    #[error("there is no program at {0}")]
    NoFile(String),
    #[error("connect to {at}")]
    Refused { at: String, source: io::Error },
    #[error("{at} did not answer within {} s", timeout.as_secs())]
    NoAnswer { at: String, timeout: Duration },
    #[error("{0} accepts, and does not speak SSH")]
    NotSsh(String),
    #[error("{at} accepts, and then")]
    HungUp { at: String, source: io::Error },
    #[error("{at} accepts, and says nothing within {} s", timeout.as_secs())]
    Mute { at: String, timeout: Duration },
    #[error("read {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the time since the machine's start is no number")]
    NoUptime,
    #[error("this host is too busy to look at two clocks at once")]
    Busy,
    #[error("the clock is {days} days before this program was installed")]
    TooEarly { days: u64 },
    #[error("the clock jumped {way} by {off:.3} s within {passed:.0} s")]
    Jumped { way: &'static str, off: f64, passed: f64 },
    #[error(transparent)]
    Limit(Errno),
    #[error("ask for {}", path.display())]
    NoDisk { path: PathBuf, source: Errno },
    #[error("{} is on a disk that may only be read", .0.display())]
    ReadOnly(PathBuf),
    #[error("no further file fits on the disk of {}", .0.display())]
    NoFiles(PathBuf),
    #[error("only {there}, {needed} needed")]
    TooLittle { there: String, needed: String },
    #[error("{} does not say what is available", .0.display())]
    NoMemory(PathBuf),
    #[error("list open files")]
    NoList(#[source] io::Error),
    #[error("{} is not as it should be", .0.display())]
    Garbled(PathBuf),
    #[error(transparent)]
    Power(#[from] PowerError),
    #[error(transparent)]
    Task(#[from] tokio::task::JoinError),
}
