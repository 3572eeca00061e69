//! The driver: the only place with a loop, and the only writer of intents and outcomes.
//!
//! It asks the fold where the session stands, does the work of that state, and writes what came of it. What
//! work has found is kept nowhere else, so that a process that is killed and started again goes on as if
//! nothing had happened. Work that only computes writes its two rows at once; a call has its intent on the
//! disk before it is made.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jig_model::command::EventSink;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};

use super::calls::{ReadyCall, cut_off};
use super::fold::{Session, SessionFoldError};
use super::undo::{SessionUndo, may_change_files, places_to_look_up};
use super::work;
use crate::error::{OperatorCode, OperatorError};
use crate::journal::{
    BlockReason, CallIntent, ChangedFiles, CutOffEffect, PlanSource, SessionEntry, SessionFact,
    SessionJournal, SessionJournalError, SessionLock, SessionRow, SessionWork, WorkIntent,
    WorkOutcome,
};
use crate::machine::{OperatorEvent, OperatorState, PlannerEvent, PlannerState};
use crate::mcp::server_of_tool;
use crate::memory::{CaseMemory, SessionCase};
use crate::models::LanguageModel;
use crate::plan::{DangerousCall, PlanDraft, PlanOrigin, SessionPlan, StepStatus, lower};
use crate::planner::{PlanningTask, SessionPlanner};
use crate::summary::summarize;
use crate::tools::{ToolCall, ToolDoor};

/// How often requests of other processes are looked for.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// How long the memory may take to keep a case.
const KEEP: Duration = Duration::from_secs(2);

/// The files that calls name. The program binds it to the folder of the session.
pub trait SessionFiles: Send + Sync {
    /// Returns the SHA-256 of a file in lower-case hex.
    ///
    /// # Errors
    /// The file lies outside of the folder, or cannot be read.
    fn sha256(&self, path: &str) -> Result<String, OperatorError>;
}

/// Is shown each row as it is written.
pub trait SessionWatcher: Send + Sync {
    /// Shows a row, and the session behind it.
    fn row(&self, session: &Session, row: &SessionRow);
}

/// What a session is bound to.
pub struct SessionBinding {
    /// The tools.
    pub door: Arc<dyn ToolDoor>,
    /// What tools tell while they work.
    pub events: Arc<dyn EventSink>,
    /// The planner.
    pub planner: Arc<dyn SessionPlanner>,
    /// The model that the session may ask, or why it cannot be asked.
    pub model: Option<Result<Arc<dyn LanguageModel>, OperatorError>>,
    /// The files that calls name.
    pub files: Arc<dyn SessionFiles>,
    /// The clock.
    pub now: fn() -> Timestamp,
    /// Is shown each row.
    pub watcher: Arc<dyn SessionWatcher>,
    /// Notes and puts back files of the folder.
    pub undo: Arc<dyn SessionUndo>,
    /// Keeps what is learnt of sessions.
    pub memory: Arc<dyn CaseMemory>,
}

impl SessionBinding {
    /// Returns the name of the model, as answers are headed by it.
    pub(super) fn model_name(&self) -> String {
        match &self.model {
            Some(Ok(model)) => format!("model {}", model.name()),
            Some(Err(_)) | None => "model".to_owned(),
        }
    }
}

/// Says why a session cannot be driven.
#[derive(Debug, thiserror::Error)]
pub enum DriveSessionError {
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] SessionJournalError),
    /// The journal is not that of a session.
    #[error("the journal is not that of a session")]
    Fold(#[from] SessionFoldError),
}

pub(super) type Driven<T> = Result<T, DriveSessionError>;

