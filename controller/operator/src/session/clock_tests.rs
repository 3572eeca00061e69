//! Sessions while somebody sets the clock of the host: what was confirmed, and what is left of the time, is
//! told by a clock that cannot be set.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jig_model::command::EventSink;
use jig_model::protocol::BoxFuture;
use jig_model::redact::Redactor;
use tokio::time::{Instant, advance};

use super::tests::{Scripted, ScriptedRig, States, binding, said};
use super::*;
use crate::error::{OperatorCode, OperatorError};
use crate::journal::{
    Charter, ClockReading, SessionClock, SessionEntry, SessionJournal, SessionLock,
};
use crate::machine::OperatorState;
use crate::tools::{ToolCall, ToolDoor, ToolList, ToolResult};

const HOUR: i64 = 3_600_000;

/// A clock that runs with the time of the test, and whose time of day somebody sets.
#[derive(Debug)]
struct JumpingClock {
    begun: Instant,
    /// How far the time of day is from where it began, in milliseconds, beside what has passed.
    moved_ms: AtomicI64,
}

impl JumpingClock {
    fn new() -> Arc<Self> {
        Arc::new(Self { begun: Instant::now(), moved_ms: AtomicI64::new(0) })
    }

    fn jump(&self, by_ms: i64) {
        self.moved_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl SessionClock for JumpingClock {
    fn read(&self) -> ClockReading {
        let running_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap();
        let noon: u64 = 1_795_694_400_000;
        let wall_ms = noon + running_ms;
        let wall_ms = wall_ms.saturating_add_signed(self.moved_ms.load(Ordering::SeqCst));
        ClockReading { wall_ms, running_ms, boot: "one".to_owned() }
    }
}

/// A rig during whose calls the clock is set, and that others use as long as `busy` says.
struct Meddled {
    rig: Arc<ScriptedRig>,
    clock: Arc<JumpingClock>,
    by_ms: i64,
    busy: bool,
    tried: Mutex<u32>,
}

impl ToolDoor for Meddled {
    fn list(&self) -> ToolList {
        self.rig.list()
    }

    fn call(
        &self,
        call: ToolCall,
        events: Arc<dyn EventSink>,
    ) -> BoxFuture<'_, Result<ToolResult, OperatorError>> {
        self.clock.jump(self.by_ms);
        if self.busy && call.name == "run" {
            *self.tried.lock().unwrap() += 1;
            let error = OperatorError::new(OperatorCode::Conflict, "eve has it").untouched();
            return Box::pin(async move { Err(error) });
        }
        self.rig.call(call, events)
    }
}

fn charter(text: &str) -> Charter {
    Charter { text: text.to_owned(), ..crate::journal::tests::charter() }
}

struct Held {
    folder: tempfile::TempDir,
    clock: Arc<JumpingClock>,
    rig: Arc<ScriptedRig>,
    bound: SessionBinding,
}

impl Held {
    fn new(text: &str, script: Vec<Scripted>, by_ms: i64, busy: bool) -> (Self, Arc<Meddled>) {
        let (clock, rig) = (JumpingClock::new(), Arc::new(ScriptedRig::new(script)));
        let door = Arc::new(Meddled {
            rig: Arc::clone(&rig),
            clock: Arc::clone(&clock),
            by_ms,
            busy,
            tried: Mutex::new(0),
        });
        let mut bound = binding(&rig, &Arc::new(States::default()));
        bound.door = Arc::clone(&door) as _;
        let folder = tempfile::tempdir().unwrap();
        let of = Arc::clone(&clock) as _;
        SessionJournal::begin_by(folder.path(), charter(text), Redactor::default(), of).unwrap();
        (Self { folder, clock, rig, bound }, door)
    }

    /// Opens the journal as another process would.
    fn journal(&self) -> SessionJournal {
        let clock = Arc::clone(&self.clock) as _;
        SessionJournal::open_by(self.folder.path(), Redactor::default(), clock).unwrap()
    }

    async fn driven(&self) -> Session {
        let lock = SessionLock::take(self.folder.path()).unwrap();
        drive(&mut self.journal(), &lock, &self.bound).await.unwrap()
    }

    fn flashed(&self) -> usize {
        self.rig.calls.lock().unwrap().iter().filter(|call| call.name == "flash").count()
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_uses_up_no_time_of_a_session() {
    for by_ms in [24 * HOUR, -24 * HOUR] {
        let (held, _) = Held::new("run app.elf on microbit", Vec::new(), by_ms, false);
        let session = held.driven().await;
        assert_eq!(session.summary.unwrap().exit_code, 0, "{by_ms}");
        assert!(session.busy_ms < 1_000, "{by_ms}: {}", session.busy_ms);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_in_time_though_the_clock_is_put_back_again_and_again() {
    let begun = Instant::now();
    let (held, door) = Held::new("run app.elf on microbit", Vec::new(), -HOUR, true);
    let session = held.driven().await;
    let limit = Duration::from_secs(session.charter.limits.session_s);
    let took = begun.elapsed();
    assert!(took >= limit && took < limit + Duration::from_secs(60), "{took:?}");
    assert!(*door.tried.lock().unwrap() > 10);
    assert_ne!(session.summary.unwrap().exit_code, 0);
}

#[tokio::test(start_paused = true)]
async fn a_confirmation_comes_too_late_whatever_the_clock_says() {
    let (held, _) = Held::new("flash app.elf to bench-3", Vec::new(), 0, false);
    let session = held.driven().await;
    assert_eq!(session.state, OperatorState::AwaitingConfirmation);
    held.clock.jump(-2 * HOUR);
    advance(Duration::from_secs(session.charter.limits.confirm_s + 1)).await;
    held.journal().append(&SessionEntry::Request(said(&session, "yes"))).unwrap();
    let session = held.driven().await;
    let summary = session.summary.unwrap();
    assert_eq!((summary.exit_code, held.flashed()), (4, 0), "{:?}", summary.blocked);
}

#[tokio::test(start_paused = true)]
async fn a_confirmation_in_time_counts_though_the_clock_was_put_on() {
    let (held, _) = Held::new("flash app.elf to bench-3", Vec::new(), 0, false);
    let session = held.driven().await;
    held.clock.jump(24 * HOUR);
    advance(Duration::from_secs(60)).await;
    held.journal().append(&SessionEntry::Request(said(&session, "yes"))).unwrap();
    let session = held.driven().await;
    assert_eq!((session.summary.unwrap().exit_code, held.flashed()), (0, 1));
}

/// What was confirmed is asked for again where the rig was in use for longer than the confirmation holds.
#[tokio::test(start_paused = true)]
async fn a_confirmation_that_has_run_out_is_asked_for_again_before_anything_is_done() {
    let (held, _) = Held::new("flash app.elf to bench-3", Vec::new(), 0, false);
    let session = held.driven().await;
    let mut journal = held.journal();
    journal.append(&SessionEntry::Request(said(&session, "yes"))).unwrap();
    // The process that was to go on was killed, and the clock was put back; the next one comes late.
    held.clock.jump(-2 * HOUR);
    advance(Duration::from_secs(session.charter.limits.confirm_s + 1)).await;
    let resume = crate::journal::PersonRequest::Resume;
    journal.append(&SessionEntry::Request(resume)).unwrap();
    let session = held.driven().await;
    assert_eq!((session.state, held.flashed()), (OperatorState::AwaitingConfirmation, 0));
    journal.append(&SessionEntry::Request(said(&session, "yes"))).unwrap();
    let session = held.driven().await;
    assert_eq!((session.summary.unwrap().exit_code, held.flashed()), (0, 1));
}
