//! One of two modules with `unsafe`: what a child does between `fork` and `exec`.
//!
//! Between the two only async-signal-safe calls are allowed: no allocation, no locks. The
//! closure below makes exactly three kinds of system call (`prctl`, `getppid`, `fcntl`)
//! on values prepared before the fork.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::fcntl::{FcntlArg, FdFlag};
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getpid, getppid};

/// Makes the child die when the calling *thread* ends, and inherit the given descriptors
/// under their own numbers.
///
/// The descriptors stay close-on-exec in this process, so no other child can catch them.
pub(super) fn tie_to_this_thread(command: &mut Command, inherit: Vec<RawFd>) {
    let parent = getpid();
    // SAFETY: the closure runs in the forked child and only makes async-signal-safe system
    // calls; it captures a `Pid` and a `Vec` that it reads but neither grows nor drops
    // before `exec` (the closure is never dropped in the child).
    unsafe {
        command.pre_exec(move || before_exec(parent, &inherit));
    }
}

fn before_exec(parent: Pid, inherit: &[RawFd]) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    // The parent may have died before the signal was armed; then nobody will send it.
    if getppid() != parent {
        return Err(io::Error::from_raw_os_error(nix::libc::ESRCH));
    }
    for &fd in inherit {
        // SAFETY: the parent holds the descriptor open until the spawn has returned.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
        nix::fcntl::fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty()))?;
    }
    Ok(())
}
