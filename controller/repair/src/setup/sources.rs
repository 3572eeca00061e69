//! The commit that is repaired: its files, its sources, and the lines of them that are suspected. It does
//! not change, so each is found out once in a process.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use tokio::sync::OnceCell;

use super::RepairSetup;
use crate::git::GitError;
use crate::localise::RankedSuspect;
use crate::run::Run;

/// Largest source that is read, and most of all sources together.
const MAX_SOURCE: u64 = 1 << 20;
const MAX_SOURCES: u64 = 32 << 20;

/// The text of each source, by its path.
pub type BaseSources = BTreeMap<String, String>;

/// What is known of the base, once it was asked for.
#[derive(Debug, Default)]
pub struct KnownBase {
    files: OnceCell<Vec<String>>,
    sources: OnceCell<Arc<BaseSources>>,
    /// The lines that may hold the fault, the most suspicious first: what fails is what the baseline has
    /// shown, in every iteration.
    pub suspects: OnceCell<Vec<RankedSuspect>>,
}

impl RepairSetup {
    /// Lists the files of the commit that is repaired.
    ///
    /// # Errors
    /// The repository cannot be used.
    pub async fn files(&self, run: &Run) -> Result<&[String], GitError> {
        let listed = self.base.files.get_or_try_init(|| self.git.files(&run.contract.base)).await;
        listed.map(Vec::as_slice)
    }

    /// Returns the sources without any patch. While they are read, the work tree holds the base.
    ///
    /// # Errors
    /// The repository or the work tree cannot be used.
    pub async fn base_sources(&self, run: &Run) -> Result<Arc<BaseSources>, GitError> {
        let read = async || {
            let files = self.files(run).await?;
            self.hold(&run.contract.base).await?;
            Ok(Arc::new(self.sources(files)))
        };
        self.base.sources.get_or_try_init(read).await.cloned()
    }

    /// Reads the sources among files of the work tree.
    fn sources(&self, files: &[String]) -> BaseSources {
        let tree = self.folder.tree();
        let mut sources = BTreeMap::new();
        let mut left = MAX_SOURCES;
        for file in files.iter().filter(|file| is_c(file)) {
            let path = tree.join(file);
            let Ok(about) = fs::symlink_metadata(&path) else { continue };
            if !about.is_file() || about.len() > MAX_SOURCE.min(left) {
                continue;
            }
            let Ok(bytes) = fs::read(&path) else { continue };
            left -= about.len();
            sources.insert(file.clone(), String::from_utf8_lossy(&bytes).into_owned());
        }
        sources
    }
}

fn is_c(file: &str) -> bool {
    [".c", ".h", ".cc", ".cpp", ".hpp"].iter().any(|ending| file.ends_with(ending))
}
