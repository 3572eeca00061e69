//! Calls of the kernel about a tty that no crate offers safely; one of two modules with `unsafe`.
//!
//! Each function makes one call and gives its answer a type; what it means is said elsewhere.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use nix::libc::{self, c_int};
use rustix::ioctl::{Getter, Opcode, Setter, ioctl};
use tokio_serial::SerialStream;

const TIOCGEXCL: Opcode = libc::TIOCGEXCL as Opcode;
const TIOCGICOUNT: Opcode = libc::TIOCGICOUNT as Opcode;
const TIOCMBIS: Opcode = libc::TIOCMBIS as Opcode;
const TIOCMBIC: Opcode = libc::TIOCMBIC as Opcode;

/// A line of a port that this end drives.
#[derive(Debug, Clone, Copy)]
pub(super) enum ModemLine {
    /// Data terminal ready.
    Dtr,
    /// Request to send.
    Rts,
}

/// Returns another descriptor of the open file that a stream reads.
pub(super) fn same_open_file(stream: &SerialStream) -> io::Result<OwnedFd> {
    // SAFETY: the stream owns its descriptor, and is borrowed for longer than this one lives.
    let fd = unsafe { BorrowedFd::borrow_raw(stream.as_raw_fd()) };
    fd.try_clone_to_owned()
}

/// Tells whether programs without privileges cannot open the tty (`TIOCEXCL`).
pub(super) fn is_exclusive(tty: BorrowedFd<'_>) -> io::Result<bool> {
    // SAFETY: with this opcode the kernel writes one `int`.
    let set: c_int = unsafe { ioctl(tty, Getter::<TIOCGEXCL, c_int>::new())? };
    Ok(set != 0)
}

/// Raises or drops a line; `ENOTTY` where there is none, as at pseudo-terminals.
pub(super) fn set_modem_line(tty: BorrowedFd<'_>, line: ModemLine, on: bool) -> io::Result<()> {
    let bit = match line {
        ModemLine::Dtr => libc::TIOCM_DTR,
        ModemLine::Rts => libc::TIOCM_RTS,
    };
    // SAFETY: with these opcodes the kernel reads one `int`.
    unsafe {
        match on {
            true => ioctl(tty, Setter::<TIOCMBIS, c_int>::new(bit))?,
            false => ioctl(tty, Setter::<TIOCMBIC, c_int>::new(bit))?,
        }
    }
    Ok(())
}

/// The kernel's `struct serial_icounter_struct` (linux/serial.h): twenty `int`s.
#[repr(C)]
struct Raw {
    /// Changes of CTS, DSR, RI and DCD; characters received and sent.
    _lines_and_traffic: [i32; 6],
    frame: i32,
    overrun: i32,
    parity: i32,
    _breaks: i32,
    buf_overrun: i32,
    _reserved: [i32; 9],
}

/// Errors of a port since its driver was loaded. They count round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// How often the port's own buffer was full: each time at least one character was lost.
    pub(super) overrun: u32,
    /// Characters that the kernel's buffer had no room for.
    pub(super) buf_overrun: u32,
    /// Characters without a stop bit.
    pub(super) frame: u32,
    /// Characters with a wrong parity bit.
    pub(super) parity: u32,
}

/// Reads the error counters; `ENOTTY` where the driver has none, as that of pseudo-terminals.
pub(super) fn error_counters(tty: BorrowedFd<'_>) -> io::Result<Counters> {
    // SAFETY: with this opcode the kernel writes one `struct serial_icounter_struct`, which
    // `Raw` is; any bits are values of it.
    let raw = unsafe { ioctl(tty, Getter::<TIOCGICOUNT, Raw>::new())? };
    Ok(Counters {
        overrun: raw.overrun.cast_unsigned(),
        buf_overrun: raw.buf_overrun.cast_unsigned(),
        frame: raw.frame.cast_unsigned(),
        parity: raw.parity.cast_unsigned(),
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use rustix::termios::{ioctl_tiocexcl, ioctl_tiocnxcl};

    use super::super::test_pty::TestPty;
    use super::*;

    #[test]
    fn pseudo_terminal_has_no_counters_and_no_modem_lines() {
        // As linux/serial.h has it: a larger one would be read beyond what the kernel wrote.
        assert_eq!(size_of::<Raw>(), 80);
        let pty = TestPty::open();
        let not_there = |error: io::Error| assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
        not_there(error_counters(pty.slave.as_fd()).unwrap_err());
        for (line, on) in [(ModemLine::Dtr, true), (ModemLine::Rts, false)] {
            not_there(set_modem_line(pty.slave.as_fd(), line, on).unwrap_err());
        }
    }

    #[test]
    fn exclusive_use_is_read_back() {
        let pty = TestPty::open();
        assert!(!is_exclusive(pty.slave.as_fd()).unwrap());
        ioctl_tiocexcl(&pty.slave).unwrap();
        assert!(is_exclusive(pty.slave.as_fd()).unwrap());
        ioctl_tiocnxcl(&pty.slave).unwrap();
        assert!(!is_exclusive(pty.slave.as_fd()).unwrap());
    }
}
