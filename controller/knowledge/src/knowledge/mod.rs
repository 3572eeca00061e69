//! Knowledge of one folder: store, outbox, index, weights, and the calls that use them.
//!
//! # Files
//! | file | contents | derived |
//! |---|---|---|
//! | `knowledge.db` | the store of record | no |
//! | `outbox/` | drafts that the store did not take | no |
//! | `weights.json` | weights of the reranker, if they were learnt or written | no |
//! | `synonyms.toml` | words of this lab that mean the same, in place of the built-in ones | no |
//! | `index` | the inverted index | yes: rebuilt if it is missing or damaged |
//! | `vectors-*.db` | the vectors of one embedding model | yes: computed anew by [`Knowledge::reindex`] |

mod capture;
mod learn;
mod meaning;
#[cfg(test)]
mod scale_tests;
mod search;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jig_model::redact::Redactor;
use serde::{Deserialize, Serialize};

pub use capture::{Captured, OutboxReport};
pub use meaning::{EmbedReport, MeaningStats};

use crate::clock::{HostClock, KnowledgeClock};
use crate::embedding::LoadEmbedder;
use crate::error::KnowledgeError;
use crate::index::{BaseIndex, LexicalIndex};
use crate::retrieve::{AnswerCache, RerankWeights, indexed};
use crate::store::{KnowledgeStore, Outbox, StoreCounts};
use crate::text::Synonyms;

/// Units that are read from the store at once.
const BATCH: usize = 512;

/// Units beside the base for which a new base is made: they take some 20 ms of a first search.
const TAIL: usize = 512;

/// Largest file of synonyms.
const SYNONYMS: u64 = 1 << 20;

/// What knowledge is opened with.
#[derive(Clone)]
pub struct KnowledgeOptions {
    /// Removes secrets from whatever is stored.
    pub redactor: Redactor,
    /// Tells the time.
    pub clock: Arc<dyn KnowledgeClock>,
    /// Loads the embedding model, where there is one.
    pub embedder: Option<LoadEmbedder>,
}

impl Default for KnowledgeOptions {
    fn default() -> Self {
        let clock = Arc::new(HostClock::default());
        Self { redactor: Redactor::default(), clock, embedder: None }
    }
}

impl std::fmt::Debug for KnowledgeOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnowledgeOptions").finish_non_exhaustive()
    }
}

/// The index and how far it has followed the store.
#[derive(Debug, Default)]
pub(crate) struct FollowedIndex {
    pub(crate) lexical: LexicalIndex,
    pub(crate) seq: u64,
    /// Whether the file of the base is missing or older than the base should be.
    is_stale: bool,
}

/// Knowledge of one folder. Every call may wait for the disk and for other processes.
pub struct Knowledge {
    folder: PathBuf,
    store: KnowledgeStore,
    outbox: Outbox,
    options: KnowledgeOptions,
    synonyms: Synonyms,
    weights: Mutex<RerankWeights>,
    index: Mutex<FollowedIndex>,
    cache: Mutex<AnswerCache>,
    meaning: Option<meaning::Meaning>,
    /// The files as they were when it was opened.
    marks: [FileMark; 3],
}

/// Inode of a file and, where its content is read once, the time of its last change; nothing if it is
/// missing.
type FileMark = Option<(u64, i64, i64)>;

impl std::fmt::Debug for Knowledge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Knowledge").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// How much knowledge there is, and what it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnowledgeStats {
    /// The store.
    pub store: StoreCounts,
    /// Drafts in the outbox.
    pub outbox: usize,
    /// Units in the index.
    pub indexed: u32,
    /// Units of the index that are not in its file.
    pub tail: usize,
    /// Bytes of the index in memory.
    pub index_bytes: usize,
    /// The embedding model and its vectors, if there is one.
    pub meaning: Option<MeaningStats>,
}

