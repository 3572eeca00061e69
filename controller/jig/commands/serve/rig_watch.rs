//! Detects changes of the rig file and its drop-ins.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use jig_lab::rig_files;

use crate::args::Common;

/// Identity of a file's content: inode, size and time of change.
type Mark = (u64, u64, i64, i64);

/// The rig file and its drop-ins at the last check.
pub(crate) struct RigWatch {
    seen: Option<Vec<(PathBuf, Option<Mark>)>>,
}

impl RigWatch {
    /// Records the files as they are.
    pub(crate) fn of(common: &Common) -> Self {
        Self { seen: Some(look(common)) }
    }

    /// Forgets them, so that the next check finds a change.
    pub(crate) fn forget(&mut self) {
        self.seen = None;
    }

    /// Returns whether they have changed since the last check.
    pub(crate) fn has_changed(&mut self, common: &Common) -> bool {
        let now = Some(look(common));
        let changed = now != self.seen;
        self.seen = now;
        changed
    }
}

fn look(common: &Common) -> Vec<(PathBuf, Option<Mark>)> {
    // A missing file counts as a change; reading it reports the error.
    let files = rig_files(&common.own_lab()).unwrap_or_default();
    let mark = |path: &PathBuf| {
        let about = std::fs::metadata(path).ok()?;
        Some((about.ino(), about.size(), about.mtime(), about.mtime_nsec()))
    };
    files.into_iter().map(|path| (path.clone(), mark(&path))).collect()
}
