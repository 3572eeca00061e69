//! What a program prints, on its way from a pipe to a file.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::{pipe2, read};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::Receiver;

/// Most bytes that are read at once: what a pipe holds by default.
const CHUNK: usize = 64 << 10;

/// Why no more output is taken.
#[derive(Debug)]
pub(super) enum OutputStop {
    /// There is more than the file may have.
    TooMuch,
    /// It could not be read or written.
    Failed(io::Error),
}

impl From<io::Error> for OutputStop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Copies what comes out of a pipe into a file.
pub(super) struct OutputCopy {
    pipe: Receiver,
    copied: CopiedOutput,
    bytes: Vec<u8>,
}

/// What was read, on its way to the file.
struct CopiedOutput {
    file: File,
    /// Bytes that the file may still get.
    left: u64,
    pending: Vec<u8>,
    too_much: bool,
}

impl OutputCopy {
    /// Empties or makes the file; returns the end of the pipe that is written to.
    pub(super) fn to(path: &Path, most: u64) -> io::Result<(Self, OwnedFd)> {
        let file = std::fs::File::create(path).map_err(|error| {
            io::Error::new(error.kind(), format!("write {}: {error}", path.display()))
        })?;
        let (near, far) = pipe2(OFlag::O_CLOEXEC)?;
        let pipe = Receiver::from_owned_fd(near)?;
        let file = File::from_std(file);
        let copied = CopiedOutput { file, left: most, pending: Vec::new(), too_much: false };
        Ok((Self { pipe, copied, bytes: vec![0; CHUNK] }, far))
    }

    /// Copies until the pipe is closed everywhere. Cancel-safe.
    pub(super) async fn copy(&mut self) -> Result<(), OutputStop> {
        loop {
            self.copied.write().await?;
            match self.pipe.read(&mut self.bytes).await? {
                0 => return Ok(()),
                n => self.copied.take(&self.bytes[..n]),
            }
        }
    }

    /// Copies what is in the pipe, whether it is closed everywhere or not, and closes the file.
    pub(super) async fn finish(self) -> Result<(), OutputStop> {
        let Self { pipe, mut copied, mut bytes } = self;
        let pipe = pipe.into_nonblocking_fd()?;
        let stopped = loop {
            if let Err(stop) = copied.write().await {
                break Err(stop);
            }
            match read(&pipe, &mut bytes) {
                Ok(0) | Err(Errno::EAGAIN) => break Ok(()),
                Ok(n) => copied.take(&bytes[..n]),
                Err(Errno::EINTR) => {}
                Err(errno) => break Err(OutputStop::Failed(errno.into())),
            }
        };
        // A file that cannot be written has failed already.
        stopped.and(copied.file.flush().await.map_err(OutputStop::Failed))
    }
}

impl CopiedOutput {
    fn take(&mut self, bytes: &[u8]) {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let fits = bytes.len().min(most);
        self.too_much = fits < bytes.len();
        self.left = self.left.saturating_sub(fits as u64);
        self.pending.extend_from_slice(&bytes[..fits]);
    }

    /// Hands everything that was read to the file. Cancel-safe: bytes leave the queue as the file
    /// takes them.
    async fn write(&mut self) -> Result<(), OutputStop> {
        while !self.pending.is_empty() {
            let taken = self.file.write(&self.pending).await?;
            self.pending.drain(..taken);
        }
        match self.too_much {
            true => Err(OutputStop::TooMuch),
            false => Ok(()),
        }
    }
}
