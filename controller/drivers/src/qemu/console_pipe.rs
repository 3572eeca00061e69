//! The near end of an emulated console.
//!
//! # Design
//! A console is a pair of FIFOs, not a socket. An emulated UART writes byte by byte, and
//! the kernel charges a socket some 768 bytes for each such write: it is full after 280 of
//! them, and then some machines drop output. A pipe packs bytes, holds a mebibyte of them,
//! and moved twice as many a second when measured. The names exist only until the emulator
//! has opened them.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};

use jig_model::ConsoleName;
use jig_model::protocol::Transport;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tokio::io::Interest;
use tokio::sync::Notify;

use super::guest_stderr::GuestStderr;
use crate::descriptor::Descriptor;

/// Bytes a console's pipe holds: what Linux allows any user by default. An emulated UART prints at
/// most half of it in a second, so a capture that is late by two loses nothing.
const CAPACITY: i32 = 1 << 20;

/// A console's pipes, and the bell that tells the emulator's owner of input.
struct ConsolePipe {
    output: Descriptor,
    input: Descriptor,
    /// Text that the guest writes elsewhere, and that belongs to this console.
    stderr: Option<GuestStderr>,
    /// Rung after each write, where the machine needs a poke to notice input.
    bell: Option<Arc<Notify>>,
}

/// The names of a console's FIFOs, for as long as the emulator has not opened them.
pub(super) struct ConsoleEnds {
    path: PathBuf,
    /// Keeps the output from ending before the emulator has opened it.
    _writer: OwnedFd,
}

impl ConsoleEnds {
    /// Makes the FIFOs of a console in a folder, and the near end of them.
    pub(super) fn make(
        folder: &Path,
        console: &ConsoleName,
        bell: Option<Arc<Notify>>,
        stderr: Option<GuestStderr>,
    ) -> io::Result<(Self, Box<dyn Transport>)> {
        let path = folder.join(console.as_str());
        let (input, output) = (fifo(&path, ".in"), fifo(&path, ".out"));
        for name in [&input, &output] {
            mkfifo(name, Mode::S_IRUSR | Mode::S_IWUSR)?;
        }
        let flags = OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let reader = open(&output, OFlag::O_RDONLY | flags, Mode::empty())?;
        let writer = open(&output, OFlag::O_WRONLY | flags, Mode::empty())?;
        // Read and write, because the pipe has no reader yet.
        let sender = open(&input, OFlag::O_RDWR | flags, Mode::empty())?;
        // A smaller pipe is slower, not wrong: some hosts allow less.
        let _ = fcntl(reader.as_fd(), FcntlArg::F_SETPIPE_SZ(CAPACITY));
        let transport = ConsolePipe {
            output: Descriptor::new(reader, Interest::READABLE)?,
            input: Descriptor::new(sender, Interest::WRITABLE)?,
            stderr,
            bell,
        };
        Ok((Self { path, _writer: writer }, Box::new(transport)))
    }

    /// Opens the output once more, for what the emulator itself would print there; none if its
    /// capture has ended already.
    pub(super) fn output(&self) -> Option<fs::File> {
        let flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let output = open(&fifo(&self.path, ".out"), flags, Mode::empty()).ok()?;
        // The emulator would lose what a full pipe refuses.
        fcntl(&output, FcntlArg::F_SETFL(OFlag::empty())).ok()?;
        Some(output.into())
    }

    /// Returns the name as the emulator takes it; it adds `.in` and `.out` itself.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ConsoleEnds {
    fn drop(&mut self) {
        for suffix in [".in", ".out"] {
            // Gone already, or in a folder that is thrown away as a whole.
            let _ = fs::remove_file(fifo(&self.path, suffix));
        }
    }
}

fn fifo(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.into();
    name.push(suffix);
    name.into()
}

impl Transport for ConsolePipe {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        match (self.output.poll_read(cx, buf), &mut self.stderr) {
            (Poll::Pending, Some(stderr)) => stderr.poll_read(cx, buf),
            // The emulator has ended.
            (Poll::Ready(Ok(0)), Some(stderr)) => Poll::Ready(stderr.rest(buf)),
            (read, _) => read,
        }
    }

    fn rest(&mut self) {
        self.output.rest();
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.input.poll_write(cx, bytes);
        if let (Poll::Ready(Ok(_)), Some(bell)) = (&written, &self.bell) {
            bell.notify_one();
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::io::{Read, Write};

    #[tokio::test]
    async fn bytes_written_one_by_one_all_fit_and_the_end_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let (ends, mut transport) =
            ConsoleEnds::make(dir.path(), &"uart0".parse().unwrap(), None, None).unwrap();
        let open =
            |suffix| fs::File::options().read(true).write(true).open(fifo(ends.path(), suffix));
        let (mut input, mut output) = (open(".in").unwrap(), open(".out").unwrap());
        drop(ends);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        for _ in 0..100_000 {
            output.write_all(b"x").unwrap();
        }
        drop(output);
        let (mut total, mut buf) = (0, vec![0; 4096]);
        loop {
            match poll_fn(|cx| transport.poll_read(cx, &mut buf)).await.unwrap() {
                0 => break,
                n => total += n,
            }
        }
        assert_eq!(total, 100_000);
        assert_eq!(poll_fn(|cx| transport.poll_write(cx, b"hi")).await.unwrap(), 2);
        let mut two = [0; 2];
        input.read_exact(&mut two).unwrap();
        assert_eq!(&two, b"hi");
    }
}
