//! The exceptions that an emulator reports of its core, and the place of the console output
//! between them.
//!
//! Owns the pipe, the thread that empties it and the summary. Keeps no log.
//!
//! # Design
//! *One pipe for exceptions and output.* The emulator writes a line when its core takes or leaves an
//! exception, and a copy of each byte that a console prints. Both are written by the thread that
//! executes the core, so their order in the pipe is that in which they happened. No register tells
//! this, and no handler can change it. A reset of the core has a line, too: the monitor tells of it
//! later, when the next boot may have faulted already.
//!
//! *Off until a watcher asks for it.* The pipe is there from the launch on. The lines begin when the
//! watcher has found a core whose exceptions it knows (`log int,cpu_reset` of the monitor).
//!
//! *The reader works in batches.* A reader that wakes up for each line would cost the emulator more
//! than the line. The pipe holds 20 ms of the fastest known interrupt storm; when it is full, the
//! emulator waits for the reader.

mod summary;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{pipe2, read};

use summary::ExceptionFold;
pub use summary::{Exceptions, OpenException, TrapTaken};

/// Bytes that the pipe holds: what Linux allows any user by default.
const CAPACITY: i32 = 1 << 20;

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Most chunks that are read in one go: a core in a storm of interrupts writes on meanwhile.
const MOST_CHUNKS: usize = 32;

/// Pause between two batches.
const PAUSE: Duration = Duration::from_millis(2);

/// Reads what one launch of an emulator reports.
#[derive(Clone)]
pub struct ExceptionLog(Arc<Mutex<LogReader>>);

struct LogReader {
    pipe: OwnedFd,
    fold: ExceptionFold,
    chunk: Vec<u8>,
}

/// Whether the emulator may write more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PipeState {
    Open,
    Ended,
}

impl ExceptionLog {
    /// Makes the pipe and the thread that reads it; returns the end that the emulator inherits.
    pub(super) fn make() -> io::Result<(Self, OwnedFd)> {
        let (pipe, far) = pipe2(OFlag::O_CLOEXEC)?;
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        // A smaller pipe is slower, not wrong: some hosts allow less.
        let _ = fcntl(&pipe, FcntlArg::F_SETPIPE_SZ(CAPACITY));
        let waits = pipe.try_clone()?;
        let reader = LogReader { pipe, fold: ExceptionFold::default(), chunk: vec![0; CHUNK] };
        let log = Self(Arc::new(Mutex::new(reader)));
        let read = log.clone();
        thread::Builder::new()
            .name("jig-exceptions".to_owned())
            .spawn(move || read.follow(&waits))?;
        Ok((log, far))
    }

    /// Returns what was reported up to now: of a machine that stands, everything.
    pub fn seen(&self) -> Exceptions {
        self.with(|reader| {
            reader.read();
            reader.fold.seen()
        })
    }

    /// Returns the first fault in whose handler a Cortex-M was reset since this was asked last.
    pub fn take_reset_in(&self) -> Option<u32> {
        self.with(|reader| {
            reader.read();
            reader.fold.take_reset_in()
        })
    }

    /// Empties the pipe until the emulator has ended.
    fn follow(&self, waits: &OwnedFd) {
        loop {
            let mut wanted = [PollFd::new(waits.as_fd(), PollFlags::POLLIN)];
            match poll(&mut wanted, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => {
                    tracing::warn!(%error, "the emulator's exceptions are not read");
                    return;
                }
            }
            if self.with(LogReader::read) == PipeState::Ended {
                return;
            }
            thread::sleep(PAUSE);
        }
    }

    fn with<T>(&self, what: impl FnOnce(&mut LogReader) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl LogReader {
    fn read(&mut self) -> PipeState {
        for _ in 0..MOST_CHUNKS {
            match read(&self.pipe, &mut self.chunk) {
                Ok(0) => return PipeState::Ended,
                Ok(len) => self.fold.take(&self.chunk[..len]),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return PipeState::Open,
                Err(_) => return PipeState::Ended,
            }
        }
        PipeState::Open
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_flood_is_read_to_its_end_and_what_it_amounts_to_is_kept() {
        let (log, far) = ExceptionLog::make().unwrap();
        let mut far = File::from(far);
        let line = "riscv_cpu_do_interrupt: hart:0, async:0, cause:00000002, epc:0x80000000, \
                    tval:0x00000000, desc=illegal_instruction\n";
        // Eight times what the pipe holds.
        let count = 8 * CAPACITY as usize / line.len();
        for _ in 0..count {
            far.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(log.seen().faults as usize, count);
        far.write_all(b"CPU Reset (CPU 0)\n").unwrap();
        assert_eq!(log.seen(), Exceptions::default());
        far.write_all(line.as_bytes()).unwrap();
        drop(far);
        assert_eq!(log.seen().faults, 1);
    }
}
