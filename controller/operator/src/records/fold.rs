//! From rows to records.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{RecordKind, RecordLevel, SessionRecord};
use crate::error::OperatorError;
use crate::journal::{
    BlockReason, CallIntent, PersonRequest, SessionEntry, SessionFact, SessionRow, WorkOutcome,
};
use crate::machine::{OperatorEvent, OperatorState};
use crate::plan::SessionPlan;
use crate::session::{Session, SessionFoldError};
use crate::tools::ToolResult;

/// Longest text that a record quotes, in bytes.
const MAX_QUOTE: usize = 2000;

/// Most hits of a retrieval that are told.
const MAX_HITS: usize = 10;

/// Makes the records of a session, row by row.
#[derive(Debug, Clone)]
pub struct RecordFold {
    name: String,
    trace_id: String,
    state: OperatorState,
    since_ms: u64,
    begun_ms: u64,
    plans: u32,
    calls: BTreeMap<u32, CallIntent>,
    in_states: BTreeMap<&'static str, u64>,
    in_tools: BTreeMap<String, (u64, u64)>,
}

/// Makes the records of a session of all its rows, each with the number of its row, and what goes on with it.
///
/// # Errors
/// The rows are not the journal of a session.
pub fn records_of(
    name: &str,
    rows: &[SessionRow],
) -> Result<(Vec<(u64, SessionRecord)>, RecordFold), SessionFoldError> {
    let (first, rest) = rows.split_first().ok_or(SessionFoldError::Beginning(1))?;
    let mut session = Session::of(std::slice::from_ref(first))?;
    let mut fold = RecordFold::new(name, &session);
    let mut records = Vec::new();
    let mut tell = |fold: &mut RecordFold, session: &Session, row: &SessionRow| {
        records.extend(fold.row(session, row).into_iter().map(|record| (row.seq, record)));
    };
    tell(&mut fold, &session, first);
    for row in rest {
        session.apply(row)?;
        tell(&mut fold, &session, row);
    }
    Ok((records, fold))
}

impl RecordFold {
    /// Begins with the first row of a session.
    fn new(name: &str, session: &Session) -> Self {
        Self {
            name: name.to_owned(),
            trace_id: session.charter.trace_id.clone(),
            state: OperatorState::Idle,
            since_ms: session.begun_ms,
            begun_ms: session.begun_ms,
            plans: 0,
            calls: BTreeMap::new(),
            in_states: BTreeMap::new(),
            in_tools: BTreeMap::new(),
        }
    }

    /// Returns the records of the next row; `session` is the session behind it.
    pub fn row(&mut self, session: &Session, row: &SessionRow) -> Vec<SessionRecord> {
        let mut told = Told { fold: self, time_ms: row.time_ms, records: Vec::new() };
        told.entry(session, &row.entry);
        told.state(session);
        let mut records = told.records;
        if session.ended && matches!(&row.entry, SessionEntry::Outcome(_)) {
            records.extend(self.ended(session, row.time_ms));
        }
        records
    }

    fn record(&self, time_ms: u64, kind: RecordKind, level: RecordLevel) -> SessionRecord {
        SessionRecord {
            timestamp: at(time_ms),
            level,
            session_id: self.name.clone(),
            trace_id: self.trace_id.clone(),
            event_type: kind,
            message: String::new(),
            data: Map::new(),
            duration_ms: None,
        }
    }

