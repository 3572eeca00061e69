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
//! *Where the emulator also lists the code that it executes, the copies have a pipe of their own.* Output
//! of a firmware could else be taken for such a list. Then the order is known from batch to batch only:
//! what is printed in the batch of a fault counts as printed in front of it, so that no fault is
//! overlooked. Where output behind a fault is counted, it counts as printed behind it, so that a fault in
//! the middle of a report is not taken for one behind its end.
//!
//! *The reader works in batches.* A reader that wakes up for each line would cost the emulator more
//! than the line. The pipe holds 20 ms of the fastest known interrupt storm; when it is full, the
//! emulator waits for the reader.

mod executed;
mod summary;
mod trace;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{pipe2, read};

pub use executed::{CodeCollector, CollectedCode, ExecutedCode};
use summary::ExceptionFold;
pub use summary::{Exceptions, OpenException, TrapTaken};
pub use trace::TraceSpan;

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
    /// Copies of the consoles' output, where they have a pipe of their own.
    copies: Option<OwnedFd>,
    fold: ExceptionFold,
    chunk: Vec<u8>,
}

/// Whether the emulator may write more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PipeState {
    Open,
    Ended,
}

/// The ends of the pipes that the emulator inherits.
pub(super) struct FarLogEnds {
    pub(super) log: OwnedFd,
    /// For copies of the consoles' output; without one they go to the log.
    pub(super) copies: Option<OwnedFd>,
}

impl ExceptionLog {
    /// Makes the pipes and the thread that reads them. `code` says what the emulator will
    /// also list of the code that it executes.
    pub(super) fn make(code: Option<CollectedCode>) -> io::Result<(Self, FarLogEnds)> {
        let (pipe, log_far) = pipe()?;
        let (copies, copies_far) = code.map(|_| self::pipe()).transpose()?.unzip();
        let far = FarLogEnds { log: log_far, copies: copies_far };
        let mut waits = vec![pipe.try_clone()?];
        waits.extend(copies.as_ref().map(OwnedFd::try_clone).transpose()?);
        let fold = ExceptionFold::new(code);
        let reader = LogReader { pipe, copies, fold, chunk: vec![0; CHUNK] };
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

    /// Returns how many bytes the consoles have printed since the last fault of this boot behind which
    /// they printed any; nothing if there is no such fault.
    pub fn output_since_fault(&self) -> Option<u64> {
        self.with(|reader| {
            reader.read();
            reader.fold.output_since_fault()
        })
    }

    /// Returns the first fault in whose handler a Cortex-M was reset since this was asked last.
    pub fn take_reset_in(&self) -> Option<u32> {
        self.with(|reader| {
            reader.read();
            reader.fold.take_reset_in()
        })
    }

    /// Tells what the emulator is to list of the code that it executes.
    pub fn takes_code(&self) -> Option<CollectedCode> {
        self.with(|reader| reader.fold.takes_code())
    }

    /// Returns the code that was executed, of an emulator that has ended.
    pub(super) fn executed(&self) -> Option<ExecutedCode> {
        self.with(|reader| {
            // A pipe whose writer is dead holds no more than its capacity.
            reader.read();
            reader.fold.executed()
        })
    }

    /// Empties the pipes until the emulator has ended.
    fn follow(&self, waits: &[OwnedFd]) {
        loop {
            let mut wanted = Vec::new();
            wanted.extend(waits.iter().map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN)));
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

/// Makes a pipe whose near end does not block.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (near, far) = pipe2(OFlag::O_CLOEXEC)?;
    fcntl(&near, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    // A smaller pipe is slower, not wrong: some hosts allow less.
    let _ = fcntl(&near, FcntlArg::F_SETPIPE_SZ(CAPACITY));
    Ok((near, far))
}

impl LogReader {
    fn read(&mut self) -> PipeState {
        let faults = self.fold.taken();
        let state = drain(&self.pipe, &mut self.chunk, |bytes| self.fold.take(bytes));
        if let Some(copies) = &self.copies {
            let mut printed = 0;
            drain(copies, &mut self.chunk, |bytes| printed += bytes.len());
            self.fold.copied(printed);
            if printed > 0 && self.fold.taken() == faults {
                self.fold.printed();
            }
        }
        state
    }
}

/// Reads what lies in a pipe.
fn drain(pipe: &OwnedFd, chunk: &mut [u8], mut take: impl FnMut(&[u8])) -> PipeState {
    for _ in 0..MOST_CHUNKS {
        match read(pipe, chunk) {
            Ok(0) => return PipeState::Ended,
            Ok(len) => take(&chunk[..len]),
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return PipeState::Open,
            Err(_) => return PipeState::Ended,
        }
    }
    PipeState::Open
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_flood_is_read_to_its_end_and_what_it_amounts_to_is_kept() {
        let (log, far) = ExceptionLog::make(None).unwrap();
        let mut far = File::from(far.log);
        let line = "riscv_cpu_do_interrupt: hart:0, async:0, cause:00000002, epc:0x80000000, \
                    tval:0x00000000, desc=illegal_instruction\n";
        // Eight times what the pipe holds.
        let count = 8 * CAPACITY as usize / line.len();
        for _ in 0..count {
            far.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(log.seen().faults as usize, count);
        far.write_all(b"CPU Reset (CPU 0)\n").unwrap();
        let since_launch = count as u64;
        assert_eq!(log.seen(), Exceptions { since_launch, ..Exceptions::default() });
        far.write_all(line.as_bytes()).unwrap();
        drop(far);
        assert_eq!(log.seen().faults, 1);
    }
    #[test]
    fn output_cannot_be_taken_for_the_list_of_code() {
        let (log, far) = ExceptionLog::make(Some(CollectedCode::Instructions)).unwrap();
        let (mut lines, mut copies) = (File::from(far.log), File::from(far.copies.unwrap()));
        lines.write_all(b"IN: main\n0x00000100:  b480  push\n\n").unwrap();
        copies.write_all(b"0x00000200:  b480  push\n").unwrap();
        assert_eq!(log.seen(), Exceptions { printed: true, ..Exceptions::default() });
        let fault = b"...taking pending nonsecure exception 3\n";
        lines.write_all(fault).unwrap();
        copies.write_all(b"x").unwrap();
        // Which of both came first is not known.
        assert!(!log.seen().printed);
        copies.write_all(b"x").unwrap();
        assert!(log.seen().printed);
        lines.write_all(b"0x00000300:  b480  push\n").unwrap();
        drop(lines);
        let executed = log.executed().unwrap();
        assert_eq!(executed.instructions(), [(0x100..0x102, false), (0x300..0x302, true)]);
    }
}
