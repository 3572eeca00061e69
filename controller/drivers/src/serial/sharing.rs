//! Notices that another program opens a port while it is in use here.
//!
//! # Design
//! A lock keeps polite programs out, `TIOCEXCL` those without privileges; neither keeps out a
//! modem manager that runs as root. What such a program reads is missing here and leaves no
//! trace in the bytes. But the kernel tells of each opening of a device's file (inotify(7)).
//! Whether the program then reads, it does not tell: that bytes may be missing is all that is
//! said.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use rustix::fs::inotify::WatchFlags;

use super::holder::opener;
use crate::file_watch::FileWatch;

/// How often a program that opens a port again and again is told of.
const AGAIN: Duration = Duration::from_secs(1);

/// Watches one port for other processes that open it.
#[derive(Debug)]
pub(super) struct Sharing {
    /// Nothing where the kernel has no watch to give.
    events: Option<FileWatch>,
    /// Another process has opened it, and no event has told that yet.
    opened: bool,
    port: PathBuf,
    told: Option<Instant>,
}

impl Sharing {
    /// Begins with a port that is open here. Call within a tokio runtime that has I/O enabled.
    pub(super) fn of(port: BorrowedFd<'_>) -> Self {
        let link = format!("/proc/self/fd/{}", port.as_raw_fd());
        let watch = || -> io::Result<(FileWatch, PathBuf)> {
            // By the descriptor, so that it is this very device whatever its name is by now.
            Ok((FileWatch::of(Path::new(&link), WatchFlags::OPEN)?, fs::read_link(&link)?))
        };
        match watch() {
            Ok((events, port)) => Self { events: Some(events), opened: false, port, told: None },
            Err(error) => {
                tracing::debug!(%error, "who opens the port is not watched");
                Self { events: None, opened: false, port: PathBuf::new(), told: None }
            }
        }
    }

    /// Looks whether another process has opened the port, and registers the caller's waker for
    /// that: the bytes that the other program reads wake no reader here.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) {
        while let Some(events) = &mut self.events {
            match events.poll(cx) {
                Poll::Ready(Ok(())) => self.opened = true,
                Poll::Ready(Err(_)) => self.events = None,
                Poll::Pending => return,
            }
        }
    }

    /// Drops the openings seen so far: they are not reported.
    pub(super) fn forget(&mut self) {
        self.poll(&mut Context::from_waker(Waker::noop()));
        self.opened = false;
    }

    /// Returns the name of the process that has opened the port since the last look.
    pub(super) fn event(&mut self) -> Option<String> {
        let recent = self.told.is_some_and(|told| told.elapsed() < AGAIN);
        if !std::mem::take(&mut self.opened) || recent {
            return None;
        }
        self.told = Some(Instant::now());
        let other = opener(&self.port);
        Some(other.unwrap_or_else(|| "a program that has closed it again".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd as _;

    use super::super::test_pty::TestPty;
    use super::*;

    fn event(sharing: &mut Sharing) -> Option<String> {
        sharing.poll(&mut Context::from_waker(Waker::noop()));
        sharing.event()
    }

    #[tokio::test]
    async fn an_opening_by_somebody_else_is_told_and_ones_own_descriptor_is_not() {
        let TestPty { master: _master, slave, path } = TestPty::open();
        let mut sharing = Sharing::of(slave.as_fd());
        let _copy = slave.try_clone().unwrap();
        let _ = (fs::metadata(&path).unwrap(), fs::canonicalize(&path).unwrap());
        assert_eq!(event(&mut sharing), None);
        let _thief = File::open(&path).unwrap();
        assert!(event(&mut sharing).is_some());
        assert_eq!(event(&mut sharing), None);
        drop(File::open(&path).unwrap());
        assert_eq!(event(&mut sharing), None, "so soon, it is the same story");
    }

    #[test]
    fn what_cannot_be_watched_is_not_news() {
        let mut sharing = Sharing { events: None, opened: false, port: PathBuf::new(), told: None };
        assert_eq!(event(&mut sharing), None);
    }
}
