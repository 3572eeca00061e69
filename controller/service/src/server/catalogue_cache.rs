//! The catalogue that connections share.

use std::sync::Arc;

use jig_lab::{Catalogue, CatalogueError, CatalogueReader, LabConfig};

/// Boards and places of the rig, read again when a file of them has changed: a caller that reads a file makes
/// hundreds of calls a second.
#[derive(Debug, Default)]
pub struct CatalogueCache {
    config: LabConfig,
    reader: Arc<CatalogueReader>,
}

impl CatalogueCache {
    /// Says where the rig is described.
    pub fn new(config: LabConfig) -> Self {
        Self::reading_by(config, Arc::default())
    }

    /// Does so with what keeps what this process has read of it already.
    pub fn reading_by(config: LabConfig, reader: Arc<CatalogueReader>) -> Self {
        Self { config, reader }
    }

    /// Returns where the rig is described.
    pub fn config(&self) -> &LabConfig {
        &self.config
    }

    /// Returns what keeps what was read of it.
    pub(super) fn reader(&self) -> &CatalogueReader {
        &self.reader
    }

    /// Returns boards and places as their files say now. Waits for the disk.
    pub(super) fn read(&self) -> Result<Arc<Catalogue>, CatalogueError> {
        self.reader.read(&self.config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_rig_file_is_seen_by_the_next_call_and_a_broken_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let rig = folder.path().join("rig.toml");
        let write = |text: &str| std::fs::write(&rig, format!("version = 1\n{text}")).unwrap();
        let place = "[[place]]\nname = \"one\"\nboard = \"microbit\"\nemulator = {}\n";
        write(place);
        let config = LabConfig { rig: Some(rig.clone()), ..LabConfig::default() };
        let cache = CatalogueCache::new(config);
        assert_eq!(cache.read().unwrap().rig.places[0].name.as_str(), "one");
        write(&place.replace("one", "two"));
        assert_eq!(cache.read().unwrap().rig.places[0].name.as_str(), "two");
        write("[[place]]\n");
        assert!(cache.read().is_err() && cache.read().is_err());
        write(place);
        assert_eq!(cache.read().unwrap().rig.places[0].name.as_str(), "one");
    }
}
