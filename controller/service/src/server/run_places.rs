//! Where the runs are that a connection asks for: found once.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use jig_model::RunId;
use jig_rig::store::{RunDir, RunStore, StoreError, lost_runs};

/// Most runs that are remembered; a caller asks for one or two.
const MOST: usize = 64;

/// The folders of runs that were found.
#[derive(Debug, Default)]
pub(super) struct RunPlaces(Mutex<HashMap<RunId, RunDir>>);

impl RunPlaces {
    /// Finds a run, also where it was put aside because its own folder was lost.
    pub(super) fn find(&self, runs: &Path, run: &RunId) -> Result<RunDir, StoreError> {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(dir) = found.get(run).filter(|dir| dir.path().is_dir()) {
            return Ok(dir.clone());
        }
        let entry = RunStore::new(runs)
            .open(run.as_str())
            .or_else(|error| RunStore::new(lost_runs()).open(run.as_str()).map_err(|_| error))?;
        // Another run may have the name `last`, or the same beginning, a moment later.
        if entry.dir.id() == run {
            if found.len() >= MOST {
                found.clear();
            }
            found.insert(run.clone(), entry.dir.clone());
        }
        Ok(entry.dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_remembered_until_the_run_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let (store, places) = (RunStore::new(folder.path()), RunPlaces::default());
        let id: RunId = "20261121-221530-7f3a".parse().unwrap();
        assert!(places.find(folder.path(), &id).is_err());
        let copy = store.begin_copy(&id, b"{}").unwrap();
        let found = places.find(folder.path(), &id).unwrap();
        assert_eq!(&found, copy.dir());
        // Another folder of runs is not looked into any more.
        assert_eq!(places.find(Path::new("/nonexistent"), &id).unwrap(), found);
        assert!(found.is_live());
        let dir = copy.finish().unwrap();
        assert!(!found.is_live());
        std::fs::remove_dir_all(dir.path()).unwrap();
        assert!(places.find(folder.path(), &id).is_err());
    }
}