    /// Tells what the session has taken, and that it is over.
    fn ended(&self, session: &Session, time_ms: u64) -> [SessionRecord; 2] {
        let took = time_ms.saturating_sub(self.begun_ms);
        let tools = self.in_tools.iter().map(|(tool, (calls, ms))| {
            (tool.clone(), json!({ "calls": calls, "duration_ms": ms }))
        });
        let performance = SessionRecord {
            message: format!("{} calls, {} ms at work", session.calls.len(), session.busy_ms),
            data: object(json!({
                "busy_ms": session.busy_ms,
                "states_ms": self.in_states,
                "tools": tools.collect::<Map<_, _>>(),
            })),
            duration_ms: Some(took),
            ..self.record(time_ms, RecordKind::Performance, RecordLevel::Info)
        };
        let code = session.summary.as_ref().map(|summary| summary.exit_code);
        let runs = session.summary.as_ref().map(|summary| summary.runs.clone());
        let ended = SessionRecord {
            message: code.map_or("ended".to_owned(), |code| format!("ended with exit code {code}")),
            data: object(json!({ "exit_code": code, "runs": runs })),
            duration_ms: Some(took),
            ..self.record(time_ms, RecordKind::SessionEnded, RecordLevel::Info)
        };
        [performance, ended]
    }
}

/// The records of one row, as they are made.
struct Told<'f> {
    fold: &'f mut RecordFold,
    time_ms: u64,
    records: Vec<SessionRecord>,
}

