//! What is asked of the knowledge of a rig, as orders that travel.
//!
//! # Design
//! *One answer, two ways to it.* A caller of this host carries an order out by [`KnowledgeDoor`], one of
//! another host sends it to the rig, which does the same there. Both show the same [`KnowledgeReply`].
//!
//! *An order may come twice*, because an answer may be lost with its connection: a unit that is added has
//! its name from the caller, and an edit names the version that it is based on.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use jig_knowledge::embedding::{EmbeddingConfig, LoadEmbedder, OnnxEmbedder};
use jig_knowledge::observed::LearningInput;
use jig_knowledge::retrieve::{FitReport, KnowledgeAnswer, RetrievalContext};
use jig_knowledge::share::{self, ExportPage, ImportReport, ShareError};
use jig_knowledge::store::{HistoryLine, Link, LinkKind};
use jig_knowledge::unit::{
    CaptureTrigger, Draft, KnowledgeUnit, StandingEvent, UnitContent, UnitId, UnitMetadata,
};
use jig_knowledge::{
    Captured, Knowledge, KnowledgeError, KnowledgeOptions, KnowledgeStats, Observed, ReindexReport,
    marked,
};
use jig_model::access::AccessRight;
use jig_model::{Fault, chain};
use jig_rig::audit::AuditError;
use serde::{Deserialize, Serialize};

use super::{CaughtUp, LearnError};
use crate::{AccessError, Catalogue};

/// How long an order waits for the embedding model to be loaded: .3 s on an idle host.
const LOAD: Duration = Duration::from_secs(20);

/// Most bytes of a page of an export, but for a unit that has more.
const PAGE: usize = 256 << 10;

/// What is asked of knowledge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case", deny_unknown_fields)]
pub enum KnowledgeOrder {
    /// Finds units.
    Search {
        /// The question and its limits.
        context: Box<RetrievalContext>,
    },
    /// Shows a unit.
    Show {
        /// The unit.
        id: UnitId,
        /// Whether its changes are told, too.
        history: bool,
    },
    /// Counts units, feedback and what waits in the outbox.
    Stats,
    /// Tells what a run shows of its failure, as the beginning of a unit.
    OfRun {
        /// The run: its id, a beginning of that, or `last`.
        wanted: String,
    },
    /// Writes units as lines, a page at a time.
    Export {
        /// The change behind which the page begins; 0 for the first one.
        behind: u64,
        /// Whether archived units are written, too.
        archived: bool,
    },
    /// Adds a unit. Who has added it and when is noted by the rig's host.
    Add {
        /// The unit.
        draft: Box<Draft>,
    },
    /// Changes a unit.
    Edit {
        /// The unit.
        id: UnitId,
        /// The version that the change is based on.
        version: u32,
        /// Its texts.
        content: Box<UnitContent>,
        /// What it is about.
        metadata: Box<UnitMetadata>,
    },
    /// Says whether a unit is right.
    Judge {
        /// The unit.
        id: UnitId,
        /// Whether it is.
        right: bool,
        /// The question that it answers, or does not answer.
        question: Option<String>,
    },
    /// Archives a unit, or takes it back.
    PutAway {
        /// The unit.
        id: UnitId,
        /// Whether it is archived.
        away: bool,
    },
    /// Links two units.
    Link {
        /// The first one.
        one: UnitId,
        /// How they belong together.
        kind: LinkKind,
        /// The other one.
        other: UnitId,
    },
    /// Reads units that another lab has exported.
    Import {
        /// Whole lines of an export.
        lines: String,
        /// Whether what was proven there counts as proven here.
        trusted: bool,
    },
    /// Learns from runs: from one, or from the latest of which nothing was learnt.
    Capture {
        /// The run: its id, a beginning of that, or `last`.
        wanted: Option<String>,
    },
    /// Checks the store, and makes index and missing vectors again.
    Reindex,
    /// Learns the order of answers from feedback.
    Fit,
}

impl KnowledgeOrder {
    /// Returns the right that it needs, at all places of the rig: a unit may tell of any.
    pub fn access_right(&self) -> AccessRight {
        match self {
            Self::Search { .. }
            | Self::Show { .. }
            | Self::Stats
            | Self::OfRun { .. }
            | Self::Export { .. } => AccessRight::See,
            Self::Add { .. }
            | Self::Edit { .. }
            | Self::Judge { .. }
            | Self::PutAway { .. }
            | Self::Link { .. }
            | Self::Import { .. }
            | Self::Capture { .. }
            | Self::Reindex
            | Self::Fit => AccessRight::Administer,
        }
    }

