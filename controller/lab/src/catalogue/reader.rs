//! A rig that a process looks at again and again.
//!
//! # Design
//! *The stamps of the files tell, and no time does.* A caller who has changed the rig file and asks sees the
//! change, at once. So each reading finds the files by the rules of the catalogue and asks the system for
//! their stamps; only reading and lowering them is saved. A file that was changed less than two seconds before
//! it was read may change again within one tick of the file system's clock, with the same stamp: it is not
//! kept.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::sources::toml_files;
use super::{Catalogue, CatalogueError, Surroundings, board_folders, files_of_rig};
use crate::LabConfig;

/// Age from which on the stamp of a file changes with its content: the coarsest clock of a file system
/// in use counts two seconds.
const SETTLED: Duration = Duration::from_secs(2);

/// Reads boards and places, and reads them again where a file has changed.
#[derive(Debug, Default)]
pub struct CatalogueReader {
    kept: Mutex<Option<KeptCatalogue>>,
}

/// What was read, and of what.
#[derive(Debug)]
struct KeptCatalogue {
    config: LabConfig,
    around: Surroundings,
    files: Vec<StampedFile>,
    catalogue: Arc<Catalogue>,
}

/// A file as the system describes it; what cannot be described has no stamp.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StampedFile {
    path: PathBuf,
    stamp: Option<FileStamp>,
}

/// What changes with the content of a file. The time of the last change of the inode cannot be set back.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    len: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    fn of(about: &Metadata) -> Self {
        Self {
            device: about.dev(),
            inode: about.ino(),
            len: about.len(),
            written: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }

    /// Tells whether the file has not been changed for a while, at a time since 1970.
    fn is_settled(&self, now: Duration) -> bool {
        let changed = u64::try_from(self.changed.0).unwrap_or_default();
        now.checked_sub(Duration::from_secs(changed)).is_some_and(|age| age > SETTLED)
    }
}

impl CatalogueReader {
    /// Returns boards and places as their files say now. Waits for the disk.
    ///
    /// # Errors
    /// As [`Catalogue::load`].
    pub fn read(&self, config: &LabConfig) -> Result<Arc<Catalogue>, CatalogueError> {
        self.read_in(config, Surroundings::of_process())
    }

    fn read_in(
        &self,
        config: &LabConfig,
        around: Surroundings,
    ) -> Result<Arc<Catalogue>, CatalogueError> {
        let files = stamped(config, &around)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.as_ref().filter(|kept| {
            kept.files == files && kept.around == around && is_same_rig(&kept.config, config)
        });
        if let Some(KeptCatalogue { catalogue, config: of, .. }) = known {
            let names_groups =
                catalogue.rig.access.name_groups() || catalogue.rig.leases.names_groups();
            // Groups of users are in no file of these.
            return Ok(if of.user == config.user && !names_groups {
                Arc::clone(catalogue)
            } else {
                Arc::new(catalogue.seen_by(&config.user))
            });
        }
        *kept = None;
        let begun = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let catalogue = Arc::new(Catalogue::load_in(config, around.clone())?);
        let settled = files
            .iter()
            .all(|file| file.stamp.as_ref().is_some_and(|stamp| stamp.is_settled(begun)));
        // A chip on a probe depends on the probes that are attached.
        if settled && config.chip.is_none() {
            let (config, catalogue) = (config.clone(), Arc::clone(&catalogue));
            *kept = Some(KeptCatalogue { config, around, files, catalogue });
        }
        Ok(catalogue)
    }
}

/// Tells whether two configurations describe the same rig, for whatever users.
fn is_same_rig(one: &LabConfig, other: &LabConfig) -> bool {
    let LabConfig { rig, boards, runs, state, program: _, chip, user: _ } = one;
    (rig, boards, runs, state, chip)
        == (&other.rig, &other.boards, &other.runs, &other.state, &other.chip)
}

