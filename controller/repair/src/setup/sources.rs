//! The C sources of the run's work tree.

use std::collections::BTreeMap;
use std::fs;

use super::RepairSetup;

/// Largest source that is read, and most of all sources together.
const MAX_SOURCE: u64 = 1 << 20;
const MAX_SOURCES: u64 = 32 << 20;

impl RepairSetup {
    /// Reads the sources among files of the work tree, by their paths.
    pub fn sources(&self, files: &[String]) -> BTreeMap<String, String> {
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