impl Told<'_> {
    fn tell(&mut self, kind: RecordKind, level: RecordLevel, message: &str, data: Value) {
        self.took(kind, level, (message, data), None);
    }

    fn took(
        &mut self,
        kind: RecordKind,
        level: RecordLevel,
        (message, data): (&str, Value),
        duration_ms: Option<u64>,
    ) {
        let record = self.fold.record(self.time_ms, kind, level);
        let message = quoted(message);
        self.records.push(SessionRecord { message, data: object(data), duration_ms, ..record });
    }

    fn failed(&mut self, error: &OperatorError) {
        let OperatorError { code, message, next, .. } = error;
        let data = json!({ "code": code, "next": next });
        self.tell(RecordKind::Error, RecordLevel::Error, &format!("{code}: {message}"), data);
    }

    fn entry(&mut self, session: &Session, entry: &SessionEntry) {
        use RecordKind as K;
        use RecordLevel::{Debug, Info, Warn};
        match entry {
            SessionEntry::Begun(charter) => {
                let data = json!({ "folder": charter.folder, "limits": charter.limits,
                    "plan_only": charter.plan_only });
                self.tell(K::SessionStarted, Info, &charter.text, data);
            }
            SessionEntry::Intent(intent) => {
                let Some(call) = &intent.call else { return };
                let CallIntent { number, step, call: made, .. } = call;
                let data = json!({ "number": number, "step": step, "tool": made.name,
                    "arguments": made.arguments });
                self.tell(K::ToolCallStarted, Debug, &made.name, data);
                self.fold.calls.insert(*number, call.clone());
            }
            SessionEntry::Outcome(outcome) => {
                if let Some(call) = outcome.call.and_then(|call| self.fold.calls.remove(&call)) {
                    self.call(&call, outcome);
                }
                for fact in &outcome.facts {
                    self.fact(fact, outcome.call.is_some());
                }
                for event in &outcome.events {
                    self.event(session, event);
                }
            }
            SessionEntry::Request(request) => match request {
                PersonRequest::Resume => self.tell(K::SessionResumed, Info, "resumed", Value::Null),
                PersonRequest::Answer { answers } => {
                    let data = json!({ "answers": answers });
                    self.tell(K::Clarification, Info, "questions were answered", data);
                }
                PersonRequest::Confirm { yes, digest } => {
                    let message = if *yes { "confirmed" } else { "refused" };
                    let data = json!({ "yes": yes, "digest": digest });
                    self.tell(K::Confirmation, Info, message, data);
                }
                PersonRequest::Cancel { why } => self.tell(K::Cancelled, Warn, why, Value::Null),
                PersonRequest::Undone { call } => {
                    let message = format!("what call {call} had changed was put back");
                    self.tell(K::RolledBack, Info, &message, json!({ "call": call }));
                }
            },
        }
    }

    /// Tells of a call that has ended.
    fn call(&mut self, call: &CallIntent, outcome: &WorkOutcome) {
        let CallIntent { number, step, call, .. } = call;
        let ended = outcome.events.iter().find_map(|event| match event {
            OperatorEvent::ToolCallResult { ok, payload, .. } => Some((*ok, payload)),
            _ => None,
        });
        let (ok, payload) = ended.unwrap_or((false, &Value::Null));
        let result = serde_json::from_value::<ToolResult>(payload.clone()).ok();
        let error = payload.get("error");
        let mut data = json!({ "number": number, "step": step, "tool": call.name,
            "arguments": call.arguments, "ok": ok });
        if let Some(error) = error {
            data["error"] = error.clone();
        }
        if let Some(result) = &result {
            data["run"] = json!(result.run);
            data["verdict"] = json!(result.verdict);
            data["exit_code"] = json!(result.exit_code);
            // The byte ranges of console logs on which the verdict rests.
            data["logs"] = json!(result.logs);
        }
        let came_to = match (&result, error) {
            (_, Some(error)) => error["message"].as_str().unwrap_or("it failed").to_owned(),
            (Some(ToolResult { verdict: Some(verdict), .. }), _) => verdict.to_string(),
            _ => "done".to_owned(),
        };
        let level = if ok { RecordLevel::Info } else { RecordLevel::Error };
        let took = Some(outcome.duration_ms);
        let message = format!("{}: {came_to}", call.name);
        self.took(RecordKind::ToolCall, level, (&message, data), took);
        let (calls, ms) = self.fold.in_tools.entry(call.name.clone()).or_default();
        *calls += 1;
        *ms = ms.saturating_add(outcome.duration_ms);
        if call.name == "knowledge_search"
            && let Some(hits) = result.as_ref().and_then(|result| result.data.get("hits"))
        {
            let hits: Vec<_> = hits.as_array().into_iter().flatten().take(MAX_HITS).collect();
            let found = hits
                .iter()
                .map(|hit| json!({ "unit": hit.pointer("/unit/id"), "score": hit.get("score") }));
            let data = json!({ "question": call.arguments.get("question"),
                "hits": found.collect::<Vec<_>>() });
            let message = format!("{} units found", hits.len());
            self.took(RecordKind::Retrieval, RecordLevel::Debug, (&message, data), took);
        }
    }

    fn fact(&mut self, fact: &SessionFact, of_call: bool) {
        use RecordKind as K;
        use RecordLevel::{Info, Warn};
        match fact {
            SessionFact::Asked { questions } => {
                let message = format!("{} questions are put", questions.len());
                self.tell(K::Clarification, Info, &message, json!({ "questions": questions }));
            }
            SessionFact::Planned { plan, dangers } => {
                let first = self.fold.plans == 0;
                self.fold.plans += 1;
                let kind = if first { K::PlanCreated } else { K::PlanRefined };
                let SessionPlan { plan_id, goal, steps, risk_level, .. } = plan;
                let titles: Vec<_> = steps.iter().map(|step| &step.title).collect();
                let message = format!("plan {plan_id} with {} steps", steps.len());
                let data = json!({ "plan_id": plan_id, "goal": quoted(goal), "steps": titles,
                    "risk_level": risk_level, "iteration": self.fold.plans,
                    "dangerous_calls": dangers.len() });
                self.tell(kind, Info, &message, data);
            }
            SessionFact::Waits { digest, until_ms } => {
                let data = json!({ "digest": digest, "until": at(*until_ms) });
                self.tell(K::Confirmation, Info, "a confirmation is waited for", data);
            }
            SessionFact::Remark { text } => self.tell(K::Remark, Warn, text, Value::Null),
            SessionFact::Degraded { step, call, error } => {
                let data = json!({ "step": step, "tool": call.tool, "arguments": call.args,
                    "code": error.code });
                let message = format!("step {step} is carried out by {}: {error}", call.tool);
                self.tell(K::StepDegraded, Warn, &message, data);
            }
            SessionFact::ModelAsked {
                role,
                prompt_version,
                model,
                tokens,
                micro_usd,
                error,
                ..
            } => {
                let code = error.as_ref().map(|error| error.code);
                let data = json!({ "role": role, "prompt_version": prompt_version, "model": model,
                    "tokens": tokens, "micro_usd": micro_usd, "code": code });
                let level = if error.is_none() { Info } else { Warn };
                self.tell(K::ModelCall, level, &format!("model {model} as {role}"), data);
            }
            SessionFact::ModelDropped { tokens, micro_usd } => {
                let data = json!({ "tokens": tokens, "micro_usd": micro_usd });
                self.tell(K::ModelCall, Warn, "a question to a model was dropped", data);
            }
            SessionFact::StepAdjusted { step, thought, .. } => {
                let data = json!({ "step": step, "thought": quoted(thought) });
                self.tell(K::StepAdjusted, Info, &format!("step {step} is replaced"), data);
            }
            SessionFact::RolledBack { files, .. } => {
                let message = format!("{} files are as they were before", files.len());
                self.tell(K::RolledBack, Warn, &message, json!({ "files": files }));
            }
            SessionFact::CaseKept { unit, why_not } => match why_not {
                None => {
                    let data = json!({ "unit": unit });
                    self.tell(K::CaseStored, Info, "the case is kept", data);
                }
                Some(why) => {
                    let message = format!("the case could not be kept: {why}");
                    self.tell(K::CaseStored, Warn, &message, Value::Null);
                }
            },
            // The call has told of it.
            SessionFact::CallFailed { error, .. } if !of_call => self.failed(error),
            SessionFact::Blocked { reason } => match reason {
                BlockReason::Failed { error } => self.failed(error),
                BlockReason::Refused | BlockReason::Unanswered => {
                    self.tell(K::Confirmation, Warn, "not confirmed", Value::Null);
                }
                BlockReason::Cancelled { why } => {
                    self.tell(K::Cancelled, Warn, why, Value::Null);
                }
                BlockReason::PlanOnly => {}
            },
            SessionFact::CallFailed { .. }
            | SessionFact::FilesChanged { .. }
            | SessionFact::EarlierImage { .. }
            | SessionFact::Understood { .. }
            | SessionFact::SearchPhrased { .. }
            | SessionFact::ModelAnswered { .. }
            | SessionFact::Context { .. }
            | SessionFact::StepStands { .. }
            | SessionFact::Summary { .. } => {}
        }
    }

    fn event(&mut self, session: &Session, event: &OperatorEvent) {
        let mode = session.plan.as_ref().map(|plan| plan.verification.mode);
        match event {
            OperatorEvent::VerificationPassed => {
                let data = json!({ "passed": true, "mode": mode });
                let level = RecordLevel::Info;
                self.tell(RecordKind::Evaluation, level, "evaluation passed", data);
            }
            OperatorEvent::VerificationFailed { error } => {
                let data = json!({ "passed": false, "mode": mode, "code": error.code,
                    "iteration": session.iteration });
                let message = format!("evaluation failed: {error}");
                self.tell(RecordKind::Evaluation, RecordLevel::Info, &message, data);
            }
            OperatorEvent::NotPossible { error } | OperatorEvent::Blocked { error } => {
                self.failed(error);
            }
            _ => {}
        }
    }

    /// Tells that the state is another one, and how long the one before lasted.
    fn state(&mut self, session: &Session) {
        let (from, to) = (self.fold.state, session.state);
        if from == to {
            return;
        }
        let took = self.time_ms.saturating_sub(self.fold.since_ms);
        *self.fold.in_states.entry(from.as_str()).or_default() += took;
        (self.fold.state, self.fold.since_ms) = (to, self.time_ms);
        let data = json!({ "from": from, "to": to, "planner": session.planner });
        let message = (to.as_str(), data);
        self.took(RecordKind::State, RecordLevel::Info, message, Some(took));
    }
}

/// Returns a time of the journal.
fn at(time_ms: u64) -> Timestamp {
    let time = Timestamp::from_millisecond(i64::try_from(time_ms).unwrap_or(i64::MAX));
    time.unwrap_or_default()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn quoted(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_QUOTE)].to_owned()
}