    /// Names it as it is typed, for the audit log.
    fn call(&self) -> &'static str {
        match self {
            Self::Search { .. } => "kb-search",
            Self::Show { .. } => "kb-show",
            Self::Stats => "kb-stats",
            Self::OfRun { .. } | Self::Add { .. } => "kb-add",
            Self::Export { .. } => "kb-export",
            Self::Edit { .. } => "kb-edit",
            Self::Judge { right: true, .. } => "kb-verify",
            Self::Judge { right: false, .. } => "kb-reject",
            Self::PutAway { away: true, .. } => "kb-archive",
            Self::PutAway { away: false, .. } => "kb-restore",
            Self::Link { .. } => "kb-link",
            Self::Import { .. } => "kb-import",
            Self::Capture { .. } => "kb-capture",
            Self::Reindex => "kb-reindex",
            Self::Fit => "kb-fit",
        }
    }

    /// Tells whether it may be asked twice without doing twice.
    pub fn is_repeatable(&self) -> bool {
        match self {
            Self::Judge { .. } | Self::PutAway { .. } | Self::Edit { .. } | Self::Fit => false,
            Self::Search { .. }
            | Self::Show { .. }
            | Self::Stats
            | Self::OfRun { .. }
            | Self::Export { .. }
            | Self::Add { .. }
            | Self::Link { .. }
            | Self::Import { .. }
            | Self::Capture { .. }
            | Self::Reindex => true,
        }
    }
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "about", content = "reply", rename_all = "snake_case")]
pub enum KnowledgeReply {
    /// Units that were found.
    Found(KnowledgeAnswer),
    /// A unit.
    Shown(Box<ShownUnit>),
    /// How much there is.
    Stats(KnowledgeStats),
    /// What a run shows of its failure; nothing of a run that is learnt from as a whole.
    OfRun(Box<(UnitContent, UnitMetadata)>),
    /// Lines of units.
    Exported(ExportPage),
    /// What became of a unit that was added.
    Kept(Captured),
    /// A unit as it is now.
    Changed(Box<KnowledgeUnit>),
    /// Two units are linked.
    Linked,
    /// What became of lines.
    Imported(ImportReport),
    /// What was learnt from a run.
    Learnt {
        /// The run.
        run: String,
        /// What became of it.
        observed: Observed,
    },
    /// What was learnt from the latest runs.
    CaughtUp(CaughtUp),
    /// What the check of the store came to.
    Reindexed(ReindexReport),
    /// What was learnt from feedback; nothing if there is too little.
    Fitted(Option<FitReport>),
}

/// A unit with what belongs to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShownUnit {
    /// The unit.
    pub unit: KnowledgeUnit,
    /// Its links to others.
    pub links: Vec<Link>,
    /// Its changes, if they were asked for.
    pub history: Vec<HistoryLine>,
}

/// The reply to an order, and what was noticed beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnowledgeAnswered {
    /// The reply.
    pub reply: KnowledgeReply,
    /// What became of the outbox.
    pub outbox: OutboxNote,
}

/// What became of the outbox when knowledge was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxNote {
    /// Drafts that are stored now.
    pub stored: usize,
    /// Damaged files, which stay where they are.
    pub damaged: Vec<PathBuf>,
    /// Why it waits, if it does.
    pub waits: Option<String>,
}

/// Says why an order was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum KnowledgeOrderError {
    /// The user has not the right.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// It cannot be noted, and comes from elsewhere.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// Knowledge cannot be used.
    #[error(transparent)]
    Knowledge(#[from] KnowledgeError),
    /// Lines cannot be read or written.
    #[error(transparent)]
    Share(#[from] ShareError),
    /// A run was not learnt from.
    #[error(transparent)]
    Learn(#[from] LearnError),
}

impl KnowledgeOrderError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Access(error) => error.fault(),
            Self::Audit(error) => error.fault(),
            Self::Knowledge(error) | Self::Share(ShareError::Store(error)) => error.fault(),
            Self::Share(ShareError::Stream(_)) => Fault::Usage,
            Self::Learn(error) => match error {
                LearnError::Run(error) => error.fault(),
                LearnError::Knowledge(error) => error.fault(),
                LearnError::Unended(_) | LearnError::Elsewhere(_) => Fault::Usage,
            },
        }
    }
}

/// The knowledge of this host's rig. It stays open between orders, with its index and its model.
pub struct KnowledgeDoor {
    folder: PathBuf,
    embedder: Option<LoadEmbedder>,
    open: Mutex<Option<Arc<Knowledge>>>,
    /// What kept new units from getting vectors when it was last told: a service looks twice a minute.
    told: Mutex<Option<String>>,
}

