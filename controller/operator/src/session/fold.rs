//! The state of a session as a fold over its rows. Pure.

use std::collections::BTreeMap;

use jig_agents::Usage;
use jig_model::VerdictKind;
use serde::Serialize;
use serde_json::{Value, json};

use crate::context::SessionContext;
use crate::error::OperatorError;
use crate::grammar::UserRequest;
use crate::journal::{
    BlockReason, CallIntent, ChangedFiles, Charter, ClarifyingQuestion, EarlierImage,
    PersonRequest, RowHash, SessionEntry, SessionFact, SessionRow, SessionWork, WorkOutcome,
};
use crate::machine::{
    ConfirmScope, IllegalOperatorEvent, IllegalPlannerEvent, OperatorEvent, OperatorState,
    PlannerState, next, planner_next,
};
use crate::plan::{DangerousCall, SessionPlan, StepOutcomes, StepStatus};
use crate::planner::RequestAnswers;
use crate::summary::SessionSummary;
use crate::tools::{ToolCall, ToolResult};

/// Says why rows are not the journal of a session.
#[derive(Debug, thiserror::Error)]
pub enum SessionFoldError {
    /// The first row does not begin a session, or a later one does.
    #[error("row {0}: a session is begun by its first row and by no other")]
    Beginning(u64),
    /// An outcome has no intent.
    #[error("row {0}: an outcome without its intent")]
    NoIntent(u64),
    /// A row moves the session in a way that the table does not hold.
    #[error("row {seq}")]
    Illegal {
        /// The row.
        seq: u64,
        /// Why.
        #[source]
        source: IllegalOperatorEvent,
    },
    /// A row moves the planner in a way that the table does not hold.
    #[error("row {seq}")]
    IllegalPlanner {
        /// The row.
        seq: u64,
        /// Why.
        #[source]
        source: IllegalPlannerEvent,
    },
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallRecord {
    /// Its number in the session.
    pub number: u32,
    /// The plan that it belongs to, where it is a step of one.
    pub plan_id: Option<String>,
    /// The step.
    pub step: Option<u32>,
    /// The call.
    pub call: ToolCall,
    /// What it has come to, or why not.
    pub result: Result<ToolResult, OperatorError>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

impl CallRecord {
    /// Tells whether it made a run that its target failed.
    fn failed_on_target(&self) -> bool {
        let verdict = self.result.as_ref().ok().and_then(|result| result.verdict);
        matches!(verdict, Some(VerdictKind::Fail | VerdictKind::Flaky))
    }
}

/// A confirmation that was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GivenConfirmation {
    /// What it is bound to.
    pub digest: String,
    /// Until when it holds, in milliseconds since 1970.
    pub until_ms: u64,
}

/// The state of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// What it is held to.
    pub charter: Charter,
    /// When it began, in milliseconds since 1970.
    pub begun_ms: u64,
    /// When its last row was written.
    pub last_ms: u64,
    /// For how long it was at work, in milliseconds.
    pub busy_ms: u64,
    /// Number of the last row.
    pub seq: u64,
    /// Hash of the last row.
    pub hash: RowHash,
    /// Where it stands.
    pub state: OperatorState,
    /// Where its planner stands.
    pub planner: PlannerState,
    /// What is asked for.
    pub request: Option<UserRequest>,
    /// What is asked of the person, while it is asked.
    pub questions: Vec<ClarifyingQuestion>,
    /// What was answered, by slots.
    pub answers: RequestAnswers,
    /// What the plan depends on.
    pub context: SessionContext,
    /// The plan.
    pub plan: Option<SessionPlan>,
    /// How many plans were made.
    pub iteration: u32,
    /// Dangerous calls of the plan.
    pub dangers: Vec<DangerousCall>,
    /// Digest and end of the time of a confirmation that is waited for.
    pub waits: Option<GivenConfirmation>,
    /// The confirmation that was given last.
    pub confirmed: Option<GivenConfirmation>,
    /// All calls that have ended.
    pub calls: Vec<CallRecord>,
    /// Failures that are to be handled, by steps.
    pub failures: BTreeMap<u32, OperatorError>,
    /// How often each step of the plan has failed.
    pub failed_times: BTreeMap<u32, u32>,
    /// Why the verification failed, while that is to be handled.
    pub unverified: Option<OperatorError>,
    /// Files that calls have changed, and whether they are as before again.
    pub changes: Vec<(ChangedFiles, bool)>,
    /// The images that places had before, as far as records tell; nothing where they do not.
    pub earlier_images: BTreeMap<String, Option<EarlierImage>>,
    /// What a person should know; may hold hostile text.
    pub remarks: Vec<String>,
    /// Why it ends before its goal.
    pub blocked: Option<BlockReason>,
    /// The verification has passed.
    pub verified: bool,
    /// A person, or a signal, asks for the end.
    pub cancel: Option<String>,
    /// The summary.
    pub summary: Option<SessionSummary>,
    /// What models have used, and what is granted and not accounted for.
    pub used: Usage,
    /// What is granted to the work under way.
    pub granted: Option<Usage>,
    /// How many steps were replaced by other ones.
    pub adjustments: u32,
    /// How a model phrased the question to what the lab knows; empty where it could not.
    pub search: Option<String>,
    /// What a model has answered the person; hostile text.
    pub model_answer: Option<Vec<String>>,
    /// Calls that were begun and have no outcome, by their numbers.
    pub in_flight: BTreeMap<u32, CallIntent>,
    /// The round is over.
    pub ended: bool,
    begun_work: Option<SessionWork>,
    calls_begun: u32,
}

