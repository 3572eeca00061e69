//! The filter of system calls of a program in a sandbox: what Landlock does not forbid.
//!
//! Pure: makes a program of classic BPF, which the kernel runs on each system call.
//!
//! # Design
//! *Sockets of all families are refused but those that are allowed*, so that a family that is added
//! to the kernel later is refused as well. UNIX sockets are refused, too: behind them are services
//! of the user that write files and start programs for any client (D-Bus, container engines,
//! agents). Pairs of connected sockets (`socketpair`) and pipes stay.
//!
//! *Every way into the kernel is filtered.* A 64-bit process can make the calls of 32-bit programs,
//! which have numbers of their own. `socketcall` is refused as a whole, since its arguments are in
//! memory that a filter cannot read. `io_uring` opens sockets without a system call, so no ring can
//! be made; programs take this for a kernel without it. Calls of the x32 form do not exist either.
//! A process of a third kind is killed.
//!
//! *Truncation is refused where Landlock cannot* (before Linux 6.2): by path, and when a file is
//! opened to be emptied, but not to be written. In files that may be written a program seldom does
//! either; it opens them for writing, which Landlock decides. `openat2` has its flags in memory and
//! does not exist then.
//!
//! *A terminal is not typed into.* `TIOCSTI` and `TIOCLINUX` put characters into the input of the
//! terminal that Jig was started from. Only the low half of an argument counts where the kernel
//! takes an `int`.

use nix::libc::{
    AF_INET, AF_INET6, AF_NETLINK, BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K,
    BPF_LD, BPF_RET, BPF_W, EACCES, ENOSYS, EPERM, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO,
    SECCOMP_RET_KILL_PROCESS, sock_filter,
};

/// Numbers of the system calls of one kind of process. (Linux, `include/uapi/linux/audit.h` and the
/// table of system calls of each architecture.)
#[derive(Debug, Clone, Copy)]
struct CallNumbers {
    /// The kind, as the kernel tells it to a filter.
    arch: u32,
    socket: u32,
    /// The call that stands for all calls on sockets, where there is one.
    socketcall: Option<u32>,
    ioctl: u32,
    /// Calls that truncate a file by its path.
    truncate: &'static [u32],
    /// Calls that open a file, and which argument has the flags.
    open: &'static [(u32, usize)],
    /// Numbers from here on are calls of another form.
    end: Option<u32>,
}

/// The same for every architecture.
const IO_URING_SETUP: u32 = 425;
const OPENAT2: u32 = 437;

const X86_64: CallNumbers = CallNumbers {
    arch: 0xc000_003e,
    socket: 41,
    socketcall: None,
    ioctl: 16,
    truncate: &[76],
    open: &[(2, 1), (257, 2), (304, 2)],
    end: Some(0x4000_0000),
};
const I386: CallNumbers = CallNumbers {
    arch: 0x4000_0003,
    socket: 359,
    socketcall: Some(102),
    ioctl: 54,
    truncate: &[92, 193],
    open: &[(5, 1), (295, 2), (342, 2)],
    end: None,
};
const AARCH64: CallNumbers = CallNumbers {
    arch: 0xc000_00b7,
    socket: 198,
    socketcall: None,
    ioctl: 29,
    truncate: &[45],
    open: &[(56, 2), (265, 2)],
    end: None,
};
const ARM: CallNumbers = CallNumbers {
    arch: 0x4000_0028,
    socket: 281,
    socketcall: Some(102),
    ioctl: 54,
    truncate: &[92, 193],
    open: &[(5, 1), (322, 2), (371, 2)],
    end: None,
};

/// Bits of the flags of an opened file: how it is accessed, and that it is emptied. (Linux,
/// `include/uapi/asm-generic/fcntl.h`; the same on all processors above.)
const ACCESS: u32 = 0o3;
const TRUNCATE: u32 = 0o1000;

/// Ways of access that are no writing: reading, and neither.
const NO_WRITING: [u32; 2] = [0, 3];

/// Requests that put characters into the input of a terminal.
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;

/// Where `struct seccomp_data` has the number, the kind of process, and the low half of an argument
/// on a little-endian processor.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENTS: [u32; 3] = [16, 24, 32];

/// What a program may do.
#[derive(Debug, Clone, Copy)]
pub(super) struct AllowedCalls {
    /// Open sockets to the network.
    pub(super) network: bool,
    /// Truncate files, as far as Landlock lets it.
    pub(super) truncation: bool,
}

