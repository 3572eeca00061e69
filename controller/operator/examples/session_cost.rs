//! What a session costs beside the work of its tools: `cargo run -p jig-operator --example session_cost`.
//!
//! Sessions whose tools answer at once are driven in a folder on the disk. Printed are the time of a session,
//! of a transition, of one durable append, and of the planner alone.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example prints and may panic")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jig_model::command::{CommandEvent, EventSink};
use jig_model::protocol::BoxFuture;
use jig_model::redact::Redactor;
use jig_operator::error::OperatorError;
use jig_operator::grammar::parse;
use jig_operator::journal::{
    Charter, PersonRequest, PlanSource, SessionEntry, SessionJournal, SessionLimits, SessionLock,
    SessionRow,
};
use jig_operator::machine::OperatorState;
use jig_operator::memory::NoMemory;
use jig_operator::planner::WordsPlanner;
use jig_operator::session::{NoUndo, Session, SessionBinding, SessionFiles, SessionWatcher, drive};
use jig_operator::tools::{ToolCall, ToolDoor, ToolList, ToolResult, rig_tools};
use serde_json::json;

const SESSIONS: usize = 50;
const APPENDS: u32 = 200;

struct Instantly;

/// Times how long each state lasted until the row of the next one was written.
struct Transitions(Mutex<(OperatorState, Instant, Vec<Duration>)>);

impl ToolDoor for Instantly {
    fn list(&self) -> ToolList {
        rig_tools()
    }

    fn call(
        &self,
        call: ToolCall,
        _: Arc<dyn EventSink>,
    ) -> BoxFuture<'_, Result<ToolResult, OperatorError>> {
        let boards =
            json!({ "places": [{ "name": "b", "board": "b", "how": { "emulator": {} } }] });
        let data = if call.name == "boards" { boards } else { json!({}) };
        Box::pin(async move { Ok(ToolResult::of(data)) })
    }
}

impl SessionFiles for Instantly {
    fn sha256(&self, path: &str) -> Result<String, OperatorError> {
        Ok(path.to_owned())
    }
}

impl EventSink for Instantly {
    fn event(&self, _: CommandEvent) {}
}

impl SessionWatcher for Transitions {
    fn row(&self, session: &Session, _: &SessionRow) {
        let mut seen = self.0.lock().unwrap();
        if seen.0 != session.state {
            let took = seen.1.elapsed();
            seen.2.push(took);
            (seen.0, seen.1) = (session.state, Instant::now());
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let text = "run app.elf on b";
    let charter = Charter {
        text: text.to_owned(),
        source: PlanSource::Words,
        confirmed: None,
        plan_only: false,
        trace_id: "t".to_owned(),
        limits: SessionLimits::default(),
        folder: ".".to_owned(),
        host: None,
        model: None,
    };
    let transitions =
        Arc::new(Transitions(Mutex::new((OperatorState::Idle, Instant::now(), Vec::new()))));
    let binding = SessionBinding {
        door: Arc::new(Instantly),
        events: Arc::new(Instantly),
        planner: Arc::new(WordsPlanner),
        model: None,
        files: Arc::new(Instantly),
        now: jiff::Timestamp::now,
        watcher: Arc::clone(&transitions) as _,
        undo: Arc::new(NoUndo),
        memory: Arc::new(NoMemory),
    };
    let mut times = Vec::new();
    let mut rows = 0;
    for _ in 0..SESSIONS {
        let folder = tempfile::tempdir_in(".").unwrap();
        let lock = SessionLock::take(folder.path()).unwrap();
        let begun = Instant::now();
        let mut journal =
            SessionJournal::begin(folder.path(), charter.clone(), Redactor::default()).unwrap();
        transitions.0.lock().unwrap().1 = Instant::now();
        let session = drive(&mut journal, &lock, &binding).await.unwrap();
        times.push(begun.elapsed());
        assert!(session.ended);
        rows = session.seq;
    }
    times.sort();
    println!(
        "session of {rows} rows: median {:?}, 95 % {:?}",
        times[SESSIONS / 2],
        times[SESSIONS * 95 / 100]
    );
    let mut each = transitions.0.lock().unwrap().2.clone();
    each.sort();
    println!(
        "transition: median {:?}, 75 % {:?}, 95 % {:?}, of {}",
        each[each.len() / 2],
        each[each.len() * 3 / 4],
        each[each.len() * 95 / 100],
        each.len()
    );
    let folder = tempfile::tempdir_in(".").unwrap();
    let mut journal = SessionJournal::begin(folder.path(), charter, Redactor::default()).unwrap();
    let mut times = Vec::new();
    for _ in 0..APPENDS {
        let begun = Instant::now();
        journal.append(&SessionEntry::Request(PersonRequest::Resume)).unwrap();
        times.push(begun.elapsed());
    }
    times.sort();
    println!("durable append: median {:?}, 95 % {:?}", times[100], times[190]);
    let begun = Instant::now();
    for _ in 0..1000 {
        assert!(parse("flash build/app.elf to every free nrf52 and run smoke.toml").is_ok());
    }
    println!("grammar: {:?} a request", begun.elapsed() / 1000);
}
