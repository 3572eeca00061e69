//! Binds the memory of sessions to this host: cases beside the sessions, and the knowledge of the lab.

use std::path::{Path, PathBuf};

use jig_knowledge::store::Inserted;
use jig_knowledge::unit::{CaptureTrigger, Draft, UnitContent, UnitId, UnitMetadata};
use jig_knowledge::{Captured, Knowledge, KnowledgeOptions};
use jig_model::protocol::BoxFuture;
use jig_model::{Fault, chain};
use jig_operator::error::{OperatorCode, OperatorError};
use jig_operator::memory::{
    CaseMemory, CaseStore, CaseStoreError, REPEATS, RememberedCase, SessionCase,
};
use tokio::task::spawn_blocking;

use crate::args::{Common, own_name};
use crate::failure::Failure;

/// Longest quote of a request or failure in a unit.
const MAX_QUOTE: usize = 600;

/// The memory of this host's sessions.
pub(super) struct HostMemory {
    /// The folder of all sessions.
    sessions: PathBuf,
    /// The folder of knowledge; nothing where the rig does not learn by itself, or is elsewhere and learns
    /// there.
    knowledge: Option<PathBuf>,
    /// How many sessions have to fail by one class before a revision is proposed.
    repeats: usize,
    /// The session that is kept.
    name: String,
}

impl HostMemory {
    pub(super) fn of(common: &Common, sessions: &Path, name: &str) -> Self {
        let here = !common.is_elsewhere();
        let catalogue = here.then(|| common.reader.read(&common.own_lab()).ok()).flatten();
        let repeats = catalogue.as_ref().map(|catalogue| catalogue.rig.knowledge.repeats);
        let repeats = repeats.and_then(|repeats| usize::try_from(repeats).ok());
        let learns = catalogue.filter(|catalogue| catalogue.knowledge().is_enabled());
        Self {
            sessions: sessions.to_owned(),
            knowledge: learns.map(|catalogue| Knowledge::folder_in(&catalogue.state())),
            repeats: repeats.unwrap_or(REPEATS),
            name: name.to_owned(),
        }
    }
}

impl CaseMemory for HostMemory {
    fn keep(&self, case: SessionCase) -> BoxFuture<'_, Result<RememberedCase, OperatorError>> {
        let (sessions, knowledge) = (self.sessions.clone(), self.knowledge.clone());
        let (name, repeats) = (self.name.clone(), self.repeats);
        Box::pin(async move {
            let keeping = spawn_blocking(move || {
                kept((&sessions, repeats), knowledge.as_deref(), &name, &case)
            });
            keeping.await.unwrap_or_else(|error| {
                Err(OperatorError::new(OperatorCode::Io, format!("the memory broke off: {error}")))
            })
        })
    }
}

fn kept(
    (sessions, repeats): (&Path, usize),
    knowledge: Option<&Path>,
    name: &str,
    case: &SessionCase,
) -> Result<RememberedCase, OperatorError> {
    let failed = |words: String| OperatorError::new(OperatorCode::Io, words);
    let kept = CaseStore::open(sessions).and_then(|mut store| store.keep(case, repeats));
    let kept = kept.map_err(|error| failed(chain(&error)))?;
    if let Some(number) = kept.proposed {
        tracing::warn!(
            "sessions fail by the same class again and again; look at what is proposed: \
             jig sessions instructions show {number}"
        );
    }
    // A pass that resolves nothing teaches nothing; the verdicts of runs are learnt by the rig itself.
    let Some(folder) = knowledge.filter(|_| !case.passed || !kept.resolves.is_empty()) else {
        return Ok(RememberedCase::default());
    };
    let draft = draft_of(name, case);
    let captured = Knowledge::capture_in(folder, KnowledgeOptions::default(), draft);
    match captured.map_err(|error| failed(chain(&error)))? {
        Captured::Stored(
            Inserted::New { id } | Inserted::Repeat { id, .. } | Inserted::Known { id },
        ) => Ok(RememberedCase { unit: Some(id.to_string()) }),
        Captured::Queued { .. } => Ok(RememberedCase::default()),
    }
}

/// Makes a unit of a case. A session has one unit, however often it is handed in; failed ones of one class and
/// signature have one together.
fn draft_of(name: &str, case: &SessionCase) -> Draft {
    let quote = |text: &str| text[..text.floor_char_boundary(MAX_QUOTE)].to_owned();
    let key = case.class.as_ref().map(|class| class.key()).unwrap_or_default();
    let about = case.tools.first().map_or("a plan", String::as_str);
    let title = match case.passed {
        true => format!("{about}: what had failed was reached by session {name}"),
        false => format!("{about}: a session failed by {key}"),
    };
    let resolution = match case.passed {
        true => format!("the session called {}", case.tools.join(", ")),
        false => String::new(),
    };
    let content = UnitContent {
        title,
        symptom: case.failure.as_deref().map(quote).unwrap_or_default(),
        root_cause: String::new(),
        resolution,
        steps: vec![format!("look at the session: jig sessions show {name}")],
        summary: format!("asked: {}", quote(&case.request)),
        ..UnitContent::default()
    };
    let board = case.boards.first().filter(|_| case.boards.len() == 1).cloned();
    let metadata = UnitMetadata {
        board,
        component: case.places.first().map(|place| format!("place {place}")),
        class: case.class.as_ref().map(|class| class.code.as_str().to_owned()),
        signature: case.signature.clone(),
        tags: vec!["session".to_owned()],
        // What was reached is surer than what failed.
        confidence: if case.passed { 0.6 } else { 0.5 },
        ..UnitMetadata::default()
    };
    let signature = case.signature.as_deref().unwrap_or_default();
    let id = match case.passed {
        true => UnitId::derived(&["session", &case.trace_id]),
        false => UnitId::derived(&["session-failure", &key, signature]),
    };
    let trigger = match case.passed {
        true => CaptureTrigger::Success,
        false => CaptureTrigger::RepeatedFailure,
    };
    Draft { id, content, metadata, at: case.at, by: own_name(), trigger }
}

impl From<CaseStoreError> for Failure {
    fn from(error: CaseStoreError) -> Self {
        let fault = match &error {
            CaseStoreError::Database { .. } => Fault::Lab,
            CaseStoreError::Prompts(_) => Fault::Bug,
            CaseStoreError::Foreign { .. }
            | CaseStoreError::NoRevision(_)
            | CaseStoreError::Decided(..)
            | CaseStoreError::NotBetter { .. } => Fault::Usage,
        };
        let failure = Self::of(fault, &error);
        match error {
            CaseStoreError::NoRevision(_) => failure.help("jig sessions instructions ls"),
            CaseStoreError::NotBetter { number, .. } => {
                failure.help(format!("jig sessions instructions approve {number} --anyway"))
            }
            CaseStoreError::Decided(number, _) => {
                failure.help(format!("jig sessions instructions show {number}"))
            }
            CaseStoreError::Foreign { .. } => {
                failure.help("use the jig that wrote it, or put the file away")
            }
            CaseStoreError::Database { .. } | CaseStoreError::Prompts(_) => failure,
        }
    }
}
