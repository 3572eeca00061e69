//! The stores of a rig that a process keeps open: leases and health.
//!
//! # Design
//! *An order to an open store is a transaction and nothing else.* To open one costs more than most orders: its
//! settings, its tables, its journal, all statements. So all who look at one catalogue share its open stores.
//! Other processes do the same; SQLite keeps them apart.
//!
//! *A store that was replaced is opened anew.* A file that was removed, or put back from a copy, is another one
//! to the system, and an open store would go on with the file that was there before.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jig_rig::database::DatabaseError;
use jig_rig::health::HealthStore;
use jig_rig::leases::LeaseStore;

/// The stores that are open.
#[derive(Debug, Default)]
pub(crate) struct OpenStores {
    leases: KeptStore<LeaseStore>,
    health: KeptStore<HealthStore>,
}

impl OpenStores {
    /// Returns the store of leases; begins it where there is none.
    pub(crate) fn leases(&self, path: &Path) -> Result<Arc<LeaseStore>, DatabaseError> {
        self.leases.get(path, LeaseStore::open)
    }

    /// Returns the store of health; begins it where there is none.
    pub(crate) fn health(&self, path: &Path) -> Result<Arc<HealthStore>, DatabaseError> {
        self.health.get(path, HealthStore::open)
    }
}

/// A store, and the files that it was opened as.
#[derive(Debug)]
struct KeptStore<S>(Mutex<Option<(StoreFiles, Arc<S>)>>);

impl<S> Default for KeptStore<S> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

/// Device and inode of a database, its journal and the index of that; nothing for one that is not there.
#[derive(Debug, PartialEq, Eq)]
struct StoreFiles {
    path: PathBuf,
    files: [Option<(u64, u64)>; 3],
}

impl StoreFiles {
    fn of(path: &Path) -> Self {
        let file = |ending: &str| {
            let mut path = path.as_os_str().to_owned();
            path.push(ending);
            std::fs::metadata(path).ok().map(|about| (about.dev(), about.ino()))
        };
        Self { path: path.to_owned(), files: ["", "-wal", "-shm"].map(file) }
    }
}

impl<S> KeptStore<S> {
    fn get(
        &self,
        path: &Path,
        open: impl FnOnce(&Path) -> Result<S, DatabaseError>,
    ) -> Result<Arc<S>, DatabaseError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let files = StoreFiles::of(path);
        if let Some((of, store)) = &*kept
            && *of == files
        {
            return Ok(Arc::clone(store));
        }
        // Before the other is opened: both would have locks on one file.
        *kept = None;
        let store = Arc::new(open(path)?);
        *kept = Some((StoreFiles::of(path), Arc::clone(&store)));
        Ok(store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_opened_once_until_another_file_takes_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = LeaseStore::path_in(folder.path());
        let stores = OpenStores::default();
        let first = stores.leases(&path).unwrap();
        assert!(Arc::ptr_eq(&first, &stores.leases(&path).unwrap()), "opened again");
        let other = folder.path().join("other");
        std::fs::create_dir(&other).unwrap();
        drop(LeaseStore::open(&LeaseStore::path_in(&other)).unwrap());
        for ending in ["", "-wal", "-shm"] {
            let at = |path: &Path| PathBuf::from(format!("{}{ending}", path.display()));
            std::fs::rename(at(&LeaseStore::path_in(&other)), at(&path)).unwrap();
        }
        let second = stores.leases(&path).unwrap();
        assert!(!Arc::ptr_eq(&first, &second), "the file that was there before");
        for ending in ["", "-wal", "-shm"] {
            std::fs::remove_file(format!("{}{ending}", path.display())).unwrap();
        }
        let third = stores.leases(&path).unwrap();
        assert!(!Arc::ptr_eq(&second, &third) && path.exists());
    }

    #[test]
    fn a_store_that_cannot_be_opened_is_refused_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = HealthStore::path_in(folder.path());
        std::fs::write(&path, "no database, and long enough to be taken for one").unwrap();
        let stores = OpenStores::default();
        assert!(stores.health(&path).is_err() && stores.health(&path).is_err());
        std::fs::remove_file(&path).unwrap();
        assert!(stores.health(&path).is_ok());
    }
}
