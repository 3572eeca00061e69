//! Pseudo-terminals for tests.

use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};

/// A pseudo-terminal: its far end, and its near end with its path.
///
/// No child of another test inherits either, which would keep it in use and from hanging up.
pub(crate) struct TestPty {
    pub(crate) master: File,
    pub(crate) slave: File,
    pub(crate) path: PathBuf,
}

impl TestPty {
    pub(crate) fn open() -> Self {
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let master = posix_openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path: PathBuf = ptsname_r(&master).unwrap().into();
        let slave = File::options().read(true).write(true).open(&path).unwrap();
        Self { master: File::from(OwnedFd::from(master)), slave, path }
    }
}

/// Waits until bytes that were written at the far end have arrived: the kernel moves them later.
pub(crate) fn wait_readable(slave: &File) {
    let mut ends = [PollFd::new(slave.as_fd(), PollFlags::POLLIN)];
    assert_eq!(poll(&mut ends, PollTimeout::NONE).unwrap(), 1);
}
