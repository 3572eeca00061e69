//! What a serial port's driver counts; one of two modules with `unsafe`.
//!
//! The kernel's counters (`TIOCGICOUNT`) are behind a call that no crate offers safely. This
//! module makes that one call and gives its answer a type; what it means is said elsewhere.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::BorrowedFd;

use nix::libc;
use rustix::ioctl::{Getter, Opcode, ioctl};

const TIOCGICOUNT: Opcode = libc::TIOCGICOUNT as Opcode;

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

/// Reads them; `ENOTTY` where the driver does not count, as those of pseudo-terminals.
pub(super) fn read(tty: BorrowedFd<'_>) -> io::Result<Counters> {
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

    use super::super::test_pty::TestPty;
    use super::*;

    #[test]
    fn the_kernel_is_asked_and_a_pseudo_terminal_does_not_count() {
        // As linux/serial.h has it: a larger one would be read beyond what the kernel wrote.
        assert_eq!(size_of::<Raw>(), 80);
        let pty = TestPty::open();
        let error = read(pty.slave.as_fd()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
    }
}
