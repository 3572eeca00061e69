//! Whether the files that make the rig are still those that were read.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use jig_lab::rig_files;

use crate::args::Common;

/// What tells a file from what it was: its inode, size and time of change.
type Mark = (u64, u64, i64, i64);

/// The rig file and its drop-ins as they were seen last.
pub(super) struct RigWatch {
    seen: Option<Vec<(PathBuf, Option<Mark>)>>,
}

impl RigWatch {
    /// Remembers the files as they are.
    pub(super) fn of(common: &Common) -> Self {
        Self { seen: Some(look(common)) }
    }

    /// Forgets them, so that the next look finds a change.
    pub(super) fn forget(&mut self) {
        self.seen = None;
    }

    /// Tells whether they have changed since the last look.
    pub(super) fn has_changed(&mut self, common: &Common) -> bool {
        let now = Some(look(common));
        let changed = now != self.seen;
        self.seen = now;
        changed
    }
}

fn look(common: &Common) -> Vec<(PathBuf, Option<Mark>)> {
    // A file that was named and is gone is a change, and reading it says what is wrong.
    let files = rig_files(&common.lab()).unwrap_or_default();
    let mark = |path: &PathBuf| {
        let about = std::fs::metadata(path).ok()?;
        Some((about.ino(), about.size(), about.mtime(), about.mtime_nsec()))
    };
    files.into_iter().map(|path| (path.clone(), mark(&path))).collect()
}