impl Session {
    /// Folds the rows of a journal.
    ///
    /// # Errors
    /// The rows are not the journal of a session.
    pub fn of(rows: &[SessionRow]) -> Result<Self, SessionFoldError> {
        let Some((first, rest)) = rows.split_first() else {
            return Err(SessionFoldError::Beginning(1));
        };
        let SessionEntry::Begun(charter) = &first.entry else {
            return Err(SessionFoldError::Beginning(1));
        };
        let mut session = Self {
            charter: charter.clone(),
            begun_ms: first.time_ms,
            last_ms: first.time_ms,
            busy_ms: 0,
            seq: first.seq,
            hash: first.hash,
            state: OperatorState::Idle,
            planner: PlannerState::Init,
            request: None,
            questions: Vec::new(),
            answers: RequestAnswers::new(),
            context: SessionContext::default(),
            plan: None,
            iteration: 0,
            dangers: Vec::new(),
            waits: None,
            confirmed: None,
            calls: Vec::new(),
            failures: BTreeMap::new(),
            failed_times: BTreeMap::new(),
            unverified: None,
            changes: Vec::new(),
            earlier_images: BTreeMap::new(),
            remarks: Vec::new(),
            blocked: None,
            verified: false,
            cancel: None,
            summary: None,
            used: Usage::default(),
            granted: None,
            adjustments: 0,
            search: None,
            model_answer: None,
            in_flight: BTreeMap::new(),
            ended: false,
            begun_work: None,
            calls_begun: 0,
        };
        let said = OperatorEvent::UserMessage { text: charter.text.clone() };
        session.moves(first.seq, &said)?;
        rest.iter().try_for_each(|row| session.apply(row))?;
        Ok(session)
    }

