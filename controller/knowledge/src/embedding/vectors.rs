//! The vectors of a model: in memory, and in their file.

use std::path::Path;

use super::file::VectorFile;
pub(crate) use super::file::VectorRow;
use super::rows::VectorRows;
use super::{EmbedError, EmbedderName};

/// Vectors in memory and the file that they come from. Empty until the model is loaded.
#[derive(Debug, Default)]
pub(crate) struct MeaningIndex {
    file: Option<VectorFile>,
    pub(crate) rows: VectorRows,
}

impl MeaningIndex {
    /// Reads the vectors of a model and a store.
    pub(crate) fn open(
        folder: &Path,
        store: u64,
        model: &EmbedderName,
    ) -> Result<Self, EmbedError> {
        let mut file = VectorFile::open(folder, store, model)?;
        let mut rows = VectorRows::new(model.dimension);
        file.follow(&mut rows)?;
        Ok(Self { file: Some(file), rows })
    }

    /// Adds what this and other processes have written.
    pub(crate) fn follow(&mut self) -> Result<(), EmbedError> {
        match &mut self.file {
            Some(file) => file.follow(&mut self.rows),
            None => Ok(()),
        }
    }

    /// Returns the change of the store up to which units have vectors.
    pub(crate) fn seq(&self) -> Result<u64, EmbedError> {
        self.file.as_ref().map_or(Ok(0), VectorFile::seq)
    }

    /// Writes vectors, and that each unit up to a change has one.
    pub(crate) fn write(&mut self, rows: &[VectorRow], seq: u64) -> Result<(), EmbedError> {
        if let Some(file) = &mut self.file {
            file.write(rows, seq)?;
        }
        self.follow()
    }
}
