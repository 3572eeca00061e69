//! Capture and changes: what is stored, and what is kept until it can be.

use std::path::{Path, PathBuf};

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::{Knowledge, KnowledgeOptions};
use crate::error::KnowledgeError;
use crate::store::{Inserted, Outbox};
use crate::unit::{
    Draft, KnowledgeUnit, Standing, StandingEvent, UnitContent, UnitId, UnitMetadata,
};

/// A unit that was not read for this long is archived.
const UNREAD: SignedDuration = SignedDuration::from_hours(365 * 24);

/// What became of a capture. It is durable in both cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kept", rename_all = "snake_case")]
pub enum Captured {
    /// The store has it.
    Stored(Inserted),
    /// The store failed; the outbox has it.
    Queued {
        /// Its file.
        file: PathBuf,
        /// Why the store did not take it.
        why: String,
    },
}

/// What became of the outbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxReport {
    /// Drafts that are stored now.
    pub stored: usize,
    /// Damaged files, which stay where they are.
    pub damaged: Vec<PathBuf>,
}

impl Knowledge {
    /// Captures a draft, without secrets. Where the store fails, the draft is kept in the outbox.
    ///
    /// # Errors
    /// The draft cannot be a unit, or neither store nor outbox took it.
    pub fn capture(&self, draft: Draft) -> Result<Captured, KnowledgeError> {
        let draft = draft.cleaned(&self.options.redactor)?;
        match self.store.insert(&draft, Standing::NEW, self.options.clock.now()) {
            Ok(inserted) => Ok(Captured::Stored(inserted)),
            Err(error) if error.is_of_the_store() => queued(&self.outbox, &draft, error),
            Err(error) => Err(error),
        }
    }

    /// Captures a draft in a folder whose store may be unusable: then the draft is kept in the outbox.
    ///
    /// # Errors
    /// See [`Self::capture`].
    pub fn capture_in(
        folder: &Path,
        options: KnowledgeOptions,
        draft: Draft,
    ) -> Result<Captured, KnowledgeError> {
        let redactor = options.redactor.clone();
        match Self::open(folder, options) {
            Ok(knowledge) => knowledge.capture(draft),
            Err(error) if error.is_of_the_store() => {
                queued(&Self::outbox_of(folder), &draft.cleaned(&redactor)?, error)
            }
            Err(error) => Err(error),
        }
    }

    /// Stores a unit of another lab, cleaned like a capture.
    ///
    /// # Errors
    /// It cannot be a unit, or the store cannot be written.
    pub(crate) fn store_foreign(
        &self,
        draft: Draft,
        standing: Standing,
    ) -> Result<Inserted, KnowledgeError> {
        let draft = draft.cleaned(&self.options.redactor)?;
        self.store.insert(&draft, standing, self.options.clock.now())
    }

    /// Stores many drafts, none of which repeats another one, in transactions of a thousand.
    ///
    /// # Errors
    /// A draft cannot be a unit, or the store cannot be written.
    pub fn store_distinct(&self, drafts: Vec<Draft>) -> Result<(), KnowledgeError> {
        let clean = |draft: Draft| Ok(draft.cleaned(&self.options.redactor)?);
        let clean = drafts.into_iter().map(clean).collect::<Result<Vec<_>, KnowledgeError>>()?;
        let now = self.options.clock.now();
        clean.chunks(1000).try_for_each(|part| self.store.insert_distinct(part, now))
    }

    /// Stores what is in the outbox. A draft that was stored before is counted once.
    ///
    /// # Errors
    /// The store or the folder cannot be used; what is not stored stays.
    pub fn empty_outbox(&self) -> Result<OutboxReport, KnowledgeError> {
        let mut report = OutboxReport::default();
        for item in self.outbox.items()? {
            let draft = item.draft.map(|draft| draft.cleaned(&self.options.redactor));
            let Some(Ok(draft)) = draft else {
                report.damaged.push(item.path);
                continue;
            };
            self.store.insert(&draft, Standing::NEW, self.options.clock.now())?;
            self.outbox.remove(&item.path)?;
            report.stored += 1;
        }
        Ok(report)
    }

    /// Changes content and metadata of a unit, if it still has the version that the change is based on.
    ///
    /// # Errors
    /// The texts cannot be a unit, or the unit cannot be changed.
    pub fn edit(
        &self,
        id: &UnitId,
        version: u32,
        content: UnitContent,
        metadata: UnitMetadata,
        by: &str,
    ) -> Result<KnowledgeUnit, KnowledgeError> {
        let at = self.options.clock.now();
        let trigger = crate::unit::CaptureTrigger::Marked;
        let draft = Draft { id: id.clone(), content, metadata, at, by: by.to_owned(), trigger };
        let draft = draft.cleaned(&self.options.redactor)?;
        self.store.edit(id, version, &draft.content, &draft.metadata, &draft.by, at)
    }

    /// Tells a unit what has happened to it.
    ///
    /// # Errors
    /// There is no such unit, or that cannot happen to it.
    pub fn tell(
        &self,
        id: &UnitId,
        event: StandingEvent,
        by: &str,
    ) -> Result<KnowledgeUnit, KnowledgeError> {
        let by = self.options.redactor.text(by);
        self.store.tell(id, event, &by, self.options.clock.now())
    }

    /// Returns a unit for a reader: it is not unread any more.
    ///
    /// # Errors
    /// There is no such unit, or the store cannot be read.
    pub fn read(&self, id: &UnitId) -> Result<KnowledgeUnit, KnowledgeError> {
        let unit = self.store.unit(id)?;
        self.note_reads_of([id]);
        Ok(unit)
    }

    /// Archives what was not read for a year. Returns how many.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn archive_unread(&self) -> Result<usize, KnowledgeError> {
        let now = self.options.clock.now();
        let Ok(since) = now.checked_sub(UNREAD) else { return Ok(0) };
        let ids = self.store.unread_since(since)?;
        let mut archived = 0;
        for id in &ids {
            match self.store.tell(id, StandingEvent::Unread, "jig", now) {
                Ok(_) => archived += 1,
                // Another process was faster.
                Err(KnowledgeError::Standing { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(archived)
    }

    pub(super) fn note_reads_of<'i>(&self, ids: impl IntoIterator<Item = &'i UnitId>) {
        // Reading works where writing does not; the unit is then archived a little early, and found.
        let docs = ids.into_iter().filter_map(|id| self.store.doc_of(id).ok().flatten());
        let _ = self.store.note_reads(&docs.collect::<Vec<_>>(), self.options.clock.now());
    }
}

fn queued(outbox: &Outbox, draft: &Draft, why: KnowledgeError) -> Result<Captured, KnowledgeError> {
    match outbox.put(draft) {
        Ok(file) => Ok(Captured::Queued { file, why: jig_model::chain(&why) }),
        Err(outbox) => Err(KnowledgeError::Lost { store: Box::new(why), outbox: Box::new(outbox) }),
    }
}