/// Returns the filter for this processor, if it is known.
pub(super) fn call_filter(allowed: AllowedCalls) -> Option<Vec<sock_filter>> {
    let kinds = if cfg!(target_arch = "x86_64") {
        [X86_64, I386]
    } else if cfg!(all(target_arch = "aarch64", target_endian = "little")) {
        [AARCH64, ARM]
    } else {
        return None;
    };
    Some(filter(&kinds, allowed))
}

fn filter(kinds: &[CallNumbers], allowed: AllowedCalls) -> Vec<sock_filter> {
    let mut program = Vec::new();
    for kind in kinds {
        let calls = calls(kind, allowed);
        program.push(load(ARCH));
        program.extend(unless(BPF_JEQ, kind.arch, calls));
    }
    program.push(answer(SECCOMP_RET_KILL_PROCESS));
    program
}

/// Decides on the calls of one kind of process; always comes to an answer.
fn calls(kind: &CallNumbers, allowed: AllowedCalls) -> Vec<sock_filter> {
    let refuse = |errno: i32| answer(SECCOMP_RET_ERRNO | errno.cast_unsigned());
    let allow = || answer(SECCOMP_RET_ALLOW);
    let mut program = vec![load(NUMBER)];
    if let Some(end) = kind.end {
        program.extend(unless(BPF_JGE, end, vec![refuse(ENOSYS)]));
    }
    program.extend(unless(BPF_JEQ, IO_URING_SETUP, vec![refuse(ENOSYS)]));
    if let Some(socketcall) = kind.socketcall {
        program.extend(unless(BPF_JEQ, socketcall, vec![refuse(EACCES)]));
    }
    if !allowed.truncation {
        program.extend(unless(BPF_JEQ, OPENAT2, vec![refuse(ENOSYS)]));
        for call in kind.truncate {
            program.extend(unless(BPF_JEQ, *call, vec![refuse(EACCES)]));
        }
        for (call, flags) in kind.open {
            let mask = instruction(BPF_ALU | BPF_AND | BPF_K, TRUNCATE | ACCESS, 0);
            let mut open = vec![load(ARGUMENTS[*flags]), mask];
            for access in NO_WRITING {
                open.extend(unless(BPF_JEQ, TRUNCATE | access, vec![refuse(EACCES)]));
            }
            open.push(allow());
            program.extend(unless(BPF_JEQ, *call, open));
        }
    }
    let families = match allowed.network {
        // The third tells a resolver which addresses this host has.
        true => &[AF_INET, AF_INET6, AF_NETLINK][..],
        false => &[],
    };
    let mut socket = vec![load(ARGUMENTS[0])];
    for family in families {
        socket.extend(unless(BPF_JEQ, family.cast_unsigned(), vec![allow()]));
    }
    socket.push(refuse(EACCES));
    program.extend(unless(BPF_JEQ, kind.socket, socket));
    let mut ioctl = vec![load(ARGUMENTS[1])];
    for request in [TIOCSTI, TIOCLINUX] {
        ioctl.extend(unless(BPF_JEQ, request, vec![refuse(EPERM)]));
    }
    ioctl.push(allow());
    program.extend(unless(BPF_JEQ, kind.ioctl, ioctl));
    program.push(allow());
    program
}

/// Skips a part unless the test of the loaded value is true.
fn unless(test: u32, value: u32, part: Vec<sock_filter>) -> impl Iterator<Item = sock_filter> {
    // No part is longer than a jump: the longest are the calls of one kind.
    let skip = u8::try_from(part.len()).unwrap_or(u8::MAX);
    std::iter::once(instruction(BPF_JMP | test | BPF_K, value, skip)).chain(part)
}

fn load(at: u32) -> sock_filter {
    instruction(BPF_LD | BPF_W | BPF_ABS, at, 0)
}

fn answer(what: u32) -> sock_filter {
    instruction(BPF_RET | BPF_K, what, 0)
}

