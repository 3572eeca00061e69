//! Files that are either the old or the new one, never half of one.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::StoreError;

/// Says what a replaced file must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// The death of the process. The page cache survives that, so nothing is flushed.
    Kill,
    /// A power cut: file and folder are flushed, which costs about 10 ms on a common disk.
    PowerCut,
}

/// Returns the name a new content is written under before it takes its place.
pub(super) fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().map(|n| n.to_string_lossy()).unwrap_or_default();
    path.with_file_name(format!(".{name}.new"))
}

/// Replaces a file's content in one step. Only the holder of the run's lock may call it,
/// so the temporary name needs no disambiguation.
pub(super) fn replace(
    path: &Path,
    content: &[u8],
    durability: Durability,
) -> Result<(), StoreError> {
    let fresh = temporary(path);
    let write = || -> io::Result<()> {
        let mut file = File::create(&fresh)?;
        file.write_all(content)?;
        if durability == Durability::PowerCut {
            file.sync_all()?;
        }
        fs::rename(&fresh, path)?;
        if durability == Durability::PowerCut
            && let Some(folder) = path.parent()
        {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    };
    write().map_err(|source| {
        // The old content is still in place; the remains would only hold space.
        let _ = fs::remove_file(&fresh);
        StoreError::writing(path, source)
    })
}

/// Reads a file of which no sane instance is larger than `limit`.
pub(super) fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, StoreError> {
    use std::io::Read as _;
    let file = File::open(path).map_err(|e| StoreError::reading(path, e))?;
    let mut content = Vec::new();
    file.take(limit.saturating_add(1))
        .read_to_end(&mut content)
        .map_err(|e| StoreError::reading(path, e))?;
    if content.len() as u64 > limit {
        return Err(StoreError::damaged(path, format!("it is larger than {limit} bytes")));
    }
    Ok(content)
}
