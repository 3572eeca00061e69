//! A reader of a growing log, with a cursor of its own.
//!
//! Reads come from the page cache by position, so followers share only the published length with
//! the transport and each other: a slow one loses no bytes and delays no other.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::watch;

use super::disk::LogState;
use super::queue::TransportEnd;

/// Result of waiting for a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Follow {
    /// Bytes are in the buffer.
    Bytes {
        /// Offset of the first.
        offset: u64,
        /// How many; never 0.
        len: usize,
    },
    /// All bytes were read and no transport is attached. More may come after a new transport.
    Ended {
        /// How the transport ended; `None` where the whole console was closed.
        end: Option<TransportEnd>,
    },
}

/// Says why a log cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The file cannot be read.
    #[error("read console log {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The log could not be written on, and all that was written has been read.
    #[error("the console's log could not be written: {0}")]
    Storage(Arc<str>),
}

/// Follows a log.
#[derive(Debug, Clone)]
pub struct Follower {
    raw: Arc<File>,
    path: Arc<Path>,
    state: watch::Receiver<LogState>,
    /// How many transports were handed over so far; the state learns of each a little later.
    handed: Arc<AtomicU32>,
    cursor: u64,
    floor: u64,
}

impl Follower {
    /// Opens a log; see [`ConsoleHandle::follow`](super::ConsoleHandle::follow).
    pub(super) fn new(
        raw: &Path,
        state: watch::Receiver<LogState>,
        handed: Arc<AtomicU32>,
        offset: u64,
        floor: u64,
    ) -> Result<Self, FollowError> {
        let file =
            File::open(raw).map_err(|source| FollowError::Read { path: raw.to_owned(), source })?;
        let floor = floor.min(offset);
        Ok(Self { raw: Arc::new(file), path: raw.into(), state, handed, cursor: offset, floor })
    }

    /// Returns the offset of the next byte.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Returns where this boot's output begins.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// Moves the cursor, not before the floor.
    pub fn seek(&mut self, offset: u64) {
        self.cursor = offset.max(self.floor);
    }

    /// Begins a new boot at an offset: cursor and floor stand there.
    pub fn begin_boot(&mut self, offset: u64) {
        self.floor = offset;
        self.cursor = offset;
    }

    /// Returns the log's state as published last.
    pub fn state(&self) -> LogState {
        self.state.borrow().clone()
    }

    /// Waits for bytes behind the cursor, reads them, and moves the cursor.
    ///
    /// Cancel-safe: the cursor moves only when bytes are returned.
    ///
    /// # Errors
    /// Fails where the log cannot be read, or will not grow because storage failed.
    pub async fn next(&mut self, buf: &mut [u8]) -> Result<Follow, FollowError> {
        let seen = self.wait_beyond(self.cursor).await?;
        match seen {
            Beyond::Bytes => {
                let (offset, len) = (self.cursor, self.read_at(self.cursor, buf)?);
                self.cursor += len as u64;
                Ok(Follow::Bytes { offset, len })
            }
            Beyond::Ended(end) => Ok(Follow::Ended { end }),
        }
    }

    /// Waits after [`Follow::Ended`] until there is a transport again; `false` means never.
    pub async fn revived(&mut self) -> bool {
        let (cursor, transports) = (self.cursor, self.state.borrow().transports);
        let state =
            self.state.wait_for(|s| s.closed || s.len > cursor || s.transports > transports).await;
        state.is_ok_and(|s| !s.closed || s.len > cursor)
    }

    /// Reads committed bytes at any offset from the floor on; 0 where there are none.
    ///
    /// # Errors
    /// Fails where the log cannot be read.
    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize, FollowError> {
        let committed = self.state.borrow().len;
        let offset = offset.max(self.floor);
        let room = committed.saturating_sub(offset).min(buf.len() as u64) as usize;
        let mut filled = 0;
        // Blocking on purpose: what was just appended is in the page cache, and a hop to
        // another thread costs more than the copy.
        while filled < room {
            match self.raw.read_at(&mut buf[filled..room], offset + filled as u64) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(FollowError::Read { path: self.path.to_path_buf(), source });
                }
            }
        }
        if filled < room && filled == 0 {
            // The file was truncated; without this check a reader would retry without end.
            let source = io::ErrorKind::UnexpectedEof.into();
            return Err(FollowError::Read { path: self.path.to_path_buf(), source });
        }
        Ok(filled)
    }

    /// Returns the byte before an offset, if it belongs to this boot.
    pub(super) fn byte_before(&self, offset: u64) -> Result<Option<u8>, FollowError> {
        let mut byte = [0];
        match offset.checked_sub(1).filter(|&before| before >= self.floor) {
            Some(before) => Ok((self.read_at(before, &mut byte)? == 1).then_some(byte[0])),
            None => Ok(None),
        }
    }

    /// Waits until the log is longer than `position`, or will not become so for now.
    pub(super) async fn wait_beyond(&mut self, position: u64) -> Result<Beyond, FollowError> {
        loop {
            {
                let state = self.state.borrow_and_update();
                if state.len > position {
                    return Ok(Beyond::Bytes);
                }
                if let Some(error) = &state.error {
                    return Err(FollowError::Storage(Arc::clone(error)));
                }
                // A transport that was handed over already counts, or a wait right behind a
                // power-on would see the end of the boot before.
                let ended = state.transports >= self.handed.load(Ordering::Acquire)
                    && state.ended.is_some()
                    && !state.attached;
                if state.closed || ended {
                    return Ok(Beyond::Ended(state.ended.clone()));
                }
            }
            if self.state.changed().await.is_err() {
                let ended = self.state.borrow().ended.clone();
                return Ok(Beyond::Ended(ended));
            }
        }
    }
}

/// What [`Follower::wait_beyond`] waited for.
pub(super) enum Beyond {
    /// The log is longer.
    Bytes,
    /// Nothing more comes for now.
    Ended(Option<TransportEnd>),
}
