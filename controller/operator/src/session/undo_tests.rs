//! Files that calls change: named, put back where the call has failed, and left where it has not.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jig_model::command::{CommandEvent, EventSink};
use jig_model::protocol::BoxFuture;
use jig_model::redact::Redactor;
use serde_json::json;

use super::*;
use crate::error::{OperatorCode, OperatorError};
use crate::journal::{
    ChangedFiles, Charter, PersonRequest, PlanSource, SessionEntry, SessionJournal, SessionLimits,
    SessionLock, SessionRow,
};
use crate::memory::NoMemory;
use crate::plan::{RiskLevel, read_draft};
use crate::planner::WordsPlanner;
use crate::tools::{Tool, ToolCall, ToolDoor, ToolList, ToolResult, ToolRisk, rig_tools};

/// A rig, and a server that edits files as its arguments say.
struct EditDoor(Arc<Mutex<Vec<ToolCall>>>);

impl ToolDoor for EditDoor {
    fn list(&self) -> ToolList {
        let risk = ToolRisk { read_only: false, idempotent: false, ..ToolRisk::READ };
        let edit = Tool::of_server(
            "files",
            "files__edit".to_owned(),
            "edits".to_owned(),
            json!({ "type": "object", "properties": { "how": { "type": "string" } } }),
            risk,
            Duration::from_secs(60),
        );
        rig_tools().iter().cloned().chain([edit]).collect()
    }

    fn call(
        &self,
        call: ToolCall,
        _: Arc<dyn EventSink>,
    ) -> BoxFuture<'_, Result<ToolResult, OperatorError>> {
        self.0.lock().unwrap().push(call.clone());
        Box::pin(async move {
            match call.arguments["how"].as_str() {
                Some("fails") => Err(OperatorError::new(OperatorCode::Io, "the disk is full")),
                Some("hangs") => std::future::pending().await,
                _ => Ok(ToolResult::of(json!({ "places": [] }))),
            }
        })
    }
}

/// Says that each call has changed a file, and notes what is asked of it.
#[derive(Default)]
struct Notes {
    said: Mutex<Vec<String>>,
    refuses: bool,
}

impl Notes {
    fn say(&self, what: &str, call: u32) {
        self.said.lock().unwrap().push(format!("{what} {call}"));
    }
}

impl SessionUndo for Notes {
    fn note(&self, call: u32) -> BoxFuture<'_, Result<(), OperatorError>> {
        self.say("note", call);
        Box::pin(async { Ok(()) })
    }

    fn changed(&self, call: u32) -> BoxFuture<'_, Result<Option<ChangedFiles>, OperatorError>> {
        self.say("changed", call);
        let change = ChangedFiles {
            call,
            step: None,
            files: vec!["src/a.c".to_owned()],
            count: 1,
            unsure: false,
        };
        Box::pin(async { Ok(Some(change)) })
    }

    fn undo(&self, call: u32) -> BoxFuture<'_, Result<(), OperatorError>> {
        self.say("undo", call);
        let refused = OperatorError::new(OperatorCode::Conflict, "src/a.c was changed since");
        Box::pin(async move { if self.refuses { Err(refused) } else { Ok(()) } })
    }
}

struct Quiet;

impl EventSink for Quiet {
    fn event(&self, _: CommandEvent) {}
}

impl SessionWatcher for Quiet {
    fn row(&self, _: &Session, _: &SessionRow) {}
}

impl SessionFiles for Quiet {
    fn sha256(&self, path: &str) -> Result<String, OperatorError> {
        Ok(path.to_owned())
    }
}

struct Edited {
    folder: tempfile::TempDir,
    notes: Arc<Notes>,
    calls: Arc<Mutex<Vec<ToolCall>>>,
}

impl Edited {
    fn new(refuses: bool) -> Self {
        let notes = Arc::new(Notes { refuses, ..Notes::default() });
        Self { folder: tempfile::tempdir().unwrap(), notes, calls: Arc::default() }
    }

    fn binding(&self) -> SessionBinding {
        SessionBinding {
            door: Arc::new(EditDoor(Arc::clone(&self.calls))),
            events: Arc::new(Quiet),
            planner: Arc::new(WordsPlanner),
            model: None,
            files: Arc::new(Quiet),
            now: jiff::Timestamp::now,
            watcher: Arc::new(Quiet),
            undo: Arc::clone(&self.notes) as _,
            memory: Arc::new(NoMemory),
        }
    }

