//! Learning and looking up by itself: what the rig calls behind its runs.
//!
//! Owns no index: it opens the store alone, so that a look costs no more than some statements.
//! Refuses to be in the way: what cannot be learnt now is kept in the outbox, and learnt later.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jig_model::redact::Redactor;
use serde::{Deserialize, Serialize};

use crate::error::KnowledgeError;
use crate::knowledge::{Knowledge, KnowledgeOptions};
use crate::observed::LearningInput;
use crate::retrieve::{KnowledgeCaller, KnowledgeHit, RetrievalContext};
use crate::seen::SeenBefore;
use crate::store::{CaptureRules, KnowledgeStore, Learnt, Outbox};
use crate::unit::{StandingEvent, UnitId};

/// A unit that was not read for this long is archived.
const UNREAD: jiff::SignedDuration = jiff::SignedDuration::from_hours(365 * 24);

/// Units that are found for a failure.
const SIMILAR: usize = 5;

/// A failure to which like ones are looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimilarAsked {
    /// Its signature, bounded.
    pub signature: String,
    /// What shows it.
    pub text: String,
    /// Files that are suspected.
    pub files: Vec<String>,
    /// The kind of board.
    pub board: Option<String>,
}

/// What became of an observation. It is durable in both cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kept", rename_all = "snake_case")]
pub enum Observed {
    /// It was learnt from.
    Learnt(Learnt),
    /// The store failed; the outbox has it.
    Queued {
        /// Its file.
        file: PathBuf,
        /// Why the store did not take it.
        why: String,
    },
}

/// Learns from observations, in a folder of knowledge.
#[derive(Debug, Clone)]
pub struct Learner {
    folder: PathBuf,
    rules: CaptureRules,
    redactor: Redactor,
}

impl Learner {
    /// Names the folder, the rules, and what removes secrets. Touches no file.
    pub fn new(folder: &Path, rules: CaptureRules, redactor: Redactor) -> Self {
        Self { folder: folder.to_owned(), rules, redactor }
    }

    fn store(&self) -> Result<KnowledgeStore, KnowledgeError> {
        KnowledgeStore::open(&self.folder.join("knowledge.db"))
    }

    fn outbox(&self) -> Outbox {
        Outbox::new(&self.folder.join("outbox").join("runs"))
    }

    /// Learns from an observation, without secrets and once for each run. Where the store fails, the
    /// observation is kept in the outbox.
    ///
    /// # Errors
    /// Neither the store nor the outbox took it.
    pub fn observe(&self, observation: LearningInput) -> Result<Observed, KnowledgeError> {
        let observation = observation.cleaned(&self.redactor);
        match self.store().and_then(|store| store.learn(&observation, &self.rules)) {
            Ok(learnt) => Ok(Observed::Learnt(learnt)),
            Err(error) if error.is_of_the_store() => match self.queued(&observation) {
                Ok(file) => Ok(Observed::Queued { file, why: jig_model::chain(&error) }),
                Err(outbox) => {
                    Err(KnowledgeError::Lost { store: Box::new(error), outbox: Box::new(outbox) })
                }
            },
            Err(error) => Err(error),
        }
    }

    /// Keeps an observation in the outbox, without secrets.
    ///
    /// # Errors
    /// The outbox cannot be written.
    pub fn queue(&self, observation: LearningInput) -> Result<PathBuf, KnowledgeError> {
        self.queued(&observation.cleaned(&self.redactor))
    }

    fn queued(&self, observation: &LearningInput) -> Result<PathBuf, KnowledgeError> {
        let text = serde_json::to_string(observation).map_err(KnowledgeError::Encode)?;
        self.outbox().put_text(&UnitId::derived(&["observed", observation.run()]), text)
    }

    /// Learns from what waits in the outbox. Returns how much that was, and the files that are damaged.
    ///
    /// # Errors
    /// The store or the folder cannot be used; what is not learnt stays.
    pub fn catch_up(&self) -> Result<(usize, Vec<PathBuf>), KnowledgeError> {
        let outbox = self.outbox();
        let waiting = outbox.texts()?;
        if waiting.is_empty() {
            return Ok((0, Vec::new()));
        }
        let store = self.store()?;
        let (mut observed, mut damaged) = (Vec::new(), Vec::new());
        for (path, text) in waiting {
            match text.and_then(|text| serde_json::from_str::<LearningInput>(&text).ok()) {
                Some(observation) => observed.push((path, observation)),
                None => damaged.push(path),
            }
        }
        // A lesson is what changed from one run to the next.
        observed.sort_by_key(|(_, observation)| observation.at());
        let learnt = observed.len();
        for (path, observation) in observed {
            store.learn(&observation.cleaned(&self.redactor), &self.rules)?;
            outbox.remove(&path)?;
        }
        Ok((learnt, damaged))
    }

    /// Returns which of some runs were not learnt from. Makes no store where there is none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn unknown_of(&self, runs: Vec<String>) -> Result<Vec<String>, KnowledgeError> {
        if !self.folder.join("knowledge.db").exists() {
            return Ok(runs);
        }
        self.store()?.unknown_of(&runs)
    }

    /// Tells what is known of a signature, but for one run. Makes no store where there is none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn seen_before(
        &self,
        signature: &str,
        without: &str,
    ) -> Result<Option<SeenBefore>, KnowledgeError> {
        if !self.folder.join("knowledge.db").exists() {
            return Ok(None);
        }
        self.store()?.seen_before(signature, without)
    }

    /// Archives what was not read for a year, once a day. Returns how many.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn archive_unread(&self, now: Timestamp) -> Result<usize, KnowledgeError> {
        if !self.folder.join("knowledge.db").exists() {
            return Ok(0);
        }
        let store = self.store()?;
        if !store.is_due_today("archive-unread", now)? {
            return Ok(0);
        }
        let Ok(since) = now.checked_sub(UNREAD) else { return Ok(0) };
        let mut archived = 0;
        for id in store.unread_since(since)? {
            match store.tell(&id, StandingEvent::Unread, "jig", now) {
                Ok(_) => archived += 1,
                // Another process was faster.
                Err(KnowledgeError::Standing { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(archived)
    }

    /// Finds units like a failure, the best first: those of its signature, then by words and files. Makes no
    /// store where there is none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn similar(&self, asked: SimilarAsked) -> Result<Vec<KnowledgeHit>, KnowledgeError> {
        if !self.folder.join("knowledge.db").exists() {
            return Ok(Vec::new());
        }
        let options =
            KnowledgeOptions { redactor: self.redactor.clone(), ..KnowledgeOptions::default() };
        let knowledge = Knowledge::open(&self.folder, options)?;
        let SimilarAsked { signature, text, files, board } = asked;
        // The words of the failure, without what differs from run to run.
        let question = format!("{text}\n{signature}");
        let context = RetrievalContext {
            signature: Some(signature),
            files,
            board,
            max_results: SIMILAR,
            caller: KnowledgeCaller::Code,
            ..RetrievalContext::new(question)
        };
        let answer = knowledge.search(&context)?;
        knowledge.note_shown(&answer);
        Ok(answer.hits)
    }

    /// Returns the folder of knowledge.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Knowledge {
    /// Returns what learns into the folder of this knowledge.
    pub fn learner(&self, rules: CaptureRules) -> Learner {
        Learner::new(self.folder(), rules, self.redactor().clone())
    }
}
