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
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};

use super::holder::{named, openers};

/// How often a program that opens a port again and again is told of.
const AGAIN: Duration = Duration::from_secs(1);

/// Room for a few events without a name: 16 bytes each (inotify(7)).
const ROOM: usize = 512;

/// Watches who opens one port.
#[derive(Debug)]
pub(super) struct Sharing {
    /// Nothing where the kernel has no watch to give.
    events: Option<OwnedFd>,
    port: PathBuf,
    told: Option<Instant>,
}

impl Sharing {
    /// Begins with a port that is open here.
    pub(super) fn of(port: BorrowedFd<'_>) -> Self {
        let link = format!("/proc/self/fd/{}", port.as_raw_fd());
        let watch = || -> io::Result<(OwnedFd, PathBuf)> {
            let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            // By the descriptor, so that it is this very device whatever its name is by now.
            inotify::add_watch(&events, link.as_str(), WatchFlags::OPEN)?;
            Ok((events, fs::read_link(&link)?))
        };
        match watch() {
            Ok((events, port)) => Self { events: Some(events), port, told: None },
            Err(error) => {
                tracing::debug!(%error, "who opens the port is not watched");
                Self { events: None, port: PathBuf::new(), told: None }
            }
        }
    }

    /// Lets what happened so far be nobody's; tells whether anything did.
    pub(super) fn forget(&self) -> bool {
        let Some(events) = &self.events else { return false };
        let mut room = [MaybeUninit::uninit(); ROOM];
        let mut events = Reader::new(events, &mut room);
        // Until the kernel has no more, or says why not.
        std::iter::from_fn(|| events.next().ok().map(drop)).count() > 0
    }

    /// Returns who has opened the port since the last look, in words.
    pub(super) fn news(&mut self) -> Option<String> {
        let recent = self.told.is_some_and(|told| told.elapsed() < AGAIN);
        if !self.forget() || recent {
            return None;
        }
        self.told = Some(Instant::now());
        let all = openers(&self.port, "/proc".as_ref());
        let other = all.into_iter().find(|&pid| pid != std::process::id());
        Some(other.map_or_else(|| "a program that has closed it again".to_owned(), named))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd as _;

    use super::super::test_pty::TestPty;
    use super::*;

    #[test]
    fn an_opening_by_somebody_else_is_told_and_ones_own_descriptor_is_not() {
        let TestPty { master: _master, slave, path } = TestPty::open();
        let mut sharing = Sharing::of(slave.as_fd());
        let _copy = slave.try_clone().unwrap();
        let _ = (fs::metadata(&path).unwrap(), fs::canonicalize(&path).unwrap());
        assert_eq!(sharing.news(), None);
        let _thief = File::open(&path).unwrap();
        assert!(sharing.news().is_some());
        assert_eq!(sharing.news(), None);
        drop(File::open(&path).unwrap());
        assert_eq!(sharing.news(), None, "so soon, it is the same story");
    }

    #[test]
    fn what_cannot_be_watched_is_not_news() {
        let mut sharing = Sharing { events: None, port: PathBuf::new(), told: None };
        assert_eq!(sharing.news(), None);
    }
}
