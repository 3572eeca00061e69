//! Files of callers, by their content: an image is sent once.
//!
//! ```text
//! files/<sha256>/<name>      a whole file; its bytes have been checked
//! files/.part-<n>-<sha256>   one that is being sent
//! ```

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use jig_model::Fault;
use jig_model::image::hex;
use sha2::{Digest as _, Sha256};

use crate::protocol::{MOST_CHUNK, OfferFile, OfferedFile};

/// Largest file: as much as an image may have.
const MOST_SIZE: u64 = 1 << 30;

/// How long a file is kept that no caller offers again.
const KEPT: Duration = Duration::from_secs(7 * 86_400);

/// Most files that one connection sends at a time.
const MOST_UPLOADS: usize = 16;

/// Longest name that is kept.
const MOST_NAME: usize = 100;

/// Says why a file was not taken.
#[derive(Debug, thiserror::Error)]
pub enum FileStoreError {
    /// The digest is none.
    #[error("{0:?} is no SHA-256: 64 hexadecimal digits in small letters")]
    Digest(String),
    /// It is too large.
    #[error("a file of {size} bytes; {MOST_SIZE} at most")]
    TooLarge {
        /// Its length in bytes.
        size: u64,
    },
    /// Too many files are being sent.
    #[error("more than {MOST_UPLOADS} files are being sent at a time")]
    TooMany,
    /// It was not offered.
    #[error("file {0} was not offered on this connection")]
    NotOffered(String),
    /// The bytes do not follow the last ones.
    #[error("bytes at {offset} where those at {expected} are expected")]
    Gap {
        /// Where they begin.
        offset: u64,
        /// Where they have to.
        expected: u64,
    },
    /// There are too many of them.
    #[error("more bytes than were offered, or more than {MOST_CHUNK} at once")]
    TooMuch,
    /// Its content has another digest.
    #[error("the bytes that came have the SHA-256 {found}")]
    Changed {
        /// Their digest.
        found: String,
    },
    /// It cannot be written.
    #[error("write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why, in the system's words.
        source: io::Error,
    },
}

impl FileStoreError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Write { .. } => Fault::Lab,
            Self::Digest(_)
            | Self::TooLarge { .. }
            | Self::TooMany
            | Self::NotOffered(_)
            | Self::Gap { .. }
            | Self::TooMuch
            | Self::Changed { .. } => Fault::Usage,
        }
    }

    fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source }
    }
}

/// The folder of callers' files.
#[derive(Debug, Clone)]
pub struct FileStore {
    root: PathBuf,
}

/// Files that a connection is sending. One that is not whole when it is dropped is removed.
#[derive(Debug, Default)]
pub(super) struct Uploads(HashMap<String, Upload>);

#[derive(Debug)]
struct Upload {
    part: PathBuf,
    whole: PathBuf,
    file: File,
    size: u64,
    have: u64,
    digest: Sha256,
}

impl FileStore {
    /// Names the folder; it is made with the first file.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Tells whether a path is one of its whole files.
    pub fn has(&self, path: &Path) -> bool {
        let Ok(inner) = path.strip_prefix(&self.root) else { return false };
        let parts: Vec<_> = inner.iter().filter_map(|part| part.to_str()).collect();
        match parts[..] {
            [digest, name] => is_digest(digest) && safe_name(name) == name,
            _ => false,
        }
    }

    /// Takes in what a caller offers, and says what of it is there.
    pub(super) fn offer(
        &self,
        uploads: &mut Uploads,
        offer: &OfferFile,
    ) -> Result<OfferedFile, FileStoreError> {
        let OfferFile { sha256, size, name } = offer;
        if !is_digest(sha256) {
            return Err(FileStoreError::Digest(sha256.chars().take(MOST_NAME).collect()));
        }
        if *size > MOST_SIZE {
            return Err(FileStoreError::TooLarge { size: *size });
        }
        let folder = self.root.join(sha256);
        let whole = folder.join(safe_name(name));
        let path = whole.display().to_string();
        if let Some(have) = present(&folder, &whole, *size)? {
            return Ok(OfferedFile { path, have });
        }
        if uploads.0.len() >= MOST_UPLOADS {
            return Err(FileStoreError::TooMany);
        }
        self.remove_old();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.root);
        made.map_err(|error| FileStoreError::write(&self.root, error))?;
        let part = self.root.join(format!(".part-{}-{sha256}", next_number()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part);
        let file = file.map_err(|error| FileStoreError::write(&part, error))?;
        let digest = Sha256::new();
        let upload = Upload { part, whole, file, size: *size, have: 0, digest };
        uploads.0.insert(sha256.clone(), upload);
        if *size == 0 {
            self.put(uploads, sha256, 0, &[])?;
        }
        Ok(OfferedFile { path, have: 0 })
    }

    /// Takes in bytes; with the last ones the file is checked and there.
    pub(super) fn put(
        &self,
        uploads: &mut Uploads,
        sha256: &str,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), FileStoreError> {
        let Some(upload) = uploads.0.get_mut(sha256) else {
            return Err(FileStoreError::NotOffered(sha256.chars().take(MOST_NAME).collect()));
        };
        if offset != upload.have {
            return Err(FileStoreError::Gap { offset, expected: upload.have });
        }
        let have = offset.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if have > upload.size || bytes.len() > MOST_CHUNK {
            return Err(FileStoreError::TooMuch);
        }
        let written = upload.file.write_all(bytes);
        written.map_err(|error| FileStoreError::write(&upload.part, error))?;
        upload.digest.update(bytes);
        upload.have = have;
        if have < upload.size {
            return Ok(());
        }
        let Some(upload) = uploads.0.remove(sha256) else { return Ok(()) };
        upload.finish(sha256)
    }

