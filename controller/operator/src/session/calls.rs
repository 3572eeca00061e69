//! Calls of a session: made with their limits and retries, each with a row before and one behind.

use std::sync::Arc;
use std::time::Duration;

use jig_model::command::EventSink;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::fold::Session;
use crate::error::{OperatorCode, OperatorError};
use crate::journal::{
    CallIntent, CutOffEffect, MAX_BODY, SessionEntry, SessionFact, SessionWork, WorkIntent,
    WorkOutcome,
};
use crate::machine::OperatorEvent;
use crate::plan::BoardNature;
use crate::retry::read_retry;
use crate::tools::{ToolCall, ToolDoor, ToolResult, ToolRisk};

/// Longest payload of a result that a row keeps. The rest is in the folder of the run.
const MAX_PAYLOAD: usize = MAX_BODY / 2;

/// How long behind its limit a call is ended by the session. A door keeps to the limit itself, and knows
/// what the call waited for; so it has to be the first of the two, however late its timer was started.
const DOOR_MARGIN: Duration = Duration::from_secs(1);

const MORE_FOR_A_STEP: &str = "raise step_s in agents.toml, or give --step-timeout";
const MORE_FOR_A_SESSION: &str = "raise session_s in agents.toml, or give --session-timeout";

/// A call that is ready to be made.
#[derive(Debug, Clone)]
pub(super) struct ReadyCall {
    pub(super) intent: CallIntent,
    pub(super) reads: bool,
    pub(super) limit: Duration,
    /// What allows it more time, where a setting of the user's does.
    more_time: Option<&'static str>,
}

/// Says what a call leaves behind where it is cut off. An emulator ends with its process, so that nothing
/// is left of it.
pub(super) fn effect_of(risk: ToolRisk, board: BoardNature) -> CutOffEffect {
    match () {
        () if risk.read_only => CutOffEffect::Pure,
        () if risk.idempotent || board.emulated => CutOffEffect::Idempotent,
        () => CutOffEffect::Device,
    }
}

impl ReadyCall {
    /// Prepares a call. Its limit is the shortest of that of a step, that of its tool, and what is left of
    /// the session.
    pub(super) fn new(
        session: &Session,
        number: u32,
        step: Option<u32>,
        call: ToolCall,
        (risk, tool_limit): (ToolRisk, Duration),
        now_ms: u64,
    ) -> Self {
        let place = call.arguments.get("place").and_then(Value::as_str);
        let board = place.and_then(|place| session.context.boards.get(place));
        let effect = effect_of(risk, board.map(|board| board.nature).unwrap_or_default());
        let step_limit = Duration::from_secs(session.charter.limits.step_s);
        let left = Duration::from_millis(session.time_left_ms(now_ms));
        let (mut limit, mut more_time) = (tool_limit, None);
        for (other, setting) in [(step_limit, MORE_FOR_A_STEP), (left, MORE_FOR_A_SESSION)] {
            if other < limit {
                (limit, more_time) = (other, Some(setting));
            }
        }
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1);
        let call = ToolCall { timeout_ms: Some(limit_ms), ..call };
        Self {
            intent: CallIntent { number, step, call, effect },
            reads: risk.read_only,
            limit: Duration::from_millis(limit_ms),
            more_time,
        }
    }

    /// Returns the row that is written before the call.
    pub(super) fn row(&self, session: &Session) -> SessionEntry {
        SessionEntry::Intent(WorkIntent {
            work: SessionWork::Call,
            call: Some(self.intent.clone()),
            grant: None,
            grant_micro_usd: 0,
            input: session.hash.to_string(),
        })
    }

    /// Makes the call. A call that only reads is repeated where that may help, within the one limit.
    pub(super) async fn made(
        self,
        door: Arc<dyn ToolDoor>,
        events: Arc<dyn EventSink>,
    ) -> WorkOutcome {
        let begun = Instant::now();
        let mut failures = 0;
        let ended = loop {
            let left = self.limit.saturating_sub(begun.elapsed());
            let mut error = match self.made_once(&*door, Arc::clone(&events), left).await {
                Err(error) => error,
                done => break done,
            };
            failures += 1;
            let pause = read_retry(&error, failures).filter(|_| self.reads);
            match pause.filter(|pause| begun.elapsed() + *pause < self.limit) {
                Some(pause) => sleep(pause).await,
                None => {
                    if error.code == OperatorCode::ToolTimeout {
                        error.next = self.more_time.map_or(error.next, str::to_owned);
                    }
                    break Err(error);
                }
            }
        };
        let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        outcome(&self.intent, ended, took)
    }

    async fn made_once(
        &self,
        door: &dyn ToolDoor,
        events: Arc<dyn EventSink>,
        limit: Duration,
    ) -> Result<ToolResult, OperatorError> {
        let limit_ms = limit.as_micros().div_ceil(1_000).max(1);
        let limit_ms = u64::try_from(limit_ms).unwrap_or(u64::MAX);
        let call = ToolCall { timeout_ms: Some(limit_ms), ..self.intent.call.clone() };
        let made = timeout(limit + DOOR_MARGIN, door.call(call, events)).await;
        made.unwrap_or_else(|_| Err(timed_out(&self.intent.call.name, self.limit)))
    }
}

fn timed_out(name: &str, limit: Duration) -> OperatorError {
    let seconds = limit.as_secs_f64();
    let words = format!("{name} took longer than {seconds:.3} s, its limit");
    OperatorError::new(OperatorCode::ToolTimeout, words)
}