    /// Adds a row.
    ///
    /// # Errors
    /// The row does not follow the ones before it.
    pub fn apply(&mut self, row: &SessionRow) -> Result<(), SessionFoldError> {
        let resumed = row.entry == SessionEntry::Request(PersonRequest::Resume);
        if !self.waits_for_person() && !resumed {
            self.busy_ms += row.time_ms.saturating_sub(self.last_ms);
        }
        self.last_ms = row.time_ms;
        match &row.entry {
            SessionEntry::Begun(_) => return Err(SessionFoldError::Beginning(row.seq)),
            SessionEntry::Intent(intent) => {
                self.begun_work = Some(intent.work);
                // What was granted before and has no outcome stays used.
                self.granted = intent.granted();
                self.used = self.used.with(self.granted.unwrap_or_default());
                if let Some(call) = &intent.call {
                    let request = OperatorEvent::ToolCallRequest {
                        name: call.call.name.clone(),
                        args: call.call.arguments.clone(),
                    };
                    self.moves(row.seq, &request)?;
                    // A call that only reads and was cut off is repeated under another number.
                    let again = |other: &CallIntent| other.step == call.step;
                    self.in_flight.retain(|_, other| !again(other));
                    self.in_flight.insert(call.number, call.clone());
                    self.calls_begun = self.calls_begun.max(call.number);
                    if let Some(step) = call.step {
                        self.step_stands(step, StepStatus::InProgress);
                    }
                }
            }
            SessionEntry::Outcome(outcome) => self.outcome(row.seq, outcome)?,
            SessionEntry::Request(request) => self.request(row, request)?,
        }
        (self.seq, self.hash) = (row.seq, row.hash);
        Ok(())
    }

    fn moves(&mut self, seq: u64, event: &OperatorEvent) -> Result<(), SessionFoldError> {
        let (state, _) =
            next(self.state, event).map_err(|source| SessionFoldError::Illegal { seq, source })?;
        self.state = state;
        match event {
            OperatorEvent::Confirm { yes: true, .. } => {
                self.confirmed = self.waits.take();
                // What had failed is repeated, confirmed.
                self.failures.clear();
            }
            OperatorEvent::Confirm { yes: false, .. } => {
                self.waits = None;
                self.blocked = Some(BlockReason::Refused);
            }
            OperatorEvent::StepFailed { .. }
            | OperatorEvent::Timeout
            | OperatorEvent::Cancel { .. } => self.waits = None,
            OperatorEvent::NotPossible { error } | OperatorEvent::Blocked { error } => {
                self.blocked = Some(
                    self.blocked.take().unwrap_or(BlockReason::Failed { error: error.clone() }),
                );
            }
            OperatorEvent::VerificationFailed { error } => self.unverified = Some(error.clone()),
            OperatorEvent::VerificationPassed => {
                (self.unverified, self.verified) = (None, true);
            }
            OperatorEvent::Repairable => {
                self.failures.clear();
                self.unverified = None;
            }
            OperatorEvent::ClarificationAnswer { .. } => self.questions.clear(),
            OperatorEvent::Closed => self.ended = true,
            _ => {}
        }
        Ok(())
    }

    fn outcome(&mut self, seq: u64, outcome: &WorkOutcome) -> Result<(), SessionFoldError> {
        if self.begun_work != Some(outcome.work) {
            return Err(SessionFoldError::NoIntent(seq));
        }
        if let Some(number) = outcome.call {
            let intent = self.in_flight.remove(&number).ok_or(SessionFoldError::NoIntent(seq))?;
            self.keep(&intent, outcome);
        }
        self.used = self.used.without(self.granted.take().unwrap_or_default());
        outcome.facts.iter().for_each(|fact| self.learn(fact));
        for event in &outcome.events {
            self.moves(seq, event)?;
        }
        for &event in &outcome.planner {
            self.planner = planner_next(self.planner, event)
                .map_err(|source| SessionFoldError::IllegalPlanner { seq, source })?;
        }
        Ok(())
    }

    fn keep(&mut self, intent: &CallIntent, outcome: &WorkOutcome) {
        let failed = outcome.facts.iter().find_map(|fact| match fact {
            SessionFact::CallFailed { error, .. } => Some(error.clone()),
            _ => None,
        });
        let answered = outcome.events.iter().find_map(|event| match event {
            OperatorEvent::ToolCallResult { ok: true, payload, .. } => {
                serde_json::from_value::<ToolResult>(payload.clone()).ok()
            }
            _ => None,
        });
        let result = match (failed, answered) {
            (Some(error), _) => Err(error),
            (None, Some(result)) => Ok(result),
            (None, None) => Ok(ToolResult::of(Value::Null)),
        };
        self.calls.push(CallRecord {
            number: intent.number,
            plan_id: intent.step.and(self.plan.as_ref().map(|plan| plan.plan_id.clone())),
            step: intent.step,
            call: intent.call.clone(),
            result,
            duration_ms: outcome.duration_ms,
        });
    }

