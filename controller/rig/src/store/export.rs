//! One archive of one run.

use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::{RunEntry, RunStore, StoreError, id};

impl RunStore {
    /// Writes a run as a `.tar.gz` whose entries lie below the run's id, sorted by name,
    /// with plain owners, modes and times: the same run makes the same archive.
    ///
    /// Links and other special files are left out. A live run can be exported too; each
    /// of its files is taken as long as it was when its turn came.
    ///
    /// # Errors
    /// Says which run, or what could not be read or written.
    pub fn export<W: Write>(&self, wanted: &str, writer: W) -> Result<W, StoreError> {
        let RunEntry { dir, .. } = self.open(wanted)?;
        let time = id::started(dir.id()).map_or(0, |t| u64::try_from(t.as_second()).unwrap_or(0));
        let mut files = Vec::new();
        collect(dir.path(), &mut files)?;
        files.sort();
        // Errors of the writer are about the archive, not the run.
        let archive = PathBuf::from(format!("{}.tar.gz", dir.id()));
        let fail = |e: io::Error| StoreError::writing(&archive, e);
        let mut tar = Builder::new(GzEncoder::new(writer, Compression::default()));
        for path in files {
            let Some(inside) = dir.relative(&path) else { continue };
            if inside == "lock" {
                continue;
            }
            let file = File::open(&path).map_err(|e| StoreError::reading(&path, e))?;
            let size = file.metadata().map_err(|e| StoreError::reading(&path, e))?.len();
            let mut header = Header::new_gnu();
            header.set_entry_type(EntryType::Regular);
            header.set_mode(0o644);
            header.set_mtime(time);
            header.set_size(size);
            // A log may grow or be cut while it is read; the archive keeps its promise.
            let content = file.chain(io::repeat(0)).take(size);
            tar.append_data(&mut header, format!("{}/{inside}", dir.id()), content)
                .map_err(fail)?;
        }
        tar.into_inner().and_then(GzEncoder::finish).map_err(fail)
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), StoreError> {
    let fail = |e: io::Error| StoreError::reading(folder, e);
    for entry in fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let kind = entry.file_type().map_err(fail)?;
        if kind.is_dir() {
            collect(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}