/// Stamps all files that boards and places are read of, found by the same rules.
fn stamped(config: &LabConfig, around: &Surroundings) -> Result<Vec<StampedFile>, CatalogueError> {
    let mut files = files_of_rig(config.rig.as_deref(), around)?;
    for folder in board_folders(config.boards.as_deref(), &files, around)? {
        files.extend(toml_files(&folder)?);
        files.extend(toml_files(&folder.join("faults"))?);
    }
    let stamp = |path: &Path| std::fs::metadata(path).ok().map(|about| FileStamp::of(&about));
    Ok(files.into_iter().map(|path| StampedFile { stamp: stamp(&path), path }).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    const PLACE: &str = "[[place]]\nname = \"NAME\"\nboard = \"microbit\"\nemulator = {}\n";

    struct Project {
        folder: tempfile::TempDir,
        reader: CatalogueReader,
    }

    impl Project {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap(), reader: CatalogueReader::default() }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn write(&self, name: &str, places: &[&str]) {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let places: String = places.iter().map(|place| PLACE.replace("NAME", place)).collect();
            fs::write(path, format!("version = 1\n{places}")).unwrap();
        }

        fn around(&self) -> Surroundings {
            let variables = vec![("HOME", self.path("home").into())];
            Surroundings { cwd: self.folder.path().to_owned(), etc: self.path("etc"), variables }
        }

        fn read(&self) -> Arc<Catalogue> {
            self.reader.read_in(&LabConfig::default(), self.around()).unwrap()
        }

        fn names(&self) -> Vec<String> {
            self.read().rig.places.iter().map(|place| place.name.to_string()).collect()
        }

        /// Takes the files to have been as they are for long: what a later change has to be told by.
        fn settle(&self) {
            let (config, around) = (LabConfig::default(), self.around());
            let files = stamped(&config, &around).unwrap();
            let catalogue = Arc::new(Catalogue::load_in(&config, around.clone()).unwrap());
            *self.reader.kept.lock().unwrap() =
                Some(KeptCatalogue { config, around, files, catalogue });
        }
    }

    #[test]
    fn a_rig_is_read_once_until_a_file_of_it_changes_however_it_does() {
        let project = Project::new();
        project.write("rig.toml", &["a"]);
        project.settle();
        let first = project.read();
        assert!(Arc::ptr_eq(&first, &project.read()), "read again without a change");
        // Of the same length, and as old as before: `touch -r` sets the time of the content back.
        fs::copy(project.path("rig.toml"), project.path("old")).unwrap();
        let times = |from: &str, to: &str| {
            let (from, to) = (project.path(from), project.path(to));
            assert!(Command::new("touch").arg("-r").arg(from).arg(to).status().unwrap().success());
        };
        times("rig.toml", "old");
        project.write("rig.toml", &["b"]);
        times("old", "rig.toml");
        assert_eq!(project.names(), ["b"]);
        project.settle();
        // Another file takes its place.
        project.write("new.toml", &["c"]);
        fs::rename(project.path("new.toml"), project.path("rig.toml")).unwrap();
        assert_eq!(project.names(), ["c"]);
        project.settle();
        project.write("rig.toml.d/more.toml", &["d"]);
        assert_eq!(project.names(), ["c", "d"]);
        project.settle();
        fs::remove_file(project.path("rig.toml.d/more.toml")).unwrap();
        assert_eq!(project.names(), ["c"]);
        project.settle();
        // A board that appears, and one that is changed.
        let board = fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../board-profiles/microbit.toml"
        ));
        let board = board.unwrap().replace("id = \"microbit\"", "id = \"mine\"");
        let at = project.path("board-profiles/mine.toml");
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(&at, &board).unwrap();
        let mine = "mine".parse().unwrap();
        assert!(project.read().profiles.get(&mine).is_some());
        project.settle();
        fs::write(&at, board.replacen("title = \"", "title = \"X", 1)).unwrap();
        assert!(project.read().profiles.get(&mine).unwrap().title.starts_with('X'));
        project.settle();
        fs::remove_file(project.path("rig.toml")).unwrap();
        assert!(project.names().contains(&"microbit".to_owned()), "every board is a place");
    }

    #[test]
    fn a_file_that_has_just_been_written_is_not_kept_and_a_broken_one_is_refused_each_time() {
        let project = Project::new();
        project.write("rig.toml", &["a"]);
        let first = project.read();
        assert!(!Arc::ptr_eq(&first, &project.read()));
        project.settle();
        fs::write(project.path("rig.toml"), "[[place]]\n").unwrap();
        let read = || project.reader.read_in(&LabConfig::default(), project.around());
        assert!(read().is_err() && read().is_err());
        project.write("rig.toml", &["b"]);
        assert_eq!(project.names(), ["b"]);
    }

    #[test]
    fn another_user_or_folder_is_no_reason_to_be_shown_what_was_read_for_others() {
        let project = Project::new();
        project.write("rig.toml", &["a"]);
        project.settle();
        let user = jig_model::lease::RigUser { lease: "l1".parse().ok(), ..Default::default() };
        let config = LabConfig { user: user.clone(), ..LabConfig::default() };
        let seen = project.reader.read_in(&config, project.around()).unwrap();
        assert_eq!(seen.user(), &user);
        let runs = LabConfig { runs: Some("elsewhere".into()), ..LabConfig::default() };
        let seen = project.reader.read_in(&runs, project.around()).unwrap();
        assert_eq!(seen.runs_dir(), project.path("elsewhere"));
    }
}
