//! What a guest writes to the standard error of its host by semihosting.
//!
//! # Design
//! QEMU gives the guest its own standard error for this (`SYS_OPEN` of `:tt` to append), where
//! newlib prints failed assertions. That is the emulator's log, which decides what an end was, so
//! the log stays as it is, and what the guest adds to it is also read as text of its semihosting
//! console. The two are told apart by lines: the emulator's errors begin with its name, and its last
//! words are followed by the registers. A remark of a device model, which has no mark, appears on the
//! console, too.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use rustix::fs::inotify::WatchFlags;

use super::ending::ABORT;
use crate::file_watch::FileWatch;

/// Bytes that are read of the log at once.
const CHUNK: usize = 4096;

/// Longest line of registers.
const MAX_LINE: usize = 256;

/// Digits of a register.
const DIGITS: usize = 8;

/// Where in the log the guest's text can begin; known once the emulator has started.
pub(super) type GuestTextStart = Arc<OnceLock<u64>>;

/// Reads the guest's part of an emulator's log, which grows.
pub(super) struct GuestStderr {
    log: File,
    start: GuestTextStart,
    /// Bytes of the log that were read, from the start on.
    read: u64,
    filter: GuestText,
    /// What was found and not handed over yet.
    ready: Vec<u8>,
    /// Tells that the log has grown; nothing where the kernel has no watch to give.
    growth: Option<FileWatch>,
}

impl GuestStderr {
    /// Opens the log of an emulator program.
    pub(super) fn open(path: &Path, start: GuestTextStart, program: &str) -> io::Result<Self> {
        // Without a watch it is read with each look at the console, and at its end.
        let growth = FileWatch::of(path, WatchFlags::MODIFY).ok();
        let (filter, ready) = (GuestText::new(program), Vec::new());
        Ok(Self { log: File::open(path)?, start, read: 0, filter, ready, growth })
    }

    /// Reads what is there; `Pending` means that there was nothing at this very moment.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            match self.take(buf) {
                Ok(0) => {}
                other => return Poll::Ready(other),
            }
            let Some(growth) = &mut self.growth else { return Poll::Pending };
            match growth.poll(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => self.growth = None,
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Reads what is left once the emulator has ended; 0 bytes at the end.
    pub(super) fn rest(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.take(buf)? {
            0 => {
                self.filter.end(&mut self.ready);
                Ok(self.hand_over(buf))
            }
            len => Ok(len),
        }
    }

    fn take(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let Some(&start) = self.start.get() else { return Ok(0) };
        let mut chunk = [0; CHUNK];
        while self.ready.is_empty() {
            let len = self.log.read_at(&mut chunk, start + self.read)?;
            if len == 0 {
                return Ok(0);
            }
            self.read += len as u64;
            self.filter.take(&chunk[..len], &mut self.ready);
        }
        Ok(self.hand_over(buf))
    }

    fn hand_over(&mut self, buf: &mut [u8]) -> usize {
        let len = buf.len().min(self.ready.len());
        buf[..len].copy_from_slice(&self.ready[..len]);
        self.ready.drain(..len);
        len
    }
}

/// What of a line is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineOwner {
    /// Too little of it has come.
    Unknown,
    Guest,
    Emulator,
}

/// Leaves out the emulator's own lines. Pure.
struct GuestText {
    /// How a line of the emulator's errors begins.
    error: Vec<u8>,
    line: Vec<u8>,
    owner: LineOwner,
    /// Behind the last words: lines of registers are the emulator's.
    registers: bool,
}