    fn step_stands(&mut self, step: u32, status: StepStatus) {
        let id = step.to_string();
        let steps = self.plan.iter_mut().flat_map(|plan| &mut plan.steps);
        if let Some(step) = steps.into_iter().find(|step| step.step_id == id) {
            step.status = status;
        }
    }

    fn learn(&mut self, fact: &SessionFact) {
        match fact.clone() {
            SessionFact::Understood { request } => self.request = Some(request),
            SessionFact::Asked { questions } => self.questions = questions,
            SessionFact::Context { context } => self.context = context,
            SessionFact::Planned { plan, dangers } => {
                self.plan = Some(plan);
                self.dangers = dangers;
                self.iteration += 1;
                self.failures.clear();
                self.failed_times.clear();
                self.verified = false;
            }
            SessionFact::StepStands { step, status } => self.step_stands(step, status),
            SessionFact::CallFailed { step: Some(step), error } => {
                *self.failed_times.entry(step).or_default() += 1;
                self.failures.insert(step, error);
            }
            SessionFact::CallFailed { step: None, .. } => {}
            SessionFact::Waits { digest, until_ms } => {
                self.waits = Some(GivenConfirmation { digest, until_ms });
            }
            SessionFact::ModelAsked { tokens, micro_usd, .. }
            | SessionFact::ModelDropped { tokens, micro_usd } => {
                self.used = self.used.with(Usage { tokens, micro_usd });
            }
            SessionFact::StepAdjusted { plan, dangers, .. } => {
                (self.plan, self.dangers) = (Some(plan), dangers);
                self.adjustments += 1;
                self.failures.clear();
            }
            SessionFact::SearchPhrased { question } => self.search = Some(question),
            SessionFact::ModelAnswered { lines } => self.model_answer = Some(lines),
            SessionFact::Degraded { step, call, error } => {
                let id = step.to_string();
                self.remarks.push(format!("step {id} was carried out by {}: {error}", call.tool));
                let steps = self.plan.iter_mut().flat_map(|plan| &mut plan.steps);
                if let Some(step) = steps.into_iter().find(|step| step.step_id == id) {
                    step.tool_calls = vec![call];
                }
                self.failed_times.remove(&step);
            }
            SessionFact::FilesChanged(change) => self.changes.push((change, false)),
            SessionFact::RolledBack { call, files } => {
                self.undone(call);
                let shown = files.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
                self.remarks.push(format!(
                    "call {call} failed and had changed {} files, which are as before: {shown}",
                    files.len()
                ));
            }
            SessionFact::EarlierImage { place, image } => {
                self.earlier_images.entry(place).or_insert(image);
            }
            SessionFact::CaseKept { .. } => {}
            SessionFact::Remark { text } => self.remarks.push(text),
            SessionFact::Blocked { reason } => self.blocked = Some(reason),
            SessionFact::Summary { summary } => self.summary = Some(summary),
        }
    }

    /// A request that comes too late, or for something else than what waits, changes nothing.
    fn request(
        &mut self,
        row: &SessionRow,
        request: &PersonRequest,
    ) -> Result<(), SessionFoldError> {
        match request {
            PersonRequest::Resume => {}
            PersonRequest::Undone { call } => self.undone(*call),
            PersonRequest::Answer { answers } => {
                if self.state == OperatorState::Clarifying {
                    let slots = self.questions.iter().map(|question| question.slot.clone());
                    self.answers.extend(slots.zip(answers.iter().cloned()));
                    let text = answers.join("; ");
                    self.moves(row.seq, &OperatorEvent::ClarificationAnswer { text })?;
                }
            }
            PersonRequest::Confirm { yes, digest } => {
                let fits = |waits: &&GivenConfirmation| {
                    waits.digest == *digest && row.time_ms <= waits.until_ms
                };
                if self.waits.as_ref().filter(fits).is_some() {
                    if let Some(waits) = &mut self.waits {
                        let holds = self.charter.limits.confirm_s.saturating_mul(1000);
                        waits.until_ms = row.time_ms.saturating_add(holds);
                    }
                    let scope = ConfirmScope { digest: digest.clone() };
                    self.moves(row.seq, &OperatorEvent::Confirm { yes: *yes, scope })?;
                }
            }
            PersonRequest::Cancel { why } => {
                self.cancel.get_or_insert_with(|| why.clone());
            }
        }
        Ok(())
    }

