//! The model of open knowledge and its vectors: loading, following the store, counting.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Knowledge, locked};
use crate::embedding::{
    ByteVector, EmbedError, EmbedWorker, EmbedderName, LoadEmbedder, MeaningIndex, VectorRow,
    text_hash,
};
use crate::error::KnowledgeError;

/// Units that are embedded between two writes: some seconds of work, and lost with a power cut.
const BATCH: usize = 256;

/// How long the model may take for one unit. It takes 10 to 50 ms on an idle host.
const ONE: Duration = Duration::from_secs(30);

/// How long the model may take to load: some 100 MB are read from the disk.
const LOAD: Duration = Duration::from_secs(60);

/// After as many failures in a row the model is not asked any more.
const FAILURES: usize = 5;

/// The model and the vectors.
pub(super) struct Meaning {
    pub(super) worker: EmbedWorker,
    pub(super) vectors: Arc<Mutex<MeaningIndex>>,
}

/// The embedding model and its vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeaningStats {
    /// Name of the model; nothing while it is being loaded.
    pub model: Option<String>,
    /// Why the model cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Numbers of a vector.
    pub dimension: usize,
    /// Units with a vector.
    pub vectors: usize,
    /// Bytes of the vectors in memory.
    pub bytes: usize,
}

/// What became of the units that had no vector.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbedReport {
    /// Units that have a vector now, or another one.
    pub embedded: u64,
    /// Units whose vector was right.
    pub unchanged: u64,
    /// Units that the model did not embed: words find them.
    pub failed: u64,
    /// What went wrong last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Meaning {
    pub(super) fn start(load: LoadEmbedder, folder: &Path, store: u64) -> std::io::Result<Self> {
        let vectors = Arc::new(Mutex::new(MeaningIndex::default()));
        let (folder, read) = (folder.to_owned(), Arc::clone(&vectors));
        let worker = EmbedWorker::start(load, move |name: &EmbedderName| {
            *locked(&read) = MeaningIndex::open(&folder, store, name)?;
            Ok(())
        })?;
        Ok(Self { worker, vectors })
    }

    pub(super) fn stats(&self) -> MeaningStats {
        let (name, problem) = match self.worker.name() {
            Some(Ok(name)) => (Some(name), None),
            Some(Err(error)) => (None, Some(error.to_string())),
            None => (None, None),
        };
        let vectors = locked(&self.vectors);
        MeaningStats {
            dimension: name.as_ref().map_or(0, |name| name.dimension),
            model: name.map(|name| name.name),
            problem,
            vectors: vectors.rows.len(),
            bytes: vectors.rows.size(),
        }
    }
}

impl Knowledge {
    /// Waits until the embedding model is loaded, if there is one. A process that searches once waits here, so
    /// that loading takes nothing of the time of the search.
    ///
    /// # Errors
    /// It cannot be loaded, or not in time; searches are by words then.
    pub fn wait_for_model(&self, timeout: Duration) -> Result<(), EmbedError> {
        match &self.meaning {
            Some(meaning) => meaning.worker.loaded(timeout).map(drop),
            None => Ok(()),
        }
    }

    /// Embeds the units that have no vector since they were added or edited, if there is a model. Searches go
    /// on meanwhile.
    ///
    /// # Errors
    /// The store cannot be read. A model that fails is no error: the report says so.
    pub fn embed_new(&self) -> Result<Option<EmbedReport>, KnowledgeError> {
        self.embed_missing(&mut |_, _| {})
    }

    /// Embeds the units that changed since they were last looked at for this. No lock is held while the
    /// model works.
    pub(crate) fn embed_missing(
        &self,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<EmbedReport>, KnowledgeError> {
        let Some(meaning) = &self.meaning else { return Ok(None) };
        let mut report = EmbedReport::default();
        let begun = meaning.worker.loaded(LOAD).and_then(|_| {
            let mut vectors = locked(&meaning.vectors);
            vectors.follow()?;
            vectors.seq()
        });
        let mut seq = match begun {
            Ok(seq) => seq,
            Err(error) => {
                report.problem = Some(error.to_string());
                return Ok(Some(report));
            }
        };
        let all = self.store.count_behind(seq)?;
        // Up to here every unit has its vector; what failed is tried again by the next call.
        let (mut whole, mut in_a_row) = (seq, 0);
        while in_a_row < FAILURES {
            let (changed, last) = self.store.changed_behind(seq, BATCH)?;
            let Some(last) = last else { break };
            let mut rows = Vec::new();
            for changed in changed {
                let done = report.embedded + report.unchanged + report.failed;
                progress(done, all);
                let prose = changed.unit.content.prose();
                let (doc, text) = (changed.doc, text_hash(&prose));
                if locked(&meaning.vectors).rows.has(doc, text) {
                    report.unchanged += 1;
                    continue;
                }
                match meaning.worker.embed(&prose, ONE) {
                    Ok(vector) => {
                        rows.push(VectorRow { doc, text, vector: ByteVector::of(&vector) });
                        report.embedded += 1;
                        in_a_row = 0;
                    }
                    Err(error) => {
                        report.problem = Some(error.to_string());
                        report.failed += 1;
                        in_a_row += 1;
                        if in_a_row == FAILURES {
                            break;
                        }
                    }
                }
            }
            if report.failed == 0 {
                whole = last;
            }
            if let Err(error) = locked(&meaning.vectors).write(&rows, whole) {
                report.problem = Some(error.to_string());
                break;
            }
            seq = last;
        }
        progress(report.embedded + report.unchanged + report.failed, all);
        Ok(Some(report))
    }
}
