//! What a session is bound to: the tools of the rig, the files of its folder, the rows on the screen.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jig_model::command::{CommandEvent, EventSink};
use jig_model::{Fault, Problems};
use jig_operator::config::{AgentsFile, MAX_AGENTS_FILE};
use jig_operator::error::{OperatorCode, OperatorError};
use jig_operator::journal::SessionRow;
use jig_operator::records::{RecordFold, RecordLevel, SessionRecord, records_of};
use jig_operator::session::{Session, SessionFiles, SessionFoldError, SessionWatcher};
use jig_operator::sha256_of;
use jig_operator::tools::RigCalls;

use super::folders::unusable;
use crate::args::{Common, RigName};
use crate::commands::mcp::LabCalls;
use crate::failure::Failure;
use crate::render::{Screen, one_line};

/// The files that calls name, as the tools find them.
pub(super) struct FolderFiles(pub(super) Arc<LabCalls>);

impl SessionFiles for FolderFiles {
    fn sha256(&self, path: &str) -> Result<String, OperatorError> {
        if path.ends_with(".toml") {
            let text = self.0.plan(path)?.text;
            return sha256_of(text.as_bytes()).map_err(|error| unread(path, &error));
        }
        let found = self.0.image(path)?;
        // An image of raw bytes has its address behind it.
        let file = File::open(&found).or_else(|error| {
            let text = found.to_string_lossy();
            text.rsplit_once('@').map_or(Err(error), |(file, _)| File::open(file))
        });
        file.and_then(sha256_of).map_err(|error| unread(path, &error))
    }
}

fn unread(path: &str, error: &io::Error) -> OperatorError {
    OperatorError::new(OperatorCode::Io, format!("could not read {path}: {error}")).untouched()
}

/// Says on the screen and in the log what each row brings.
pub(super) struct RowWatcher {
    screen: Screen,
    told: Mutex<Told>,
}

struct Told {
    records: RecordFold,
    calls: usize,
}

impl RowWatcher {
    /// Begins with the rows that there are; those behind row `told` were written by this process and are
    /// logged now.
    pub(super) fn new(
        screen: &Screen,
        name: &str,
        (rows, told): (&[SessionRow], u64),
    ) -> Result<Self, SessionFoldError> {
        let (records, fold) = records_of(name, rows)?;
        records.iter().filter(|(seq, _)| *seq > told).for_each(|(_, record)| log(record));
        let calls = Session::of(rows)?.calls.len();
        let told = Told { records: fold, calls };
        Ok(Self { screen: screen.clone(), told: Mutex::new(told) })
    }
}

impl SessionWatcher for RowWatcher {
    fn row(&self, session: &Session, row: &SessionRow) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.records.row(session, row).iter().for_each(log);
        for record in &session.calls[told.calls.min(session.calls.len())..] {
            let tool = &record.call.name;
            let Some(step) = record.step else { continue };
            let steps = session.plan.iter().flat_map(|plan| &plan.steps);
            let title = steps.into_iter().find(|one| one.step_id == step.to_string());
            let title = title.map_or(tool.as_str(), |step| step.title.as_str());
            let came_to = match &record.result {
                Ok(result) => {
                    result.verdict.map_or("done".to_owned(), |verdict| verdict.to_string())
                }
                Err(error) => error.to_string(),
            };
            self.screen.say(&format!("  {step}. {}: {}", one_line(title), one_line(&came_to)));
        }
        told.calls = session.calls.len();
    }
}

/// Passes a record on to the log of this program, with all its fields.
fn log(record: &SessionRecord) {
    let SessionRecord { session_id, trace_id, message, .. } = record;
    let (event_type, duration_ms) = (record.event_type.as_str(), record.duration_ms);
    let message = one_line(message);
    let data = serde_json::Value::Object(record.data.clone()).to_string();
    macro_rules! tell {
        ($level:ident) => {
            tracing::$level!(
                target: "jig::session",
                session_id, trace_id, event_type, data, duration_ms, "{message}"
            )
        };
    }
    match record.level {
        RecordLevel::Debug => tell!(debug),
        RecordLevel::Info => tell!(info),
        RecordLevel::Warn => tell!(warn),
        RecordLevel::Error => tell!(error),
    }
}

/// Tells what a person has to know while a tool works: who has the board, and whom it disturbs. The rest is in
/// the records of runs.
pub(super) struct BoardUsers(pub(super) Screen);

impl EventSink for BoardUsers {
    fn event(&self, event: CommandEvent) {
        use CommandEvent as E;
        if matches!(event, E::Waiting { .. } | E::LeaseLost { .. } | E::Disturbing { .. }) {
            self.0.event(event);
        }
    }
}

/// Returns where `agents.toml` is looked for: beside the rig file, else in this folder.
pub(super) fn agents_path(common: &Common) -> PathBuf {
    let beside = match &common.rig {
        Some(RigName::File(file)) => file.parent().unwrap_or(Path::new("")).to_owned(),
        _ => Path::new("").to_owned(),
    };
    beside.join("agents.toml")
}

/// Reads `agents.toml` beside the rig file, or of this folder; what is not there says nothing.
pub(crate) fn agents_file(common: &Common) -> Result<AgentsFile, Failure> {
    let path = agents_path(common);
    // Looked at before it is opened: a pipe without a writer would be waited for.
    let about = match std::fs::metadata(&path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(AgentsFile::default()),
        Err(error) => return Err(unusable(&path, &error)),
    };
    if !about.is_file() {
        let words = format!("{} is no file", path.display());
        return Err(Failure::new(Fault::Profile, words).help("jig ask needs none: remove it"));
    }
    let most = u64::try_from(MAX_AGENTS_FILE).unwrap_or(u64::MAX).saturating_add(1);
    let text = File::open(&path).and_then(|file| io::read_to_string(file.take(most)));
    let text = text.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => {
            Failure::new(Fault::Profile, format!("{} is no text in UTF-8", path.display()))
                .help("write it anew; jig ask needs none")
        }
        _ => unusable(&path, &error),
    })?;
    let parsed: Result<AgentsFile, Problems> =
        AgentsFile::parse(&path.display().to_string(), &text);
    parsed.map_err(|problems| Failure::problems(vec![problems]))
}