    /// Begins a session whose steps edit in these ways, one after the other.
    fn begun(&self, ways: &[&str]) -> SessionJournal {
        let steps: Vec<_> = ways
            .iter()
            .enumerate()
            .map(|(n, way)| {
                json!({ "step_id": n + 1, "name": way, "skill_name": "files__edit",
                    "params": { "how": way } })
            })
            .collect();
        let draft = json!({ "plan_summary": "edit", "steps": steps }).to_string();
        let charter = Charter {
            text: "edit".to_owned(),
            source: PlanSource::Draft { draft: read_draft(&draft).unwrap() },
            confirmed: Some(RiskLevel::High),
            plan_only: false,
            trace_id: "t".to_owned(),
            limits: SessionLimits::default(),
            folder: "/firmware".to_owned(),
            host: None,
            model: None,
        };
        SessionJournal::begin(self.folder.path(), charter, Redactor::default()).unwrap()
    }

    async fn driven(&self, journal: &mut SessionJournal) -> Session {
        let lock = SessionLock::take(self.folder.path()).unwrap();
        drive(journal, &lock, &self.binding()).await.unwrap()
    }

    fn said(&self) -> Vec<String> {
        self.notes.said.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_call_has_left_half_done_is_put_back_and_the_rest_named() {
    let edited = Edited::new(false);
    let mut journal = edited.begun(&["well", "fails", "never"]);
    let session = edited.driven(&mut journal).await;
    let summary = session.summary.clone().unwrap();
    assert_eq!(summary.exit_code, jig_model::exit::LAB);
    // The first call of a session reads the boards.
    assert_eq!(edited.said(), ["note 2", "changed 2", "note 3", "changed 3", "undo 3"]);
    let told = json!(summary).to_string();
    assert!(told.contains("call 3 failed and had changed 1 files, which are as before"), "{told}");
    assert!(
        told.contains("put back 1 files that 1 calls have changed: jig sessions undo"),
        "{told}"
    );
    let left: Vec<_> =
        session.changes.iter().map(|(change, undone)| (change.call, *undone)).collect();
    assert_eq!(left, [(2, false), (3, true)]);
    let undone = SessionEntry::Request(PersonRequest::Undone { call: 2 });
    journal.append(&undone).unwrap();
    let again = Session::of(&journal.rows().unwrap()).unwrap();
    assert!(again.changes.iter().all(|(_, undone)| *undone));
}

#[tokio::test(start_paused = true)]
async fn files_that_cannot_be_put_back_are_told() {
    let edited = Edited::new(true);
    let mut journal = edited.begun(&["fails"]);
    let session = edited.driven(&mut journal).await;
    let told = json!(session.summary).to_string();
    assert!(told.contains("what call 2 had changed could not be put back: E_CONFLICT"), "{told}");
    assert!(told.contains("jig sessions undo"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn what_a_call_has_changed_until_it_took_too_long_is_put_back_too() {
    let edited = Edited::new(false);
    let mut journal = edited.begun(&["hangs"]);
    let session = edited.driven(&mut journal).await;
    assert_eq!(edited.said(), ["note 2", "changed 2", "undo 2"]);
    assert!(json!(session.summary).to_string().contains("E_TOOL_TIMEOUT"));
}

/// The process is killed while the server works: what the call has changed until then is found out by the next
/// one, which does not make the call again.
#[tokio::test(start_paused = true)]
async fn what_a_killed_process_has_begun_is_compared_by_the_next_one() {
    let edited = Edited::new(false);
    let mut journal = edited.begun(&["well"]);
    edited.driven(&mut journal).await;
    let rows = journal.rows().unwrap();
    let intent = rows.iter().position(|row| match &row.entry {
        SessionEntry::Intent(intent) => {
            intent.call.as_ref().is_some_and(|call| call.call.name == "files__edit")
        }
        _ => false,
    });
    let resumed = Edited::new(false);
    let mut journal = resumed.begun(&["well"]);
    let mut entries: Vec<_> =
        rows[1..=intent.unwrap()].iter().map(|row| row.entry.clone()).collect();
    entries.push(SessionEntry::Request(PersonRequest::Resume));
    journal.append_all(&entries).unwrap();
    let session = resumed.driven(&mut journal).await;
    // What has changed since may be of others, and is not put back by itself.
    assert_eq!(resumed.said(), ["changed 2"]);
    assert!(resumed.calls.lock().unwrap().is_empty(), "the call was repeated");
    let told = json!(session.summary).to_string();
    assert!(told.contains("files__edit was cut off, and may have done its work or not"), "{told}");
    assert!(told.contains("or others since: look at them first"), "{told}");
}