impl std::fmt::Debug for KnowledgeDoor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnowledgeDoor").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl KnowledgeDoor {
    /// Names the knowledge below the folder of a rig's state, and the embedding model. Touches no file.
    pub fn new(state: &Path, embedding: Option<EmbeddingConfig>) -> Self {
        Self::with_model(state, embedding.map(OnnxEmbedder::loader))
    }

    /// Names the knowledge below the folder of a rig's state, and what loads the embedding model.
    pub fn with_model(state: &Path, embedder: Option<LoadEmbedder>) -> Self {
        Self {
            folder: Knowledge::folder_in(state),
            embedder,
            open: Mutex::default(),
            told: Mutex::default(),
        }
    }

    /// Tells whether there is an embedding model.
    pub fn has_model(&self) -> bool {
        self.embedder.is_some()
    }

    /// Makes the vectors of units that were added or edited, if there is a model and any knowledge. Waits for
    /// the model; searches and captures go on meanwhile.
    pub fn embed_new(&self) {
        if self.embedder.is_none() || !self.folder.join("knowledge.db").exists() {
            return;
        }
        let embedded = self.opened().and_then(|(knowledge, _)| knowledge.embed_new());
        let problem = match embedded {
            Ok(report) => {
                let report = report.unwrap_or_default();
                let (embedded, failed) = (report.embedded, report.failed);
                tracing::debug!(embedded, failed, "units were looked at for their vectors");
                report.problem
            }
            Err(error) => Some(chain(&error)),
        };
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(problem) = problem.as_ref().filter(|problem| told.as_ref() != Some(*problem)) {
            tracing::warn!("new units are found by words only: {problem}");
        }
        *told = problem;
    }

    /// Carries out the order of a caller from elsewhere, who is the user of the catalogue. Waits for the
    /// disk.
    ///
    /// # Errors
    /// The caller may not, or the order was not carried out.
    pub fn carry_out_for(
        &self,
        catalogue: &Catalogue,
        order: KnowledgeOrder,
    ) -> Result<KnowledgeAnswered, KnowledgeOrderError> {
        let (right, call) = (order.access_right(), order.call());
        let basis = catalogue.authorise_everywhere(right, call)?;
        if right == AccessRight::Administer {
            catalogue.note_call(call, right, basis)?;
        }
        let by = catalogue.user().identity.name.to_string();
        let answered = self.carry_out(catalogue, order, &by, &mut |_, _| {})?;
        // Vectors are made by the service beside its calls, which no caller waits for.
        self.settle_index(&answered.reply);
        Ok(answered)
    }

    /// Carries out an order; `by` is who asks. Tells how many units of how many were looked at for their
    /// vectors. Waits for the disk.
    ///
    /// # Errors
    /// The order was not carried out.
    pub fn carry_out(
        &self,
        catalogue: &Catalogue,
        order: KnowledgeOrder,
        by: &str,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<KnowledgeAnswered, KnowledgeOrderError> {
        let desk = catalogue.knowledge();
        match order {
            KnowledgeOrder::OfRun { wanted } => Ok(match desk.observed(&wanted)? {
                LearningInput::Run(run) => KnowledgeReply::OfRun(Box::new(marked(&run))),
                LearningInput::Repair(_) => KnowledgeReply::OfRun(Box::default()),
            }
            .into()),
            KnowledgeOrder::Capture { wanted: Some(wanted) } => {
                let (run, observed) = desk.learn_from(&wanted)?;
                Ok(KnowledgeReply::Learnt { run: run.to_string(), observed }.into())
            }
            KnowledgeOrder::Capture { wanted: None } => {
                Ok(KnowledgeReply::CaughtUp(desk.catch_up(None)?).into())
            }
            // The draft is kept though the store may not open.
            KnowledgeOrder::Add { draft } => {
                let (by, at, trigger) = (by.to_owned(), Timestamp::now(), CaptureTrigger::Marked);
                let draft = Draft { by, at, trigger, ..*draft };
                let options = KnowledgeOptions::default();
                Ok(KnowledgeReply::Kept(Knowledge::capture_in(&self.folder, options, draft)?)
                    .into())
            }
            KnowledgeOrder::Search { context } => {
                self.with(|knowledge| Ok(KnowledgeReply::Found(knowledge.search(&context)?)))
            }
            KnowledgeOrder::Show { id, history } => self.with(|knowledge| {
                let unit = knowledge.read(&id)?;
                let links = knowledge.store().links(&id)?;
                let history = if history { knowledge.store().history(&id)? } else { Vec::new() };
                Ok(KnowledgeReply::Shown(Box::new(ShownUnit { unit, links, history })))
            }),
            KnowledgeOrder::Stats => self.with(|knowledge| {
                maintain(knowledge);
                Ok(KnowledgeReply::Stats(knowledge.stats()?))
            }),
            KnowledgeOrder::Export { behind, archived } => self.with(|knowledge| {
                let page = share::export_page(knowledge, archived, behind, PAGE)?;
                Ok(KnowledgeReply::Exported(page))
            }),
            KnowledgeOrder::Edit { id, version, content, metadata } => self.with(|knowledge| {
                let unit = knowledge.edit(&id, version, *content, *metadata, by)?;
                Ok(KnowledgeReply::Changed(Box::new(unit)))
            }),
            KnowledgeOrder::Judge { id, right, question } => self.with(|knowledge| {
                let event = if right { StandingEvent::Confirmed } else { StandingEvent::Rejected };
                let unit = knowledge.tell(&id, event, by)?;
                if let Some(question) = &question {
                    knowledge.feedback(question, &id, right)?;
                }
                Ok(KnowledgeReply::Changed(Box::new(unit)))
            }),
            KnowledgeOrder::PutAway { id, away } => self.with(|knowledge| {
                let event = if away { StandingEvent::Archived } else { StandingEvent::Restored };
                Ok(KnowledgeReply::Changed(Box::new(knowledge.tell(&id, event, by)?)))
            }),
            KnowledgeOrder::Link { one, kind, other } => self.with(|knowledge| {
                knowledge.store().link(&one, kind, &other)?;
                Ok(KnowledgeReply::Linked)
            }),
            KnowledgeOrder::Import { lines, trusted } => self.with(|knowledge| {
                let report = share::import(knowledge, &mut lines.as_bytes(), trusted)?;
                Ok(KnowledgeReply::Imported(report))
            }),
            KnowledgeOrder::Reindex => {
                self.with(|knowledge| Ok(KnowledgeReply::Reindexed(knowledge.reindex(progress)?)))
            }
            KnowledgeOrder::Fit => {
                self.with(|knowledge| Ok(KnowledgeReply::Fitted(knowledge.fit()?)))
            }
        }
    }

    fn with(
        &self,
        work: impl FnOnce(&Knowledge) -> Result<KnowledgeReply, KnowledgeOrderError>,
    ) -> Result<KnowledgeAnswered, KnowledgeOrderError> {
        let (knowledge, outbox) = self.opened()?;
        Ok(KnowledgeAnswered { reply: work(&knowledge)?, outbox })
    }

    /// Does what may come behind the answer: notes that units were read, makes the next search faster, and
    /// makes the vectors of units that are new.
    pub fn settle(&self, reply: &KnowledgeReply) {
        let makes_units = match reply {
            KnowledgeReply::Kept(_) | KnowledgeReply::Changed(_) | KnowledgeReply::Imported(_) => {
                true
            }
            KnowledgeReply::Found(_)
            | KnowledgeReply::Shown(_)
            | KnowledgeReply::Stats(_)
            | KnowledgeReply::OfRun(_)
            | KnowledgeReply::Exported(_)
            | KnowledgeReply::Linked
            | KnowledgeReply::Learnt { .. }
            | KnowledgeReply::CaughtUp(_)
            | KnowledgeReply::Reindexed(_)
            | KnowledgeReply::Fitted(_) => false,
        };
        if makes_units {
            self.embed_new();
        }
        self.settle_index(reply);
    }

    fn settle_index(&self, reply: &KnowledgeReply) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(knowledge) = open else { return };
        match reply {
            KnowledgeReply::Found(answer) => knowledge.note_shown(answer),
            KnowledgeReply::Imported(_) => {}
            _ => return,
        }
        maintain(&knowledge);
    }

    /// Opens knowledge, or takes what is open, and stores what waits in the outbox.
    fn opened(&self) -> Result<(Arc<Knowledge>, OutboxNote), KnowledgeError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // A store that was moved away or replaced is another one.
        let kept = open.take().filter(|knowledge| knowledge.is_in_place());
        let knowledge = match kept {
            Some(knowledge) => knowledge,
            None => {
                let embedder = self.embedder.clone();
                let options = KnowledgeOptions { embedder, ..KnowledgeOptions::default() };
                let knowledge = Knowledge::open(&self.folder, options)?;
                // One that cannot be loaded is told of by what uses it.
                let _ = knowledge.wait_for_model(LOAD);
                Arc::new(knowledge)
            }
        };
        *open = Some(Arc::clone(&knowledge));
        drop(open);
        let note = match knowledge.empty_outbox() {
            Ok(report) => {
                OutboxNote { stored: report.stored, damaged: report.damaged, waits: None }
            }
            Err(error) => OutboxNote { waits: Some(chain(&error)), ..OutboxNote::default() },
        };
        Ok((knowledge, note))
    }
}

impl From<KnowledgeReply> for KnowledgeAnswered {
    fn from(reply: KnowledgeReply) -> Self {
        Self { reply, outbox: OutboxNote::default() }
    }
}

fn maintain(knowledge: &Knowledge) {
    if let Err(error) = knowledge.maintain() {
        tracing::debug!(error = chain(&error), "the index was not written");
    }
}
