//! What can be taken away from this process without any right over the machine.
//!
//! # Design
//! A full disk is a limit of nothing on the size of files: each write to a file fails then, from
//! any thread of this process, and no other process notices. (A small file system would have to be
//! mounted, which takes root.) Two things differ from a full disk: the error reads "file too
//! large", and bytes that a file has already cannot be replaced. A program that is started
//! meanwhile inherits the limit, as it would meet the full disk; those that run already keep
//! theirs. The signal that comes with the error is taken by a handler, which, unlike ignoring it,
//! is not inherited.
//!
//! Out of handles is a limit below the ones that are open: those stay, no other is given.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::getppid;
use tokio::signal::unix::{SignalKind, signal};

/// Standard streams stay allowed, so that a limit on handles is one that a shell can set.
const STREAMS: rlim_t = 3;

/// A limit of this process that was lowered.
#[derive(Debug)]
pub(super) struct LoweredLimit {
    limit: Resource,
    before: rlim_t,
}

impl LoweredLimit {
    fn to(limit: Resource, value: rlim_t) -> io::Result<Self> {
        let (before, most) = getrlimit(limit)?;
        setrlimit(limit, value.min(most), most)?;
        Ok(Self { limit, before })
    }

    /// Lets no file grow.
    pub(super) fn files() -> io::Result<Self> {
        Self::to(Resource::RLIMIT_FSIZE, 0)
    }

    /// Gives no handle.
    pub(super) fn handles() -> io::Result<Self> {
        Self::to(Resource::RLIMIT_NOFILE, STREAMS)
    }

    /// Puts the limit back.
    pub(super) fn raise(self) {
        let raised = getrlimit(self.limit)
            .and_then(|(_, most)| setrlimit(self.limit, self.before.min(most), most));
        if let Err(error) = raised {
            tracing::warn!(%error, limit = ?self.limit, "a limit was not put back");
        }
    }
}

/// Lets this process outlive a write beyond the limit. Call within a tokio runtime, before.
pub(super) fn outlive_full_files() -> io::Result<()> {
    // The handler stays for the life of the process; the stream of signals is not read.
    signal(SignalKind::from_raw(Signal::SIGXFSZ as i32)).map(drop)
}

/// How a process is started that stops this one and lets it go on: a stopped process cannot
/// wake itself. The time in milliseconds is added to the arguments.
#[derive(Debug, Clone)]
pub struct Staller {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// Stops the process that has started this one, and lets it go on after a time: the other
/// half of [`Staller`].
///
/// # Errors
/// The parent is another program than this one, or has gone.
pub fn stall_parent(time: Duration) -> io::Result<()> {
    let parent = getppid();
    let (mine, its) =
        (std::fs::read_link("/proc/self/exe")?, std::fs::read_link(format!("/proc/{parent}/exe"))?);
    if mine != its {
        return Err(io::Error::other(format!("process {parent} is another program")));
    }
    kill(parent, Signal::SIGSTOP)?;
    std::thread::sleep(time);
    // If the parent was killed meanwhile, this process has another parent (init or a subreaper),
    // and no signal is sent: the pid may belong to another process by now.
    if getppid() == parent {
        kill(parent, Signal::SIGCONT)?;
    }
    Ok(())
}