/// Returns the row behind a call that has come to this.
pub(super) fn outcome(
    intent: &CallIntent,
    ended: Result<ToolResult, OperatorError>,
    duration_ms: u64,
) -> WorkOutcome {
    let name = intent.call.name.clone();
    let (ok, payload, facts) = match ended {
        Ok(result) => (true, payload(result), Vec::new()),
        Err(error) => {
            let payload = json!({ "error": error });
            (false, payload, vec![SessionFact::CallFailed { step: intent.step, error }])
        }
    };
    WorkOutcome {
        work: SessionWork::Call,
        call: Some(intent.number),
        events: vec![OperatorEvent::ToolCallResult { name, ok, payload }],
        planner: Vec::new(),
        facts,
        duration_ms,
    }
}

/// Returns the row of a call that was cut off.
pub(super) fn cut_off(intent: &CallIntent) -> WorkOutcome {
    let place = intent.call.arguments.get("place").and_then(Value::as_str).unwrap_or("BOARD");
    let name = &intent.call.name;
    let error = |words: String| OperatorError::new(OperatorCode::Io, words);
    let error = match intent.effect {
        CutOffEffect::Pure | CutOffEffect::Idempotent => {
            error(format!("{name} was cut off")).next("ask again").untouched()
        }
        CutOffEffect::Device if crate::mcp::server_of_tool(name).is_some() => {
            error(format!("{name} was cut off, and may have done its work or not"))
                .next("look at what the tool works on, then ask again")
        }
        CutOffEffect::Device => {
            error(format!("{name} was cut off, and the board may be in any state"))
                .next(format!("jig recover -b {place}, then ask again"))
        }
    };
    outcome(intent, Err(error), 0)
}

/// Returns a result as it is kept. One that is too long loses its texts, and says so.
fn payload(mut result: ToolResult) -> Value {
    let text_of = |result: &ToolResult| serde_json::to_value(result).unwrap_or_default();
    let kept = text_of(&result);
    if kept.to_string().len() <= MAX_PAYLOAD {
        return kept;
    }
    result.text = None;
    result.data = json!({ "left_out": "the result is longer than a row of the journal may be" });
    result.logs.truncate(16);
    result.cut.truncate(16);
    text_of(&result)
}

#[cfg(test)]
mod tests {
    use jig_model::protocol::BoxFuture;
    use tokio::sync::Mutex;

    use super::*;
    use crate::tools::ToolList;

    struct Deaf;

    impl EventSink for Deaf {
        fn event(&self, _: jig_model::command::CommandEvent) {}
    }

    /// A door whose calls fail, and that notes the limit of each.
    struct Failing {
        /// How long a call takes that has this limit.
        takes: fn(Duration) -> Duration,
        code: OperatorCode,
        limits: Mutex<Vec<u64>>,
    }

    impl ToolDoor for Failing {
        fn list(&self) -> ToolList {
            ToolList::default()
        }

        fn call(
            &self,
            call: ToolCall,
            _: Arc<dyn EventSink>,
        ) -> BoxFuture<'_, Result<ToolResult, OperatorError>> {
            Box::pin(async move {
                let limit_ms = call.timeout_ms.unwrap();
                self.limits.lock().await.push(limit_ms);
                sleep((self.takes)(Duration::from_millis(limit_ms))).await;
                Err(OperatorError::new(self.code, "of the door").untouched())
            })
        }
    }

    fn ready(reads: bool) -> ReadyCall {
        let intent = CallIntent {
            number: 1,
            step: Some(1),
            call: ToolCall::new("run", json!({ "place": "bench-1" })),
            effect: CutOffEffect::Device,
        };
        let limit = Duration::from_secs(2);
        ReadyCall { intent, reads, limit, more_time: Some(MORE_FOR_A_STEP) }
    }

    async fn failed(reads: bool, door: &Arc<Failing>) -> OperatorError {
        let door: Arc<dyn ToolDoor> = door.clone();
        let outcome = ready(reads).made(door, Arc::new(Deaf)).await;
        match outcome.facts.as_slice() {
            [SessionFact::CallFailed { error, .. }] => error.clone(),
            facts => panic!("{facts:?}"),
        }
    }

    fn door(takes: fn(Duration) -> Duration, code: OperatorCode) -> Arc<Failing> {
        Arc::new(Failing { takes, code, limits: Mutex::default() })
    }

    /// Both keep the same time, and a busy host may start the timer of the door later.
    #[tokio::test(start_paused = true)]
    async fn the_door_of_a_call_that_takes_too_long_says_what_it_waited_for() {
        let door = door(|limit| limit + Duration::from_millis(5), OperatorCode::Conflict);
        let error = failed(false, &door).await;
        assert_eq!((error.message.as_str(), error.untouched), ("of the door", true));
        assert_eq!(error.next, OperatorCode::Conflict.next());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_its_door_does_not_end_is_ended() {
        let begun = Instant::now();
        let door = door(|_| Duration::from_secs(3_600), OperatorCode::Conflict);
        let error = failed(false, &door).await;
        assert_eq!(error.message, "run took longer than 2.000 s, its limit");
        assert_eq!((error.code, error.untouched), (OperatorCode::ToolTimeout, false));
        assert_eq!((error.next.as_str(), begun.elapsed().as_secs()), (MORE_FOR_A_STEP, 3));
    }

    /// All attempts of a call that reads have one limit together.
    #[tokio::test(start_paused = true)]
    async fn a_call_that_reads_is_repeated_within_its_limit() {
        let slow = door(|limit| limit, OperatorCode::ToolTimeout);
        assert_eq!(failed(true, &slow).await.next, MORE_FOR_A_STEP);
        assert_eq!(*slow.limits.lock().await, [2_000]);
        let quick = door(|_| Duration::ZERO, OperatorCode::Io);
        failed(true, &quick).await;
        assert_eq!(*quick.limits.lock().await, [2_000, 1_800, 1_300, 300]);
    }
}
