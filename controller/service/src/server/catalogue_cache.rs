//! The catalogue that connections share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jig_lab::{Catalogue, CatalogueError, LabConfig};

/// How long the rig file is taken to be as it was read: a caller that reads a file makes hundreds of
/// calls a second.
const FRESH: Duration = Duration::from_secs(1);

/// Boards and places of the rig, read again when they may have changed.
#[derive(Debug)]
pub struct CatalogueCache {
    config: LabConfig,
    read: Mutex<Option<(Instant, Arc<Catalogue>)>>,
}

impl CatalogueCache {
    /// Says where the rig is described.
    pub fn new(config: LabConfig) -> Self {
        Self { config, read: Mutex::new(None) }
    }

    /// Takes what was read of it just now.
    #[must_use]
    pub fn with(self, read: Catalogue) -> Self {
        Self { read: Mutex::new(Some((Instant::now(), Arc::new(read)))), ..self }
    }

    /// Returns where the rig is described.
    pub fn config(&self) -> &LabConfig {
        &self.config
    }

    /// Returns boards and places as they were within the last second. Waits for the disk.
    pub(super) fn read(&self) -> Result<Arc<Catalogue>, CatalogueError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, catalogue)) = &*read
            && at.elapsed() < FRESH
        {
            return Ok(Arc::clone(catalogue));
        }
        // One that is refused is read again by the next call.
        *read = None;
        let catalogue = Arc::new(Catalogue::load(&self.config)?);
        *read = Some((Instant::now(), Arc::clone(&catalogue)));
        Ok(catalogue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_rig_file_is_seen_within_a_second_and_a_broken_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let rig = folder.path().join("rig.toml");
        let write = |text: &str| std::fs::write(&rig, format!("version = 1\n{text}")).unwrap();
        let place = "[[place]]\nname = \"one\"\nboard = \"microbit\"\nemulator = {}\n";
        write(place);
        let config = LabConfig { rig: Some(rig.clone()), ..LabConfig::default() };
        let cache = CatalogueCache::new(config.clone()).with(Catalogue::load(&config).unwrap());
        let age = || {
            let mut read = cache.read.lock().unwrap();
            if let Some((at, _)) = &mut *read {
                *at = at.checked_sub(FRESH).unwrap();
            }
        };
        let first = cache.read().unwrap();
        assert!(Arc::ptr_eq(&first, &cache.read().unwrap()));
        write(&place.replace("one", "two"));
        age();
        let second = cache.read().unwrap();
        assert_eq!(second.rig.places[0].name.as_str(), "two");
        write("[[place]]\n");
        age();
        assert!(cache.read().is_err() && cache.read().is_err());
        write(place);
        assert_eq!(cache.read().unwrap().rig.places[0].name.as_str(), "one");
    }
}
