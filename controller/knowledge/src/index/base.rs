//! The immutable base of the index, and its file.
//!
//! # Format
//! `jigkbix1`, checksum of the rest (u64), length of the rest (u64), then numbers as LEB128: the store's
//! id, the change up to which units are indexed, the units (each doc, length, created, confidence,
//! status, maturity, archived), the terms in order (length and bytes, units, bytes of postings), and
//! the postings: for each term pairs of distance to the unit before, and how often it occurs.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::codec::{NumberReader, checksum, put};
use super::{DocFacts, IndexedUnit};

const MAGIC: &[u8; 8] = b"jigkbix1";
const HEAD: usize = 24;

/// Largest file that is read: 100,000 units take some 20 MB.
const MOST: u64 = 1 << 30;

/// Says why a base cannot be read. It is made anew then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BaseFileError {
    /// The system refused.
    #[error("could not use the index file {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is not a whole index of this store and version.
    #[error("the index file {} is not one of this store, or is damaged", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
    },
}

/// A term's postings.
#[derive(Debug, Clone, Copy)]
struct TermEntry {
    name: (u32, u32),
    units: u32,
    postings: (u32, u32),
}

/// The base.
#[derive(Debug, Default)]
pub(crate) struct BaseIndex {
    bytes: Vec<u8>,
    terms: Vec<TermEntry>,
    pub(super) docs: Vec<DocFacts>,
    /// The change up to which units are indexed.
    pub(crate) seq: u64,
}

impl BaseIndex {
    /// Makes a base of another one without some of its units, and of further units.
    pub(crate) fn merged(
        &self,
        store: u64,
        seq: u64,
        dead: &[bool],
        more: impl IntoIterator<Item = IndexedUnit>,
    ) -> Self {
        let mut rows = Vec::with_capacity(self.docs.len());
        let mut docs = Vec::with_capacity(self.docs.len());
        for (facts, dead) in self.docs.iter().zip(dead) {
            rows.push((!dead).then_some(docs.len() as u32));
            if !dead {
                docs.push(*facts);
            }
        }
        let mut merged: std::collections::BTreeMap<String, (u32, u32, Vec<u8>)> =
            std::collections::BTreeMap::new();
        let mut add = |term: &str, row: u32, times: u32| {
            if !merged.contains_key(term) {
                merged.insert(term.to_owned(), (0, 0, Vec::new()));
            }
            let Some((units, last, bytes)) = merged.get_mut(term) else { return };
            put(bytes, u64::from(row - *last));
            put(bytes, u64::from(times));
            *last = row;
            *units += 1;
        };
        for entry in &self.terms {
            let Some(name) = self.text(entry.name) else { continue };
            self.each_posting(entry, |row, times| {
                if let Some(Some(row)) = rows.get(row as usize) {
                    add(name, *row, times);
                }
            });
        }
        for unit in more {
            let row = docs.len() as u32;
            docs.push(unit.facts);
            unit.terms.iter().for_each(|(term, times)| add(term, row, *times));
        }
        let parts = merged
            .iter()
            .map(|(term, (units, _, bytes))| (term.as_str(), *units, bytes.as_slice()));
        Self::encoded(store, seq, &docs, parts)
    }