fn instruction(code: u32, k: u32, jf: u8) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIRS: [[CallNumbers; 2]; 2] = [[X86_64, I386], [AARCH64, ARM]];

    /// Runs a filter as the kernel does; panics where it comes to no answer.
    fn run(program: &[sock_filter], arch: u32, number: u32, arguments: [u32; 3]) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let sock_filter { code, jf, k, .. } = program[at];
            at += 1;
            match u32::from(code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    loaded = match k {
                        NUMBER => number,
                        ARCH => arch,
                        16 | 24 | 32 => arguments[(k as usize - 16) / 8],
                        other => panic!("{other} is no part of a call"),
                    }
                }
                code if code == BPF_ALU | BPF_AND | BPF_K => loaded &= k,
                code if code == BPF_JMP | BPF_JEQ | BPF_K => {
                    at += usize::from(if loaded == k { 0 } else { jf });
                }
                code if code == BPF_JMP | BPF_JGE | BPF_K => {
                    at += usize::from(if loaded >= k { 0 } else { jf });
                }
                code if code == BPF_RET | BPF_K => return k,
                other => panic!("{other:#x} is no instruction"),
            }
        }
    }

    fn refused(errno: i32) -> u32 {
        SECCOMP_RET_ERRNO | errno.cast_unsigned()
    }

    /// Checks each kind of process with each filter that it may get.
    fn each_kind(check: impl Fn(&CallNumbers, AllowedCalls, &dyn Fn(u32, [u32; 3]) -> u32)) {
        for (network, truncation) in [(false, false), (false, true), (true, false), (true, true)] {
            let allowed = AllowedCalls { network, truncation };
            for kinds in PAIRS {
                let program = filter(&kinds, allowed);
                for kind in &kinds {
                    check(kind, allowed, &|number, arguments| {
                        run(&program, kind.arch, number, arguments)
                    });
                }
                assert_eq!(run(&program, 7, 0, [0; 3]), SECCOMP_RET_KILL_PROCESS);
            }
        }
    }

    #[test]
    fn sockets_are_refused_in_every_kind_of_process() {
        each_kind(|kind, allowed, call| {
            for family in 0..64 {
                let inet = [AF_INET, AF_INET6, AF_NETLINK].contains(&family);
                let wanted = match allowed.network && inet {
                    true => SECCOMP_RET_ALLOW,
                    false => refused(EACCES),
                };
                let said = call(kind.socket, [family.cast_unsigned(), 1, 0]);
                assert_eq!(said, wanted, "{kind:?} {family} {allowed:?}");
            }
            assert_eq!(call(IO_URING_SETUP, [0; 3]), refused(ENOSYS));
            if let Some(socketcall) = kind.socketcall {
                assert_eq!(call(socketcall, [8, 0, 0]), refused(EACCES));
            }
            if let Some(end) = kind.end {
                assert_eq!(call(end + kind.socket, [2, 1, 0]), refused(ENOSYS));
            }
        });
    }

    #[test]
    fn a_file_is_emptied_only_by_who_writes_it() {
        let flags_of = |at: usize, flags: u32| {
            let mut arguments = [0o1003; 3];
            arguments[at] = flags;
            arguments
        };
        each_kind(|kind, allowed, call| {
            let wanted = |refused: u32| match allowed.truncation {
                true => SECCOMP_RET_ALLOW,
                false => refused,
            };
            assert_eq!(call(OPENAT2, [0; 3]), wanted(refused(ENOSYS)));
            for number in kind.truncate {
                assert_eq!(call(*number, [0; 3]), wanted(refused(EACCES)));
            }
            for (number, at) in kind.open {
                // Other flags change nothing.
                for others in [0, 0o2_004_100] {
                    for flags in [0o1000, 0o1003] {
                        let said = call(*number, flags_of(*at, flags | others));
                        assert_eq!(said, wanted(refused(EACCES)), "{number} {flags:o}");
                    }
                    for flags in [0, 1, 2, 3, 0o1001, 0o1002] {
                        let said = call(*number, flags_of(*at, flags | others));
                        assert_eq!(said, SECCOMP_RET_ALLOW, "{number} {flags:o}");
                    }
                }
            }
        });
    }

    #[test]
    fn a_terminal_is_not_typed_into_and_other_calls_are_allowed() {
        each_kind(|kind, _, call| {
            for request in [TIOCSTI, TIOCLINUX] {
                assert_eq!(call(kind.ioctl, [0, request, 0]), refused(EPERM));
            }
            assert_eq!(call(kind.ioctl, [0, 0x5401, 0]), SECCOMP_RET_ALLOW);
            let special: Vec<u32> = [kind.socket, kind.ioctl, IO_URING_SETUP, OPENAT2]
                .into_iter()
                .chain(kind.socketcall)
                .chain(kind.truncate.iter().copied())
                .chain(kind.open.iter().map(|(number, _)| *number))
                .collect();
            for number in (0..500).filter(|number| !special.contains(number)) {
                assert_eq!(call(number, [2, TIOCSTI, 0o1000]), SECCOMP_RET_ALLOW, "{number}");
            }
        });
    }
}