impl GuestText {
    fn new(program: &str) -> Self {
        let error = format!("{program}: ").into_bytes();
        Self { error, line: Vec::new(), owner: LineOwner::Unknown, registers: false }
    }

    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for &byte in bytes {
            let ends = byte == b'\n';
            match self.owner {
                LineOwner::Guest => out.push(byte),
                LineOwner::Emulator => {}
                LineOwner::Unknown => {
                    self.line.push(byte);
                    self.owner = self.owner_of_line(ends);
                    match self.owner {
                        LineOwner::Guest => out.append(&mut self.line),
                        LineOwner::Emulator => self.line.clear(),
                        LineOwner::Unknown => {}
                    }
                }
            }
            if ends {
                self.owner = LineOwner::Unknown;
            }
        }
    }

    /// Gives what was held back of a line that does not go on.
    fn end(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.line);
    }

    fn owner_of_line(&mut self, ends: bool) -> LineOwner {
        let abort = ABORT.as_bytes();
        if self.line.starts_with(abort) {
            self.registers = true;
            return LineOwner::Emulator;
        }
        if self.line.starts_with(&self.error) {
            return LineOwner::Emulator;
        }
        if self.registers {
            match ends {
                false if self.line.len() < MAX_LINE => return LineOwner::Unknown,
                true if is_register_line(&self.line) => return LineOwner::Emulator,
                _ => self.registers = false,
            }
        }
        let begins = |opening: &[u8]| opening.starts_with(&self.line);
        if !ends && (begins(abort) || begins(&self.error)) {
            LineOwner::Unknown
        } else {
            LineOwner::Guest
        }
    }
}

fn is_register_line(line: &[u8]) -> bool {
    let runs = line.split(|byte| !byte.is_ascii_hexdigit());
    line.trim_ascii().is_empty() || runs.into_iter().any(|run| run.len() >= DIGITS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(pieces: &[&[u8]]) -> String {
        let mut filter = GuestText::new("qemu-system-arm");
        let mut out = Vec::new();
        pieces.iter().for_each(|piece| filter.take(piece, &mut out));
        filter.end(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn lines_of_the_emulator_are_left_out() {
        for (log, guest) in [
            ("assertion \"x\" failed\n", "assertion \"x\" failed\n"),
            ("qemu-system-arm: warning: x\nhello", "hello"),
            ("q", "q"),
            ("qemu", "qemu"),
            ("qemu-system-riscv32: no\n", "qemu-system-riscv32: no\n"),
            ("a qemu: b\n", "a qemu: b\n"),
            // As QEMU 7.2 aborts; what follows the registers is the guest's.
            (
                "qemu: fatal: Lockup: can't escalate 3\n\nR00=200007c8 R01=20000a00\n\
                 XPSR=81000003 N--- T handler\nFPSCR: 00000000\nhello\nR00=200007c8\n",
                "hello\nR00=200007c8\n",
            ),
        ] {
            assert_eq!(text(&[log.as_bytes()]), guest, "{log:?}");
        }
    }

    proptest! {
        #[test]
        fn cuts_change_nothing_and_no_text_is_lost(
            lines in proptest::collection::vec("(qemu: |qemu-system-arm: |q|R00=12345678)?[ -~]{0,20}\n?", 0..8),
            cut in 0_usize..200,
        ) {
            let log = lines.concat();
            let whole = text(&[log.as_bytes()]);
            let (a, b) = log.as_bytes().split_at(cut.min(log.len()));
            prop_assert_eq!(&text(&[a, b]), &whole);
            if !log.contains("qemu") {
                prop_assert_eq!(&whole, &log);
            }
        }
    }

    #[tokio::test]
    async fn a_log_that_grows_is_read_from_its_start_on() {
        use std::io::Write as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stderr");
        let mut log = File::create(&path).unwrap();
        log.write_all(b"start-up talk\n").unwrap();
        let start = GuestTextStart::default();
        let mut guest = GuestStderr::open(&path, Arc::clone(&start), "qemu").unwrap();
        let mut buf = [0; 8];
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(guest.poll_read(&mut cx, &mut buf).is_pending());
        start.set(14).unwrap();
        log.write_all(b"assert").unwrap();
        let len = std::future::poll_fn(|cx| guest.poll_read(cx, &mut buf)).await.unwrap();
        assert_eq!(&buf[..len], b"assert");
        assert!(guest.poll_read(&mut cx, &mut buf).is_pending());
        log.write_all(b"ion failed\nqem").unwrap();
        let mut rest = Vec::new();
        while let len @ 1.. = guest.rest(&mut buf).unwrap() {
            rest.extend_from_slice(&buf[..len]);
        }
        assert_eq!(rest, b"ion failed\nqem");
    }
}