    fn undone(&mut self, call: u32) {
        for (change, undone) in &mut self.changes {
            *undone |= change.call == call;
        }
    }

    /// Tells whether only a person can carry the session on.
    pub fn waits_for_person(&self) -> bool {
        matches!(self.state, OperatorState::Clarifying | OperatorState::AwaitingConfirmation)
    }

    /// Returns the number of the next call.
    pub fn next_call(&self) -> u32 {
        self.calls_begun + 1
    }

    /// Returns for how long the session may still be at work, in milliseconds.
    pub fn time_left_ms(&self, now_ms: u64) -> u64 {
        let running = now_ms.saturating_sub(self.last_ms);
        let limit = self.charter.limits.session_s.saturating_mul(1000);
        limit.saturating_sub(self.busy_ms.saturating_add(running))
    }

    /// Returns the last call of a step of the present plan.
    pub fn last_call_of(&self, step: u32) -> Option<&CallRecord> {
        let plan = self.plan.as_ref().map(|plan| plan.plan_id.as_str());
        self.calls
            .iter()
            .rev()
            .find(|record| record.step == Some(step) && record.plan_id.as_deref() == plan)
    }

    /// Returns the last result of a call without a step, by the name of its tool.
    pub fn context_result(&self, tool: &str) -> Option<&ToolResult> {
        let of_tool = |record: &&CallRecord| record.step.is_none() && record.call.name == tool;
        self.calls.iter().rev().find(of_tool).and_then(|record| record.result.as_ref().ok())
    }

    /// Returns the result of the last call of a tool without a step, where it succeeded.
    pub fn last_read(&self, tool: &str) -> Option<&ToolResult> {
        let of_tool = |record: &&CallRecord| record.step.is_none() && record.call.name == tool;
        self.calls.iter().rev().find(of_tool)?.result.as_ref().ok()
    }

    /// Returns what the steps of the present plan have come to, as references see it.
    pub fn step_outcomes(&self) -> StepOutcomes {
        let mut outcomes = StepOutcomes::new();
        let plan = self.plan.as_ref().map(|plan| plan.plan_id.as_str());
        for record in self.calls.iter().filter(|record| record.plan_id.as_deref() == plan) {
            if let (Some(step), Ok(result)) = (record.step, &record.result) {
                outcomes.insert(
                    step,
                    json!({
                        "data": result.data,
                        "run": result.run,
                        "verdict": result.verdict,
                        "exit_code": result.exit_code,
                    }),
                );
            }
        }
        outcomes
    }

    /// Lists the calls that decide about the session: of each place, tool and arguments the last one, so that
    /// a run that was repeated after a recovery of the rig replaces the one that the rig spoiled. A run that
    /// failed on its target stands, whatever a later one with the same arguments came to.
    pub fn deciding_calls(&self) -> Vec<&CallRecord> {
        let mut last: BTreeMap<String, &CallRecord> = BTreeMap::new();
        for record in self.calls.iter().filter(|record| record.step.is_some()) {
            let entry = last.entry(format!("{} {}", record.call.name, record.call.arguments));
            entry
                .and_modify(|known| {
                    if !known.failed_on_target() {
                        *known = record;
                    }
                })
                .or_insert(record);
        }
        let mut records: Vec<_> = last.into_values().collect();
        records.sort_by_key(|record| record.number);
        records
    }
}