/// What [`Knowledge::reindex`] has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReindexReport {
    /// Units that are archived now, because they were not read for a year.
    pub archived: usize,
    /// Units in the index.
    pub indexed: u32,
    /// What became of the vectors; nothing without a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedded: Option<EmbedReport>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What stands in these locks is derived; a panic elsewhere leaves it usable.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Knowledge {
    /// Returns the folder of knowledge below that of a rig's state.
    pub fn folder_in(state: &Path) -> PathBuf {
        state.join("knowledge")
    }

    /// Returns the outbox of a folder: a capture can be kept there though the store cannot be opened.
    pub fn outbox_of(folder: &Path) -> Outbox {
        Outbox::new(&folder.join("outbox"))
    }

    /// Opens knowledge, and begins it where there is none.
    ///
    /// # Errors
    /// The store, the weights or the synonyms cannot be used.
    pub fn open(folder: &Path, options: KnowledgeOptions) -> Result<Self, KnowledgeError> {
        // First: what changes from here on is noticed.
        let mut marks = marks_of(folder);
        let store = KnowledgeStore::open(&folder.join("knowledge.db"))?;
        let weights = RerankWeights::read(&folder.join("weights.json"))?;
        let synonyms = read_synonyms(&folder.join("synonyms.toml"))?;
        let index = match BaseIndex::read(&folder.join("index"), store.identity()) {
            Ok(base) => {
                let seq = base.seq;
                FollowedIndex { lexical: LexicalIndex::new(base), seq, is_stale: false }
            }
            // Derived: it is rebuilt.
            Err(_) => FollowedIndex { is_stale: true, ..FollowedIndex::default() },
        };
        let load = options.embedder.clone();
        let meaning = load.map(|load| meaning::Meaning::start(load, folder, store.identity()));
        let meaning = meaning.transpose().map_err(|error| KnowledgeError::file(folder, error))?;
        // One that was begun just now.
        marks[0] = marks_of(folder)[0];
        Ok(Self {
            marks,
            folder: folder.to_owned(),
            outbox: Self::outbox_of(folder),
            store,
            options,
            synonyms,
            weights: Mutex::new(weights),
            index: Mutex::new(index),
            cache: Mutex::default(),
            meaning,
        })
    }

    /// Tells whether the folder still has the store, the weights and the synonyms that were opened. Other
    /// changes of the store are followed.
    pub fn is_in_place(&self) -> bool {
        self.marks == marks_of(&self.folder)
    }

    /// Returns the store.
    pub fn store(&self) -> &KnowledgeStore {
        &self.store
    }

    /// Returns what removes secrets.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.options.redactor
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Counts what there is. The index is as far as it happens to be.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn stats(&self) -> Result<KnowledgeStats, KnowledgeError> {
        let store = self.store.counts()?;
        let index = locked(&self.index);
        Ok(KnowledgeStats {
            store,
            outbox: self.outbox.items()?.len(),
            indexed: index.lexical.len(),
            tail: index.lexical.tail_len(),
            index_bytes: index.lexical.size(),
            meaning: self.meaning.as_ref().map(meaning::Meaning::stats),
        })
    }

    /// Lets the index follow the store until it has, or until the time is over. Returns how many
    /// changes are missing.
    fn follow(
        &self,
        index: &mut FollowedIndex,
        over: impl Fn() -> bool,
    ) -> Result<u64, KnowledgeError> {
        let last = self.store.last_change()?;
        while index.seq < last {
            let (changed, until) = self.store.changed_behind(index.seq, BATCH)?;
            // Changes that were overtaken by later ones of the same units have no row of their own.
            index.seq = until.unwrap_or(last);
            changed.iter().for_each(|changed| index.lexical.put(indexed(changed)));
            if until.is_some() && index.seq < last && over() {
                break;
            }
        }
        Ok(last.saturating_sub(index.seq))
    }

    /// Writes the index into its file if that is worth it. A search never waits for this.
    ///
    /// # Errors
    /// The store cannot be read or the file cannot be written; a search works nevertheless.
    pub fn maintain(&self) -> Result<(), KnowledgeError> {
        let mut index = locked(&self.index);
        self.follow(&mut index, || false)?;
        let tail = index.lexical.tail_len();
        let worth = tail >= TAIL && tail >= index.lexical.len() as usize / 16;
        if worth || index.is_stale && tail > 0 {
            self.rewrite(&mut index)?;
        }
        Ok(())
    }

    fn rewrite(&self, index: &mut FollowedIndex) -> Result<(), KnowledgeError> {
        let seq = index.seq;
        let base = std::mem::take(&mut index.lexical).merged(self.store.identity(), seq);
        let written = base.write(&self.folder.join("index"));
        *index =
            FollowedIndex { lexical: LexicalIndex::new(base), seq, is_stale: written.is_err() };
        written.map_err(|error| {
            KnowledgeError::file(
                &self.folder.join("index"),
                io::Error::other(jig_model::chain(&error)),
            )
        })
    }

    /// Checks the store, makes the index again from it, embeds what has no vector, and archives what
    /// was not read for a year. Tells after each unit how many of how many it has looked at for vectors.
    ///
    /// # Errors
    /// The store is damaged or cannot be used, or the index cannot be written. A model that fails is no
    /// error: the report says so.
    pub fn reindex(
        &self,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<ReindexReport, KnowledgeError> {
        self.store.check()?;
        let archived = self.archive_unread()?;
        let indexed = self.rebuild()?;
        let embedded = self.embed_missing(progress)?;
        *locked(&self.cache) = AnswerCache::default();
        Ok(ReindexReport { archived, indexed, embedded })
    }

    /// Makes the index again from the store. Returns how many units it holds.
    pub(crate) fn rebuild(&self) -> Result<u32, KnowledgeError> {
        let mut index = locked(&self.index);
        *index = FollowedIndex::default();
        self.follow(&mut index, || false)?;
        self.rewrite(&mut index)?;
        Ok(index.lexical.len())
    }
}

fn marks_of(folder: &Path) -> [FileMark; 3] {
    let about = |name: &str| fs::metadata(folder.join(name)).ok();
    let read = |name| about(name).map(|about| (about.ino(), about.mtime(), about.mtime_nsec()));
    [
        about("knowledge.db").map(|about| (about.ino(), 0, 0)),
        read("weights.json"),
        read("synonyms.toml"),
    ]
}

fn read_synonyms(path: &Path) -> Result<Synonyms, KnowledgeError> {
    let failed = |source| KnowledgeError::Synonyms { path: path.to_owned(), source };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Synonyms::built_in().map_err(failed)
        }
        Err(error) => Err(KnowledgeError::file(path, error)),
        Ok(about) if !about.is_file() || about.len() > SYNONYMS => {
            let words = "it is no file of up to 1 MiB".to_owned();
            Err(failed(crate::text::SynonymError::Unreadable(words)))
        }
        Ok(_) => {
            let text = fs::read_to_string(path).map_err(|e| KnowledgeError::file(path, e))?;
            Synonyms::read(&text).map_err(failed)
        }
    }
}
