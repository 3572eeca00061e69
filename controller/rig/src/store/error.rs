//! What can go wrong with the run store.

use std::io;
use std::path::{Path, PathBuf};

use jig_model::{Cause, Fault};
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};

/// Says why the run store could not do as asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder or file may not be written.
    #[error(
        "may not write {}: make it writable for this user or choose another runs folder",
        path.display()
    )]
    Unwritable {
        /// What was to be written.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The disk or the quota is full.
    #[error(
        "no space left to write {}: free some, or let `jig runs prune` remove old runs",
        path.display()
    )]
    Full {
        /// What was to be written.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The limit of this process on the size of files was reached.
    #[error(
        "could not write {}: it would exceed the limit on the size of files (`ulimit -f unlimited` before jig lifts it)",
        path.display()
    )]
    TooLarge {
        /// What was to be written.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A write failed for another reason.
    #[error("could not write {}", path.display())]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file or folder could not be read.
    #[error("could not read {}", path.display())]
    Read {
        /// What was to be read.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file was written by a newer Jig.
    #[error(
        "{} has format version {found}, this jig knows up to {known}: use the jig that wrote it, or a newer one",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version this program knows.
        known: u32,
    },
    /// A file does not hold what it should.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No run has this id.
    #[error("no run {wanted:?} in {}{}", root.display(), suggestion(nearest))]
    NotFound {
        /// What was asked for.
        wanted: String,
        /// The runs folder.
        root: PathBuf,
        /// Ids that resemble it, the best first.
        nearest: Vec<String>,
    },
    /// Several runs have ids that begin so.
    #[error("{wanted:?} may mean any of {}: type more of the id", matches.join(", "))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// Some of the ids that begin so.
        matches: Vec<String>,
    },
    /// No free id was found.
    #[error("found no free run id in {} after {tries} tries", root.display())]
    NoFreeId {
        /// The runs folder.
        root: PathBuf,
        /// How many ids were tried.
        tries: u32,
    },
    /// Something of Jig's own cannot be written as JSON.
    #[error("could not encode what belongs into {}", path.display())]
    Encode {
        /// Where it was to be written.
        path: PathBuf,
        /// What the encoder said.
        #[source]
        source: serde_json::Error,
    },
}

fn suggestion(nearest: &[String]) -> String {
    if nearest.is_empty() {
        ": `jig runs` lists them".to_owned()
    } else {
        format!(": did you mean {}?", nearest.join(" or "))
    }
}

impl StoreError {
    /// Says who has to act.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Unwritable { .. }
            | Self::Full { .. }
            | Self::TooLarge { .. }
            | Self::Write { .. }
            | Self::Read { .. }
            | Self::Damaged { .. }
            | Self::NoFreeId { .. } => Fault::Lab,
            Self::Newer { .. } | Self::NotFound { .. } | Self::Ambiguous { .. } => Fault::Usage,
            Self::Encode { .. } => Fault::Bug,
        }
    }

    /// Returns the cause of a run that ends because of this, if it is the rig's.
    pub fn cause(&self) -> Option<Cause> {
        (self.fault() == Fault::Lab).then_some(Cause::StorageFailed)
    }

    /// Tells whether the same may work in a moment: room and handles come back.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Full { .. } => true,
            Self::Write { source, .. } | Self::Read { source, .. } => lacks(source),
            Self::TooLarge { .. } => files_may_grow_again(),
            Self::Unwritable { .. }
            | Self::Newer { .. }
            | Self::Damaged { .. }
            | Self::NotFound { .. }
            | Self::Ambiguous { .. }
            | Self::NoFreeId { .. }
            | Self::Encode { .. } => false,
        }
    }

    /// Sorts a failed write by what the user can do about it.
    pub(crate) fn writing(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Full { path, source }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::Unwritable { path, source }
            }
            io::ErrorKind::FileTooLarge => Self::TooLarge { path, source },
            _ => Self::Write { path, source },
        }
    }

    pub(crate) fn reading(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }

    pub(crate) fn encoding(path: &Path, source: serde_json::Error) -> Self {
        Self::Encode { path: path.to_owned(), source }
    }

    pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.into() }
    }
}

/// Tells whether the limit on the size of files can be lifted while this process lives: the one of
/// `ulimit -f` is a hard limit, too, and stays.
fn files_may_grow_again() -> bool {
    getrlimit(Resource::RLIMIT_FSIZE).is_ok_and(|(soft, hard)| soft < hard)
}

/// Tells whether the host is to blame for a failed read: no file handles, no memory, a disk error.
pub fn is_the_hosts(error: &io::Error) -> bool {
    lacks(error) || error.raw_os_error() == Some(Errno::EIO as i32)
}

/// Tells whether this machine lacks something that comes back: handles, memory, room.
pub(crate) fn lacks(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(
        errno,
        Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOSPC | Errno::EDQUOT)
    )
}
