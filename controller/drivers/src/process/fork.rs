//! One of two modules with `unsafe`: what a child does between `fork` and `exec`.
//!
//! Between the two only async-signal-safe calls are allowed: no allocation, no locks. The
//! closure below makes exactly nine kinds of system call (`prctl`, `getppid`, `setsid`, `open`, `ioctl`,
//! `close`, `fcntl`, `setrlimit`, `write`) on values prepared before the fork.
//!
//! # Design
//! A parent learns the low byte of an exit code only, so that 256 looks like success. Where a
//! target's exit code is that of its emulator, a filter of system calls kills an emulator that ends
//! with such a code. An emulator that Jig starts without privileges can then gain none: a wrapper
//! that calls `sudo` does not work. Without the right to set a filter, or on a kernel without
//! filters, the low byte has to do; the child tells by a pipe whether it has the filter, because a
//! death by SIGSYS means nothing else without it.
//!
//! A child in the background of a user's shell is stopped when it reads from the terminal, such as a flasher
//! that asks something there, and its question stands among the output of Jig. Without a terminal it fails
//! at once, in its own words. It leads no session for that: the leader of one gets the next serial port that
//! it opens as its terminal, and is killed when the port hangs up.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag};
use nix::libc::{
    self, BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W,
    SYS_exit_group, sock_filter, sock_fprog,
};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::{Pid, getpid, getppid};

/// What a child gets besides its parent-death signal.
pub(super) struct ChildTies {
    /// Descriptors that it inherits under their own numbers. They stay close-on-exec in this
    /// process, so no other child can catch them.
    pub(super) inherit: Vec<RawFd>,
    /// Makes it die by SIGSYS instead of ending with a code other than 0 whose low byte is 0; it
    /// writes a byte there once that is so.
    pub(super) kill_hidden_exit: Option<RawFd>,
    /// Makes it the leader of a session of its own, without a controlling terminal.
    pub(super) new_session: bool,
    /// Takes the controlling terminal away from it.
    pub(super) no_terminal: bool,
}

/// Makes the child die when the calling *thread* ends, and gives it its ties.
pub(super) fn tie_to_this_thread(command: &mut Command, ties: ChildTies) {
    let parent = getpid();
    // SAFETY: the closure runs in the forked child and only makes async-signal-safe system
    // calls; it captures a `Pid`, numbers and a `Vec` that it reads but neither grows nor drops
    // before `exec` (the closure is never dropped in the child).
    unsafe {
        command.pre_exec(move || before_exec(parent, &ties));
    }
}

fn before_exec(parent: Pid, ties: &ChildTies) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    // The parent may have died before the signal was armed; then the kernel will not send it.
    if getppid() != parent {
        return Err(io::Error::from_raw_os_error(nix::libc::ESRCH));
    }
    if ties.new_session {
        nix::unistd::setsid()?;
    }
    if ties.no_terminal {
        leave_terminal();
    }
    for &fd in &ties.inherit {
        // SAFETY: the parent holds the descriptor open until the spawn has returned.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
        nix::fcntl::fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty()))?;
    }
    if let Some(told) = ties.kill_hidden_exit {
        // Such an end is expected and leaves no core behind.
        setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
        if filter_exit_codes().is_ok() {
            // SAFETY: the parent holds the descriptor open until the spawn has returned.
            let told = unsafe { std::os::fd::BorrowedFd::borrow_raw(told) };
            nix::unistd::write(told, &[1])?;
        }
    }
    Ok(())
}

/// Gives up the controlling terminal, if there is one: that of this process alone, as it leads no session.
fn leave_terminal() {
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    // There is none where this cannot be opened: tty(4).
    if let Ok(terminal) = nix::fcntl::open(c"/dev/tty", flags, Mode::empty()) {
        // SAFETY: the descriptor is open, and the request has no argument.
        let _ = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCNOTTY) };
    }
}

/// Where `struct seccomp_data` has the number of the system call, and the low half of its first
/// argument.
const NUMBER: u32 = 0;
const ARGUMENT: u32 = if cfg!(target_endian = "little") { 16 } else { 20 };

/// `exit_group(code)` with `code != 0 && code & 0xff == 0` kills the process; all else is allowed.
const EXIT_FILTER: [sock_filter; 8] = [
    instruction(BPF_LD | BPF_W | BPF_ABS, NUMBER, 0, 0),
    instruction(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group as u32, 0, 4),
    instruction(BPF_LD | BPF_W | BPF_ABS, ARGUMENT, 0, 0),
    instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0),
    instruction(BPF_ALU | BPF_AND | BPF_K, 0xff, 0, 0),
    instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
    instruction(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    instruction(BPF_RET | BPF_K, libc::SECCOMP_RET_KILL_PROCESS, 0, 0),
];

const fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

fn filter_exit_codes() -> nix::Result<()> {
    match set_filter(&EXIT_FILTER) {
        // A process without privileges may filter itself if its programs cannot gain any.
        Err(Errno::EACCES) => {
            nix::sys::prctl::set_no_new_privs()?;
            set_filter(&EXIT_FILTER)
        }
        other => other,
    }
}

/// Filters the system calls of the calling thread and of what it starts. A thread without
/// privileges must have given up the right to gain any.
pub(crate) fn set_filter(filter: &[sock_filter]) -> nix::Result<()> {
    let len = u16::try_from(filter.len()).map_err(|_| Errno::EINVAL)?;
    let program = sock_fprog { len, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program, which it only reads, before the call returns.
    let done =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    Errno::result(done).map(drop)
}
