//! The service of this host that the arguments lead to.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// A service of this host that serves the rig which the arguments mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FoundService {
    /// It keeps runs and state in the folders of this process, as this user.
    SameFolders {
        /// Where it listens.
        socket: PathBuf,
        /// The folder of runs, as it names it.
        runs: PathBuf,
    },
    /// It has folders of its own.
    OtherFolders {
        /// Where it listens.
        socket: PathBuf,
    },
}

/// What was found, once it was looked for. Shared by all copies of the arguments.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServiceCell(Arc<OnceLock<Option<FoundService>>>);

impl ServiceCell {
    /// Returns what was found, and looks for it if that was not done.
    pub(crate) fn get_or_find(
        &self,
        find: impl FnOnce() -> Option<FoundService>,
    ) -> Option<FoundService> {
        self.0.get_or_init(find).clone()
    }
}