    fn remove_old(&self) {
        let Ok(entries) = fs::read_dir(&self.root) else { return };
        for entry in entries.filter_map(Result::ok) {
            let changed = entry.metadata().and_then(|about| about.modified());
            if changed.is_ok_and(|at| at.elapsed().is_ok_and(|since| since > KEPT)) {
                // A folder of a whole file, or what a killed process has left.
                let _ = fs::remove_dir_all(entry.path());
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Upload {
    fn finish(self, sha256: &str) -> Result<(), FileStoreError> {
        let found = hex(&self.digest.clone().finalize());
        if found != sha256 {
            return Err(FileStoreError::Changed { found });
        }
        let whole = &self.whole;
        let folder = whole.parent().unwrap_or(whole);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| FileStoreError::write(folder, error))?;
        let moved = fs::rename(&self.part, whole);
        moved.map_err(|error| FileStoreError::write(whole, error))
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // A whole file has another name by now.
        let _ = fs::remove_file(&self.part);
    }
}

/// Tells how much of a file is there: all, under this name or another one. Notes that it was used.
fn present(folder: &Path, whole: &Path, size: u64) -> Result<Option<u64>, FileStoreError> {
    let is_whole = |path: &Path| fs::metadata(path).is_ok_and(|about| about.len() == size);
    if !is_whole(whole) {
        let mut others = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let Some(other) = others.find(|entry| is_whole(&entry.path())) else { return Ok(None) };
        match fs::hard_link(other.path(), whole) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(FileStoreError::write(whole, error)),
        }
    }
    if let Ok(folder) = File::open(folder) {
        let _ = folder.set_modified(SystemTime::now());
    }
    Ok(Some(size))
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Makes one harmless component of a path: other characters become `_`.
fn safe_name(name: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    let safe = name.chars().take(MOST_NAME).map(|c| if keep(c) { c } else { '_' });
    let safe: String = safe.collect();
    match safe.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
        true => safe,
        false => format!("_{safe}").chars().take(MOST_NAME).collect(),
    }
}

/// Returns a number that no other upload of this host has at this moment.
fn next_number() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sent(bytes: &[u8]) -> (tempfile::TempDir, FileStore, Result<OfferedFile, FileStoreError>) {
        let folder = tempfile::tempdir().unwrap();
        let files = FileStore::new(folder.path().join("files"));
        let mut uploads = Uploads::default();
        let sha256 = hex(&Sha256::digest(bytes));
        let size = u64::try_from(bytes.len()).unwrap();
        let offer = OfferFile { sha256: sha256.clone(), size, name: "../app.elf".to_owned() };
        let sent = files.offer(&mut uploads, &offer).and_then(|offered| {
            let (first, rest) = bytes.split_at(bytes.len() / 2);
            if !bytes.is_empty() {
                files.put(&mut uploads, &sha256, 0, first)?;
                files.put(&mut uploads, &sha256, first.len() as u64, rest)?;
            }
            files.offer(&mut uploads, &offer).map(|again| {
                assert_eq!(again.have, size);
                offered
            })
        });
        (folder, files, sent)
    }

    #[test]
    fn a_file_is_sent_once_and_checked() {
        for bytes in [&b"firmware"[..], b""] {
            let (_folder, files, sent) = sent(bytes);
            let path = PathBuf::from(sent.unwrap().path);
            assert_eq!(fs::read(&path).unwrap(), bytes);
            assert!(files.has(&path), "{}", path.display());
            assert_eq!(path.file_name().unwrap(), "_.._app.elf");
        }
    }

    #[test]
    fn other_bytes_than_those_offered_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (files, mut uploads) = (FileStore::new(folder.path().to_owned()), Uploads::default());
        let sha256 = hex(&Sha256::digest(b"right"));
        let offer = OfferFile { sha256: sha256.clone(), size: 5, name: "a".to_owned() };
        let mut put = |at, bytes: &[u8]| {
            files.offer(&mut uploads, &offer).unwrap();
            files.put(&mut uploads, &sha256, at, bytes)
        };
        assert!(matches!(put(1, b"right"), Err(FileStoreError::Gap { .. })));
        assert!(matches!(put(0, b"right and more"), Err(FileStoreError::TooMuch)));
        assert!(matches!(put(0, b"wrong"), Err(FileStoreError::Changed { .. })));
        put(0, b"right").unwrap();
        drop(uploads);
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        let offer = OfferFile { sha256: "../..".to_owned(), size: 1, name: "a".to_owned() };
        let refused = files.offer(&mut Uploads::default(), &offer);
        assert!(matches!(refused, Err(FileStoreError::Digest(_))));
    }

    proptest! {
        #[test]
        fn a_name_is_one_component(name in ".*") {
            let safe = safe_name(&name);
            prop_assert!(!safe.is_empty() && safe.len() <= MOST_NAME, "{safe}");
            prop_assert!(!safe.contains('/') && !safe.starts_with('.'), "{safe}");
            prop_assert_eq!(safe_name(&safe), safe);
        }
    }
}
