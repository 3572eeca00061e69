//! What describes a rig: the files and folders by which two processes of a host find out that they mean
//! the same one.
//!
//! # Design
//! *Files are compared by identity, not by content.* Both processes are on one host, so the same inode of
//! the same size and time of change is the same text, and nothing has to be read.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::sources::toml_files;
use super::{Catalogue, CatalogueError, Surroundings, board_folders, files_of_rig};
use crate::LabConfig;

/// What describes a rig.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribedRig {
    /// The rig file and its drop-ins, in the order in which they are read; none where each board that
    /// can be emulated is a place.
    pub rig_files: Vec<DescribingFile>,
    /// The profiles and fault sets beside those that are built in, in the order in which they win.
    pub board_files: Vec<DescribingFile>,
    /// Where what outlives a command is kept.
    pub state: PathBuf,
    /// Where runs are kept.
    pub runs: PathBuf,
    /// Where the image sets of emulated boards are.
    pub images: PathBuf,
}

/// A file that describes a rig.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribingFile {
    /// Its path, without links in its folder.
    pub path: PathBuf,
    /// Numbers of its device and inode, its size in bytes, and the time of its last change in seconds
    /// and nanoseconds; nothing if it cannot be looked at.
    pub stamp: Option<(u64, u64, u64, i64, i64)>,
}

impl DescribedRig {
    /// Tells whether the rig file is that of the whole machine, `/etc/jig/rig.toml`.
    pub fn is_of_machine(&self) -> bool {
        let machine = Surroundings::of_process().machine_config();
        let machine = resolved(&machine);
        self.rig_files.first().is_some_and(|file| file.path.parent() == Some(&machine))
    }

    /// Tells whether both are described by the same files.
    pub fn has_same_files(&self, other: &Self) -> bool {
        self.rig_files == other.rig_files && self.board_files == other.board_files
    }
}

impl Catalogue {
    /// Looks up what describes this rig, which was read as `config` names it.
    ///
    /// # Errors
    /// A folder cannot be listed.
    pub fn described(&self, config: &LabConfig) -> Result<DescribedRig, CatalogueError> {
        let around = &self.around;
        let rig_files = files_of_rig(config.rig.as_deref(), around)?;
        let mut board_files = Vec::new();
        for folder in board_folders(config.boards.as_deref(), &rig_files, around)? {
            board_files.extend(toml_files(&folder)?);
            board_files.extend(toml_files(&folder.join("faults"))?);
        }
        let stamped = |files: Vec<PathBuf>| files.into_iter().map(DescribingFile::of).collect();
        Ok(DescribedRig {
            rig_files: stamped(rig_files),
            board_files: stamped(board_files),
            state: resolved(&self.state()),
            runs: resolved(&self.runs_dir()),
            images: resolved(&self.images_dir()),
        })
    }
}

impl DescribingFile {
    fn of(path: PathBuf) -> Self {
        let about = std::fs::metadata(&path).ok();
        // The name of a profile is its file's, so a link is not followed for it.
        let path = match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) => resolved(folder).join(name),
            _ => path,
        };
        let stamp = about.map(|about| {
            (about.dev(), about.ino(), about.size(), about.mtime(), about.mtime_nsec())
        });
        Self { path, stamp }
    }
}

/// Resolves the links of a path as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut behind = PathBuf::new();
    for folder in path.ancestors() {
        if let Ok(real) = folder.canonicalize() {
            return if behind.as_os_str().is_empty() { real } else { real.join(behind) };
        }
        if let Some(name) = folder.file_name() {
            behind = match behind.as_os_str().is_empty() {
                true => name.into(),
                false => Path::new(name).join(behind),
            };
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(cwd: &Path) -> Surroundings {
        Surroundings { cwd: cwd.to_owned(), etc: cwd.join("etc"), variables: Vec::new() }
    }

    fn described(cwd: &Path, config: &LabConfig) -> DescribedRig {
        let catalogue = Catalogue::load_in(config, around(cwd)).unwrap();
        catalogue.described(config).unwrap()
    }

    #[test]
    fn a_changed_or_added_file_makes_another_rig() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let config = LabConfig::default();
        let none = described(folder.path(), &config);
        assert!(none.rig_files.is_empty() && none.board_files.is_empty());
        assert_eq!(none, described(folder.path(), &config));
        std::fs::write(at("rig.toml"), "version = 1\n").unwrap();
        let rig = described(folder.path(), &config);
        assert!(!rig.has_same_files(&none) && rig.state == none.state);
        std::fs::create_dir(at("rig.toml.d")).unwrap();
        std::fs::write(at("rig.toml.d/more.toml"), "version = 1\n").unwrap();
        let more = described(folder.path(), &config);
        assert!(!more.has_same_files(&rig) && more.rig_files.len() == 2);
        // Replaced by one of the same size: an editor's way to write.
        std::fs::write(at("new"), "version = 1\n").unwrap();
        std::fs::rename(at("new"), at("rig.toml")).unwrap();
        assert!(!described(folder.path(), &config).has_same_files(&more));
    }

    #[test]
    fn folders_are_the_same_by_whatever_path() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("state")).unwrap();
        std::os::unix::fs::symlink("state", folder.path().join("link")).unwrap();
        let of = |state: &str| {
            let state = Some(folder.path().join(state));
            described(folder.path(), &LabConfig { state, ..LabConfig::default() })
        };
        let (state, link) = (of("state"), of("link"));
        assert_eq!((&state.state, &state.runs), (&link.state, &link.runs));
        assert!(state.runs.ends_with("state/runs"), "{:?}", state.runs);
        assert_ne!(of("other").state, state.state);
    }
}