    fn encoded<'a>(
        store: u64,
        seq: u64,
        docs: &[DocFacts],
        parts: impl Iterator<Item = (&'a str, u32, &'a [u8])>,
    ) -> Self {
        let mut body = vec![0; HEAD];
        put(&mut body, store);
        put(&mut body, seq);
        put(&mut body, docs.len() as u64);
        for facts in docs {
            let DocFacts { doc, length, created, confidence, status, maturity, archived } = *facts;
            for value in [
                u64::from(doc),
                u64::from(length),
                created.max(0).cast_unsigned(),
                u64::from(confidence),
                u64::from(status),
                u64::from(maturity),
                u64::from(archived),
            ] {
                put(&mut body, value);
            }
        }
        let (mut names, mut lists, mut count) = (Vec::new(), Vec::new(), 0u64);
        for (term, units, bytes) in parts {
            put(&mut names, term.len() as u64);
            names.extend_from_slice(term.as_bytes());
            put(&mut names, u64::from(units));
            put(&mut names, bytes.len() as u64);
            lists.extend_from_slice(bytes);
            count += 1;
        }
        put(&mut body, count);
        body.extend_from_slice(&names);
        body.extend_from_slice(&lists);
        let length = (body.len() - HEAD) as u64;
        let sum = checksum(&body[HEAD..]);
        body[..8].copy_from_slice(MAGIC);
        body[8..16].copy_from_slice(&sum.to_le_bytes());
        body[16..HEAD].copy_from_slice(&length.to_le_bytes());
        // What was encoded here is whole; were it not, the index would be empty and be rebuilt.
        Self::decoded(body, store).unwrap_or_default()
    }

    fn decoded(bytes: Vec<u8>, store: u64) -> Option<Self> {
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let body = bytes.get(HEAD..)?;
        let whole = bytes.get(..8)? == MAGIC
            && word(16)? == body.len() as u64
            && word(8)? == checksum(body)
            && u32::try_from(bytes.len()).is_ok();
        if !whole {
            return None;
        }
        let mut reader = NumberReader(body);
        if reader.number()? != store {
            return None;
        }
        let seq = reader.number()?;
        let count = usize::try_from(reader.number()?).ok()?;
        let mut docs = Vec::with_capacity(count.min(body.len()));
        for _ in 0..count {
            docs.push(DocFacts {
                doc: u32::try_from(reader.number()?).ok()?,
                length: u32::try_from(reader.number()?).ok()?,
                created: i64::try_from(reader.number()?).ok()?,
                confidence: u16::try_from(reader.number()?).ok()?,
                status: u8::try_from(reader.number()?).ok()?,
                maturity: u8::try_from(reader.number()?).ok()?,
                archived: reader.number()? != 0,
            });
        }
        let count = usize::try_from(reader.number()?).ok()?;
        let mut terms = Vec::with_capacity(count.min(body.len()));
        let mut lists = 0u32;
        for _ in 0..count {
            let length = u32::try_from(reader.number()?).ok()?;
            let at = u32::try_from(bytes.len() - reader.0.len()).ok()?;
            reader.0 = reader.0.get(length as usize..)?;
            let units = u32::try_from(reader.number()?).ok()?;
            let size = u32::try_from(reader.number()?).ok()?;
            let end = lists.checked_add(size)?;
            terms.push(TermEntry { name: (at, at + length), units, postings: (lists, end) });
            lists = end;
        }
        if reader.0.len() != lists as usize {
            return None;
        }
        let from = u32::try_from(bytes.len()).ok()? - lists;
        for entry in &mut terms {
            entry.postings = (entry.postings.0 + from, entry.postings.1 + from);
        }
        Some(Self { bytes, terms, docs, seq })
    }

    /// Reads the base of a store from its file.
    pub(crate) fn read(path: &Path, store: u64) -> Result<Self, BaseFileError> {
        let failed = |source| BaseFileError::Io { path: path.to_owned(), source };
        let unusable = || BaseFileError::Unusable { path: path.to_owned() };
        let about = fs::symlink_metadata(path).map_err(failed)?;
        if !about.is_file() || about.len() > MOST {
            return Err(unusable());
        }
        let mut bytes = Vec::with_capacity(about.len() as usize);
        let file = File::open(path).map_err(failed)?;
        file.take(MOST).read_to_end(&mut bytes).map_err(failed)?;
        Self::decoded(bytes, store).ok_or_else(unusable)
    }

    /// Replaces the file of the base.
    pub(crate) fn write(&self, path: &Path) -> Result<(), BaseFileError> {
        let failed = |source| BaseFileError::Io { path: path.to_owned(), source };
        // Several processes may write at once: each has a file of its own, and the last one wins.
        let new = path.with_extension(format!("new-{}", std::process::id()));
        let written = File::create(&new)
            .and_then(|mut file| file.write_all(&self.bytes))
            .and_then(|()| fs::rename(&new, path));
        if written.is_err() {
            // What is left of it is of no use.
            let _ = fs::remove_file(&new);
        }
        written.map_err(failed)
    }

    /// Returns how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
            + self.terms.len() * size_of::<TermEntry>()
            + self.docs.len() * size_of::<DocFacts>()
    }

    fn text(&self, (start, end): (u32, u32)) -> Option<&str> {
        std::str::from_utf8(self.bytes.get(start as usize..end as usize)?).ok()
    }

    fn entry(&self, term: &str) -> Option<&TermEntry> {
        let name = |entry: &TermEntry| &self.bytes[entry.name.0 as usize..entry.name.1 as usize];
        let at = self.terms.binary_search_by(|entry| name(entry).cmp(term.as_bytes())).ok()?;
        self.terms.get(at)
    }

    /// Returns how many units hold a term.
    pub(super) fn units_with(&self, term: &str) -> u32 {
        self.entry(term).map_or(0, |entry| entry.units)
    }

    /// Goes through the units that hold a term, as their row in `docs` and how often.
    pub(super) fn postings(&self, term: &str, each: impl FnMut(u32, u32)) {
        if let Some(entry) = self.entry(term) {
            self.each_posting(entry, each);
        }
    }

    #[inline]
    fn each_posting(&self, entry: &TermEntry, mut each: impl FnMut(u32, u32)) {
        let (start, end) = entry.postings;
        let mut reader =
            NumberReader(self.bytes.get(start as usize..end as usize).unwrap_or_default());
        let mut row = 0u32;
        while let (Some(step), Some(times)) = (reader.number(), reader.number()) {
            row = row.wrapping_add(step as u32);
            if (row as usize) < self.docs.len() {
                each(row, times as u32);
            }
        }
    }
}
