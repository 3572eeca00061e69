//! Drafts that the store did not take: one file each, until it does.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::KnowledgeError;
use crate::text::digest_of;
use crate::unit::{Draft, MAX_UNIT, UnitId};

/// Largest file: a unit, its quoting as JSON, and what stands around it.
const MOST: u64 = MAX_UNIT as u64 * 7;

/// Most files that are looked at once.
const FILES: usize = 10_000;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    version: u32,
    sha256: String,
    draft: String,
}

/// A folder of drafts.
#[derive(Debug, Clone)]
pub struct Outbox {
    folder: PathBuf,
}

/// A draft in the outbox.
#[derive(Debug)]
pub struct OutboxItem {
    /// Its file.
    pub path: PathBuf,
    /// The draft; nothing where the file is damaged.
    pub draft: Option<Draft>,
}

impl Outbox {
    /// The outbox in a folder, which is made when it is needed.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Keeps a draft. It is durable when the call returns.
    ///
    /// # Errors
    /// It cannot be written; then nothing is.
    pub fn put(&self, draft: &Draft) -> Result<PathBuf, KnowledgeError> {
        let text = serde_json::to_string(draft).map_err(KnowledgeError::Encode)?;
        self.put_text(&draft.id, text)
    }

    /// Keeps a text that is not of a draft, such as an observation. It is durable when the call returns.
    pub(crate) fn put_text(&self, id: &UnitId, text: String) -> Result<PathBuf, KnowledgeError> {
        let envelope = Envelope { version: 1, sha256: digest_of(&text), draft: text };
        let body = serde_json::to_string(&envelope).map_err(KnowledgeError::Encode)?;
        let path = self.folder.join(format!("{id}.json"));
        let new = self.folder.join(format!("{id}.new"));
        let write = || {
            fs::create_dir_all(&self.folder)?;
            let mut file = File::create(&new)?;
            file.write_all(body.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|error| {
            // What is left of it is of no use.
            let _ = fs::remove_file(&new);
            KnowledgeError::file(&path, error)
        })?;
        Ok(path)
    }

    /// Returns the drafts, in the order of their names.
    ///
    /// # Errors
    /// The folder cannot be read. A damaged file is returned without a draft, and stays.
    pub fn items(&self) -> Result<Vec<OutboxItem>, KnowledgeError> {
        let texts = self.texts()?.into_iter();
        Ok(texts
            .map(|(path, text)| OutboxItem {
                draft: text.and_then(|text| serde_json::from_str(&text).ok()),
                path,
            })
            .collect())
    }

    /// Returns files and their texts, in the order of their names; a damaged file has no text.
    pub(crate) fn texts(&self) -> Result<Vec<(PathBuf, Option<String>)>, KnowledgeError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|error| KnowledgeError::file(&self.folder, error))?,
        };
        let mut paths: Vec<_> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .take(FILES)
            .collect();
        paths.sort();
        Ok(paths.into_iter().map(|path| (path.clone(), read(&path))).collect())
    }

    /// Removes a file whose draft is stored.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(&self, path: &Path) -> Result<(), KnowledgeError> {
        match fs::remove_file(path) {
            // Another process has stored it, too; the store counts a draft once.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(|error| KnowledgeError::file(path, error)),
        }
    }
}

fn read(path: &Path) -> Option<String> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut body = String::new();
    File::open(path).ok()?.take(MOST).read_to_string(&mut body).ok()?;
    let envelope: Envelope = serde_json::from_str(&body).ok()?;
    let whole = envelope.version == 1 && envelope.sha256 == digest_of(&envelope.draft);
    whole.then_some(envelope.draft)
}