/// Drives a session from where its journal stands to its end, or to where it waits for a person, and returns
/// it. `lock` is held meanwhile: one process at a time drives a session.
///
/// # Errors
/// The journal cannot be read or written. The session can be driven on from its last row.
pub async fn drive(
    journal: &mut SessionJournal,
    _lock: &SessionLock,
    binding: &SessionBinding,
) -> Driven<Session> {
    let session = Session::of(&journal.rows()?)?;
    let mut driver = Driver { journal, binding, session };
    driver.cut_off().await?;
    while !driver.session.ended {
        driver.catch_up()?;
        if driver.ended_from_outside()? {
            continue;
        }
        if !driver.work().await? {
            break;
        }
    }
    Ok(driver.session)
}

/// A session that is driven.
pub(super) struct Driver<'d> {
    pub(super) journal: &'d mut SessionJournal,
    pub(super) binding: &'d SessionBinding,
    pub(super) session: Session,
}

impl Driver<'_> {
    pub(super) fn catch_up(&mut self) -> Driven<()> {
        for row in self.journal.rows_behind(self.session.seq, self.session.hash)? {
            self.session.apply(&row)?;
            self.binding.watcher.row(&self.session, &row);
        }
        Ok(())
    }

    /// Writes work that is done: its intent and its outcome. What only computes is done again where a power cut
    /// takes it; what a person is shown, and the end, has to last.
    pub(super) fn did(&mut self, outcome: WorkOutcome) -> Driven<()> {
        let work = outcome.work;
        let input = self.session.hash.to_string();
        let intent = WorkIntent { work, call: None, grant: None, grant_micro_usd: 0, input };
        let lasts = outcome.events.iter().any(|event| {
            use OperatorEvent as E;
            matches!(
                event,
                E::ContextMissing
                    | E::DangerousPlanReady
                    | E::Cancel { .. }
                    | E::Timeout
                    | E::Closed
            )
        });
        let rows = [SessionEntry::Intent(intent), SessionEntry::Outcome(outcome)];
        match lasts {
            true => self.journal.append_all(&rows)?,
            false => self.journal.append_lazily(&rows)?,
        }
        self.catch_up()
    }

    /// Calls that were begun by a process that is gone: one that only reads is repeated when it is needed,
    /// one that is idempotent when its step is, and one beside a board has failed.
    async fn cut_off(&mut self) -> Driven<()> {
        let begun: Vec<CallIntent> = self.session.in_flight.values().cloned().collect();
        for intent in begun {
            if intent.effect == CutOffEffect::Device {
                self.cut_off_call(&intent, true).await?;
            }
        }
        Ok(())
    }

    /// Writes the outcome of a call that was cut off, and what it has changed until then.
    /// Where another process did it, others may have changed files since.
    async fn cut_off_call(&mut self, intent: &CallIntent, unsure: bool) -> Driven<()> {
        let mut outcome = cut_off(intent);
        if server_of_tool(&intent.call.name).is_some() {
            let changed = changed_by(&*self.binding.undo, intent).await;
            outcome.facts.extend(changed.map(|fact| match fact {
                SessionFact::FilesChanged(change) => {
                    SessionFact::FilesChanged(ChangedFiles { unsure, ..change })
                }
                fact => fact,
            }));
        }
        self.ended_call(outcome)
    }

    /// Handles a cancellation and the end of the session's time.
    fn ended_from_outside(&mut self) -> Driven<bool> {
        let at_work = !matches!(
            self.session.state,
            OperatorState::Idle | OperatorState::Summarizing | OperatorState::Done
        );
        if !at_work {
            return Ok(false);
        }
        let work = self.work_of_state();
        if let Some(why) = self.session.cancel.clone() {
            self.did(work::cancelled(work, why))?;
            return Ok(true);
        }
        let recovering = self.session.state == OperatorState::Recovering;
        let waiting = self.session.waits_for_person();
        if !waiting && !recovering && self.session.time_left_ms(self.now_ms()) == 0 {
            self.did(work::out_of_time(&self.session, work))?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Returns the time of the session, which no setting of a clock moves.
    pub(super) fn now_ms(&self) -> u64 {
        self.journal.now_ms()
    }

    fn work_of_state(&self) -> SessionWork {
        match self.session.state {
            OperatorState::Idle | OperatorState::Done => SessionWork::Close,
            OperatorState::Intake | OperatorState::Clarifying => SessionWork::Intake,
            OperatorState::ContextBuilding => SessionWork::Context,
            OperatorState::Planning => SessionWork::Plan,
            OperatorState::Executing => SessionWork::Wave,
            OperatorState::Verifying => SessionWork::Verify,
            OperatorState::Summarizing => SessionWork::Summarize,
            OperatorState::AwaitingConfirmation => SessionWork::Confirm,
            OperatorState::Recovering => SessionWork::Recover,
        }
    }

    /// Does the work of the state; tells whether there was any.
    async fn work(&mut self) -> Driven<bool> {
        match self.session.state {
            OperatorState::Idle => return Ok(false),
            OperatorState::Clarifying => return self.unanswered(),
            OperatorState::AwaitingConfirmation => return self.confirmation(),
            OperatorState::Intake => self.intake().await?,
            OperatorState::ContextBuilding => self.context().await?,
            OperatorState::Planning => self.plan().await?,
            OperatorState::Executing => self.execute().await?,
            OperatorState::Verifying => self.verify().await?,
            OperatorState::Recovering => self.recover().await?,
            OperatorState::Summarizing if self.owes_answer() => self.answer_by_model().await?,
            OperatorState::Summarizing => {
                let summary = summarize(&self.session);
                self.did(WorkOutcome {
                    events: vec![OperatorEvent::Summarized],
                    facts: vec![SessionFact::Summary { summary }],
                    ..work::outcome_of(SessionWork::Summarize)
                })?;
            }
            OperatorState::Done => {
                let planner = work::planner_end(self.session.planner);
                let facts = self.case_kept().await;
                self.did(WorkOutcome {
                    events: vec![OperatorEvent::Closed],
                    planner,
                    facts,
                    ..work::outcome_of(SessionWork::Close)
                })?;
            }
        }
        Ok(true)
    }

    /// Keeps the session as a case. A memory that fails or hangs changes nothing of how it ended.
    async fn case_kept(&self) -> Vec<SessionFact> {
        let Some(case) = SessionCase::of(&self.session, (self.binding.now)()) else {
            return Vec::new();
        };
        let kept = tokio::time::timeout(KEEP, self.binding.memory.keep(case)).await;
        let kept = kept.unwrap_or_else(|_| {
            let words = format!("the memory did not answer within {} s", KEEP.as_secs());
            Err(OperatorError::new(OperatorCode::ToolTimeout, words))
        });
        vec![match kept {
            Ok(kept) => SessionFact::CaseKept { unit: kept.unit, why_not: None },
            Err(error) => SessionFact::CaseKept { unit: None, why_not: Some(error.message) },
        }]
    }

    async fn intake(&mut self) -> Driven<()> {
        let request = match work::understood(&self.session) {
            Ok(request) => request,
            Err(error) => return self.did(work::not_possible(SessionWork::Intake, error)),
        };
        if self.session.context_result("boards").is_none() {
            let read = self.read(ToolCall::new("boards", json!({}))).await?;
            if self.session.cancel.is_some() {
                return Ok(());
            }
            if let Err(error) = read {
                return self.did(work::not_possible(SessionWork::Intake, error));
            }
        }
        let mut context = self.session.context.clone();
        if let Some(boards) = self.session.context_result("boards") {
            context.learn_boards(&boards.data);
        }
        context.now = (self.binding.now)();
        let mut outcome = work::outcome_of(SessionWork::Intake);
        let questions = request.as_ref().map(|request| {
            self.binding.planner.questions(request, &context, &self.session.answers)
        });
        let (request, questions) = match questions.transpose() {
            Ok(questions) => (request, questions),
            // What the grammar took for boards are other words: the model reads them.
            Err(_) if self.session.charter.model.is_some() => (None, None),
            Err(error) => return self.did(work::not_possible(SessionWork::Intake, error)),
        };
        outcome.facts.extend(request.map(|request| SessionFact::Understood { request }));
        outcome.facts.push(SessionFact::Context { context });
        match questions.filter(|questions| !questions.is_empty()) {
            Some(questions) => {
                outcome.facts.push(SessionFact::Asked { questions });
                outcome.events.push(OperatorEvent::ContextMissing);
            }
            None => {
                outcome.events.push(OperatorEvent::RequestUnderstood);
                // Behind questions of a model the planner goes on where it stands.
                if self.session.planner == PlannerState::Init {
                    outcome.planner.push(PlannerEvent::Initialized);
                }
            }
        }
        self.did(outcome)
    }

    async fn context(&mut self) -> Driven<()> {
        if let Some(call) = work::missing_context(&self.session) {
            // A plan can be made without what the lab knows.
            let needed = call.name != work::KNOWLEDGE;
            let read = self.read(call).await?;
            return match read {
                Err(error) if needed && self.session.cancel.is_none() => {
                    self.did(work::not_possible(SessionWork::Context, error))
                }
                _ => Ok(()),
            };
        }
        if self.wants_search() {
            return self.search_by_model().await;
        }
        let mut context = self.session.context.clone();
        if let Some(users) = self.session.context_result("places") {
            context.learn_users(&users.data);
        }
        if let Some(runs) = self.session.context_result("runs_list") {
            context.learn_runs(&runs.data);
        }
        let parsing = self.session.planner == PlannerState::Parsing;
        self.did(WorkOutcome {
            events: vec![OperatorEvent::ContextReady],
            planner: parsing.then_some(PlannerEvent::Parsed).into_iter().collect(),
            facts: vec![SessionFact::Context { context }],
            ..work::outcome_of(SessionWork::Context)
        })
    }

    /// Lowers a draft to the next plan of the session.
    pub(super) fn lowered(&self, draft: &PlanDraft) -> Result<SessionPlan, OperatorError> {
        let origin = PlanOrigin {
            plan_id: format!("p{}", self.session.iteration + 1),
            goal: self.session.charter.text.clone(),
            created_at: (self.binding.now)(),
        };
        lower(draft, origin, &self.binding.door.list(), &self.session.context.natures())
    }

    /// Returns the rows' contents of a plan: the fact of it, and the event that follows.
    pub(super) fn planned(&self, plan: SessionPlan) -> Result<WorkOutcome, OperatorError> {
        let tools = self.binding.door.list();
        let file = |path: &str| self.binding.files.sha256(path);
        let dangers = work::dangers_of(&plan, &tools, &self.session.context.natures(), &file)?;
        Ok(self.planned_with(plan, dangers))
    }

    /// Returns the same of a plan whose dangerous calls are known.
    pub(super) fn planned_with(
        &self,
        plan: SessionPlan,
        dangers: Vec<DangerousCall>,
    ) -> WorkOutcome {
        let mut outcome = work::outcome_of(SessionWork::Plan);
        outcome.facts.push(SessionFact::Planned { plan, dangers: dangers.clone() });
        if self.session.charter.plan_only {
            let why = "only the plan was asked for".to_owned();
            outcome.facts.push(SessionFact::Blocked { reason: BlockReason::PlanOnly });
            outcome.events.push(OperatorEvent::Cancel { why });
            return outcome;
        }
        let (event, facts) = work::plan_follows(&self.session, &dangers, self.now_ms());
        outcome.facts.extend(facts);
        outcome.events.push(event);
        outcome
    }

    async fn plan(&mut self) -> Driven<()> {
        if self.session.by_model() {
            return self.plan_by_model().await;
        }
        let begun = Instant::now();
        let draft = match (&self.session.charter.source, &self.session.request) {
            (PlanSource::Draft { draft }, _) => Ok(draft.clone()),
            (PlanSource::Words, Some(request)) => {
                let (context, answers) = (&self.session.context, &self.session.answers);
                self.binding.planner.plan(PlanningTask { request, context, answers }).await
            }
            (PlanSource::Words, None) => {
                Err(OperatorError::new(OperatorCode::Model, "there is no request to plan for"))
            }
        };
        let planned = draft.and_then(|draft| self.planned(self.lowered(&draft)?));
        let mut outcome = match planned {
            Ok(outcome) => WorkOutcome { planner: vec![PlannerEvent::Planned], ..outcome },
            Err(error) => work::not_possible(SessionWork::Plan, error),
        };
        outcome.duration_ms = millis(begun.elapsed());
        self.did(outcome)
    }

    /// A question that nobody answers does not end the session: it can be answered later.
    fn unanswered(&mut self) -> Driven<bool> {
        Ok(false)
    }

    /// Handles a confirmation that was given in advance, or did not come in time.
    fn confirmation(&mut self) -> Driven<bool> {
        let mut outcome = work::outcome_of(SessionWork::Confirm);
        let late = self.session.waits.as_ref().is_none_or(|waits| self.now_ms() > waits.until_ms);
        match work::confirmed_in_advance(&self.session) {
            Some(confirm) if !late => outcome.events.push(confirm),
            _ if late => {
                let reason = BlockReason::Unanswered;
                outcome.facts.push(SessionFact::Blocked { reason });
                outcome.events.push(OperatorEvent::Timeout);
            }
            _ => return Ok(false),
        }
        self.did(outcome)?;
        Ok(true)
    }

    async fn execute(&mut self) -> Driven<()> {
        if work::stops_early(&self.session) {
            return self.did(work::steps_done(&self.session));
        }
        let tools = self.binding.door.list();
        let wave = work::wave_of(&self.session, &tools);
        if wave.is_empty() {
            return self.did(work::steps_done(&self.session));
        }
        let natures = self.session.context.natures();
        let file = |path: &str| self.binding.files.sha256(path);
        let outcomes = self.session.step_outcomes();
        let now = self.now_ms();
        let numbers: Vec<u32> = wave.iter().filter_map(|step| step.step_id.parse().ok()).collect();
        let mut ready = Vec::new();
        let mut refused = Vec::new();
        for (step, &number) in wave.iter().zip(&numbers) {
            // A step that a cut-off left failed has its answer, and is judged with the others.
            let done = self.session.last_call_of(number).is_some_and(|last| last.result.is_ok());
            let answered = done && step.status == StepStatus::InProgress;
            if answered || self.session.failures.contains_key(&number) {
                continue;
            }
            let Some(template) = step.tool_calls.first() else { continue };
            let checked = crate::plan::bound_call(template, &outcomes, &tools).and_then(|call| {
                let danger = work::danger_of(step, &call, &tools, &natures, &file)?;
                self.allowed(danger.as_ref(), now)?;
                Ok(call)
            });
            match (checked, tools.find(&template.tool)) {
                (Ok(call), Some(tool)) => {
                    let at =
                        self.session.next_call() + u32::try_from(ready.len()).unwrap_or(u32::MAX);
                    let about = (tool.risk(&call.arguments), tool.timeout);
                    ready.push(ReadyCall::new(&self.session, at, Some(number), call, about, now));
                }
                (Ok(_), None) => refused.push((number, gone(&template.tool))),
                (Err(error), _) => refused.push((number, error)),
            }
        }
        if !refused.is_empty() {
            let mut outcome = work::outcome_of(SessionWork::Wave);
            for (step, error) in refused {
                outcome.facts.push(SessionFact::CallFailed { step: Some(step), error });
            }
            // None of the wave is begun where one of it cannot be.
            self.did(outcome)?;
            let outcome = work::judged(&self.session, &[]);
            return self.failed_wave(outcome);
        }
        let calls = ready.iter().map(|call| &call.intent.call);
        let unknown = places_to_look_up(&self.session, calls);
        if !unknown.is_empty() {
            // The wave is made ready again: its calls have other numbers then.
            return self.look_up_images(unknown).await;
        }
        self.make(ready).await?;
        if self.session.cancel.is_some() {
            return Ok(());
        }
        let judged = work::judged(&self.session, &numbers);
        self.did(judged)
    }

    /// Ends a wave of which nothing was begun.
    fn failed_wave(&mut self, mut outcome: WorkOutcome) -> Driven<()> {
        let first = self.session.failures.iter().next();
        if let Some((&step, error)) = first {
            let error = error.clone();
            outcome.planner.retain(|event| *event != PlannerEvent::StepOk);
            outcome.events = vec![OperatorEvent::StepFailed { step, error }];
        }
        self.did(outcome)
    }

    /// Tells whether a dangerous call is one that was shown and confirmed, and still is the same.
    fn allowed(
        &self,
        danger: Option<&crate::plan::DangerousCall>,
        now: u64,
    ) -> Result<(), OperatorError> {
        let Some(danger) = danger else { return Ok(()) };
        let denied = |words: String| {
            Err(OperatorError::new(OperatorCode::PolicyDenied, words)
                .next("ask again, and confirm what is shown")
                .untouched())
        };
        let Some(held) = &self.session.confirmed else {
            return denied(format!("step {} was not confirmed", danger.step));
        };
        if held.digest != crate::plan::confirmation_digest(&self.session.dangers) {
            return denied(format!("step {} is not what was confirmed", danger.step));
        }
        if now > held.until_ms {
            return denied(format!("the confirmation of step {} has expired", danger.step));
        }
        match self.session.dangers.contains(danger) {
            true => Ok(()),
            false => denied(format!(
                "step {} is not what was confirmed: a file or an argument has changed since",
                danger.step
            )),
        }
    }

    async fn verify(&mut self) -> Driven<()> {
        let commands = self.session.plan.iter().flat_map(|plan| &plan.verification.commands);
        let commands: Vec<String> = commands.cloned().collect();
        let begun = self.session.calls.len();
        for command in commands {
            let Ok(call) = crate::plan::verification_call(&command) else { continue };
            // What fails is judged below.
            let ended = self.read(call).await?;
            let stop = self.session.plan.as_ref().is_some_and(|p| p.verification.stop_on_fail);
            if self.session.cancel.is_some() {
                return Ok(());
            }
            if ended.is_err() && stop {
                break;
            }
        }
        let made: Vec<_> = self.session.calls[begun..].iter().collect();
        let outcome = work::verified(&self.session, &made);
        self.did(outcome)
    }

    /// Makes one call that only reads and belongs to no step.
    pub(super) async fn read(&mut self, call: ToolCall) -> Driven<Result<(), OperatorError>> {
        let tools = self.binding.door.list();
        let (risk, limit) = match tools.checked(&call) {
            Ok(tool) if tool.risk(&call.arguments).read_only => {
                (tool.risk(&call.arguments), tool.timeout)
            }
            Ok(tool) => {
                let words = format!("{} does not only read", tool.name);
                return Ok(Err(OperatorError::new(OperatorCode::PolicyDenied, words).untouched()));
            }
            Err(error) => return Ok(Err(error)),
        };
        let number = self.session.next_call();
        let ready = ReadyCall::new(&self.session, number, None, call, (risk, limit), self.now_ms());
        self.make(vec![ready]).await?;
        let record = self.session.calls.iter().rev().find(|record| record.number == number);
        Ok(record.map_or(Ok(()), |record| record.result.as_ref().map(drop).map_err(Clone::clone)))
    }

    /// Makes calls side by side. Their intents are on the disk before the first is made; each outcome is
    /// written as it comes. A cancellation drops those under way, which ends them in order.
    async fn make(&mut self, ready: Vec<ReadyCall>) -> Driven<()> {
        let spent = u32::try_from(self.session.calls.len()).unwrap_or(u32::MAX);
        let most = self.session.charter.limits.calls;
        let over = spent.saturating_add(u32::try_from(ready.len()).unwrap_or(u32::MAX)) > most;
        let rows: Vec<_> = ready.iter().map(|call| call.row(&self.session)).collect();
        // What only reads is repeated where its rows are lost.
        match ready.iter().all(|call| call.intent.effect == CutOffEffect::Pure) {
            true => self.journal.append_lazily(&rows)?,
            false => self.journal.append_all(&rows)?,
        }
        self.catch_up()?;
        if over {
            let error = || {
                OperatorError::new(
                    OperatorCode::PolicyDenied,
                    format!("the session has made {spent} calls, and {most} is its limit"),
                )
                .next("raise calls in agents.toml")
                .untouched()
            };
            for call in ready {
                self.ended_call(super::calls::outcome(&call.intent, Err(error()), 0))?;
            }
            return Ok(());
        }
        let tools = self.binding.door.list();
        let mut under_way = JoinSet::new();
        for call in ready {
            let (door, events) = (Arc::clone(&self.binding.door), Arc::clone(&self.binding.events));
            let noted = may_change_files(&tools, &call.intent.call);
            let undo = noted.then(|| Arc::clone(&self.binding.undo));
            under_way.spawn(async move {
                let Some(undo) = undo else { return call.made(door, events).await };
                let intent = call.intent.clone();
                let noted = undo.note(intent.number).await;
                let mut outcome = call.made(door, events).await;
                outcome.facts.extend(match noted {
                    Ok(()) => changed_by(&*undo, &intent).await,
                    Err(error) => Some(cannot_undo(&intent, &error)),
                });
                outcome
            });
        }
        let mut looks = interval(LOOK);
        looks.tick().await;
        let mut ended = VecDeque::new();
        while !under_way.is_empty() || !ended.is_empty() {
            if let Some(outcome) = ended.pop_front() {
                self.ended_call(outcome)?;
                continue;
            }
            tokio::select! {
                biased;
                Some(done) = under_way.join_next() => match done {
                    Ok(outcome) => ended.push_back(outcome),
                    // A call that panicked has no outcome of its own: it is judged as cut off.
                    Err(_) => break,
                },
                _ = looks.tick() => {
                    self.catch_up()?;
                    if self.session.cancel.is_some() {
                        break;
                    }
                }
            }
        }
        under_way.shutdown().await;
        // What has no outcome now was ended from outside.
        let left: Vec<CallIntent> = self.session.in_flight.values().cloned().collect();
        for intent in left {
            self.cut_off_call(&intent, false).await?;
        }
        Ok(())
    }

    /// Writes the outcome of a call.
    fn ended_call(&mut self, outcome: WorkOutcome) -> Driven<()> {
        let call = outcome.call.and_then(|call| self.session.in_flight.get(&call));
        let pure = call.is_some_and(|call| call.effect == CutOffEffect::Pure);
        let row = [SessionEntry::Outcome(outcome)];
        match pure {
            true => self.journal.append_lazily(&row)?,
            false => self.journal.append_all(&row)?,
        }
        self.catch_up()
    }
}

/// Returns what a call has changed in files, or that it is not known.
async fn changed_by(undo: &dyn SessionUndo, intent: &CallIntent) -> Option<SessionFact> {
    match undo.changed(intent.number).await {
        Ok(change) => change
            .map(|change| SessionFact::FilesChanged(ChangedFiles { step: intent.step, ..change })),
        Err(error) => Some(cannot_undo(intent, &error)),
    }
}

fn cannot_undo(intent: &CallIntent, error: &OperatorError) -> SessionFact {
    let CallIntent { number, call, .. } = intent;
    let text =
        format!("what call {number} ({}) changes in files cannot be undone: {error}", call.name);
    SessionFact::Remark { text }
}

fn gone(tool: &str) -> OperatorError {
    OperatorError::new(OperatorCode::Io, format!("the tool {tool} is not there any more"))
        .next("jig mcp tools")
        .untouched()
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
