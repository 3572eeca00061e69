//! Calls of a session: made with their limits and retries, each with a row before and one behind.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jig_model::command::EventSink;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

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

/// A call that is ready to be made.
#[derive(Debug, Clone)]
pub(super) struct ReadyCall {
    pub(super) intent: CallIntent,
    pub(super) reads: bool,
    pub(super) limit: Duration,
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
        let limit = step_limit.min(tool_limit).min(left);
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1);
        let call = ToolCall { timeout_ms: Some(limit_ms), ..call };
        Self {
            intent: CallIntent { number, step, call, effect },
            reads: risk.read_only,
            limit: Duration::from_millis(limit_ms),
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

    /// Makes the call. A call that only reads is repeated where that may help.
    pub(super) async fn made(
        self,
        door: Arc<dyn ToolDoor>,
        events: Arc<dyn EventSink>,
    ) -> WorkOutcome {
        let begun = Instant::now();
        let name = self.intent.call.name.clone();
        let mut failures = 0;
        let ended = timeout(self.limit, async {
            loop {
                let made = door.call(self.intent.call.clone(), Arc::clone(&events)).await;
                let Err(error) = &made else { return made };
                failures += 1;
                match read_retry(error, failures).filter(|_| self.reads) {
                    Some(pause) => sleep(pause).await,
                    None => return made,
                }
            }
        });
        let ended = ended.await.unwrap_or_else(|_| Err(timed_out(&name, self.limit)));
        let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        outcome(&self.intent, ended, took)
    }
}

fn timed_out(name: &str, limit: Duration) -> OperatorError {
    let seconds = limit.as_secs_f64();
    OperatorError::new(
        OperatorCode::ToolTimeout,
        format!("{name} took longer than {seconds:.3} s, the limit of a step"),
    )
    .next("raise step_s in agents.toml, or give --step-timeout")
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
