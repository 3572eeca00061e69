//! Work that asks a model: the plan, a better plan, a step in the place of another, the answer to the person.
//!
//! Each has its intent on the disk before anything is sent. A cancellation and the end of the session's time drop
//! the question, which ends the connection.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jig_agents::Usage;
use jig_agents::roles::{AgentRole, RoleReach};
use tokio::time::{Instant, interval};

use super::drive::{Driven, Driver, LOOK, millis};
use super::fold::Session;
use super::work;
use crate::error::{OperatorCode, OperatorError};
use crate::journal::{
    BlockReason, ClarifyingQuestion, SessionEntry, SessionFact, SessionWork, WorkIntent,
    WorkOutcome,
};
use crate::machine::{OperatorEvent, PlannerEvent};
use crate::models::{self, LanguageModel, ModelTask, PlanAnswer, Thinker};
use crate::plan::{DangerousCall, PlanDraft, PlanOrigin, SessionPlan, StepStatus, lower};

/// A plan that was checked, with its dangerous calls.
type JudgedPlan = (SessionPlan, Vec<DangerousCall>);

/// Checks a draft.
type PlanJudge = Box<dyn Fn(&PlanDraft) -> Result<JudgedPlan, OperatorError> + Send + Sync>;

/// What came of a question: the answer, and what was asked.
type Thought<T> = (Result<T, OperatorError>, Vec<SessionFact>);

impl Driver<'_> {
    /// Returns the model of the session.
    fn model(&self) -> Result<Arc<dyn LanguageModel>, OperatorError> {
        match &self.binding.model {
            Some(Ok(model)) => Ok(Arc::clone(model)),
            Some(Err(error)) => Err(error.clone()),
            None => {
                Err(OperatorError::new(OperatorCode::Model, "no model is configured").untouched())
            }
        }
    }

    /// Grants tokens and money, and writes the intent of the work. Nothing is asked where none are left.
    fn begin(&mut self, work: SessionWork) -> Driven<Result<Thinker, OperatorError>> {
        let model = match self.model() {
            Ok(model) => model,
            Err(error) => return Ok(Err(error)),
        };
        let limits = &self.session.charter.limits;
        let most = Usage { tokens: limits.tokens, micro_usd: limits.micro_usd };
        let whole = model.limits().grant();
        let grant = whole.at_most(most.without(self.session.used));
        let used_up = if grant.tokens == 0 {
            Some((format!("{} tokens that are", most.tokens), "tokens"))
        } else if grant.micro_usd == 0 && whole.micro_usd > 0 {
            Some((format!("{} millionths of a dollar that are", most.micro_usd), "usd"))
        } else {
            None
        };
        if let Some((what, key)) = used_up {
            let words = format!("the session has used the {what} its limit");
            let error = OperatorError::new(OperatorCode::PolicyDenied, words);
            return Ok(Err(error.next(format!("raise session.{key} in agents.toml")).untouched()));
        }
        let input = self.session.hash.to_string();
        let Usage { tokens, micro_usd: grant_micro_usd } = grant;
        let intent = WorkIntent { work, call: None, grant: Some(tokens), grant_micro_usd, input };
        self.journal.append(&SessionEntry::Intent(intent))?;
        self.catch_up()?;
        let left = Duration::from_millis(self.session.time_left_ms(self.now_ms()));
        Ok(Ok(Thinker::new(model, grant, left)))
    }

    /// Waits for an answer; nothing where the session was cancelled or its time ran out meanwhile. All that was
    /// granted then counts as used.
    async fn watched<T>(&mut self, thinking: impl Future<Output = T>) -> Driven<Option<T>> {
        let mut thinking = std::pin::pin!(thinking);
        let mut looks = interval(LOOK);
        looks.tick().await;
        loop {
            tokio::select! {
                biased;
                done = &mut thinking => return Ok(Some(done)),
                _ = looks.tick() => {
                    self.catch_up()?;
                    let over = self.session.time_left_ms(self.now_ms()) == 0;
                    if self.session.cancel.is_some() || over {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Ends work that asked a model.
    fn thought(&mut self, begun: Instant, mut outcome: WorkOutcome) -> Driven<()> {
        outcome.duration_ms = millis(begun.elapsed());
        self.journal.append(&SessionEntry::Outcome(outcome))?;
        self.catch_up()
    }

    /// Ends work whose question was dropped.
    fn dropped(&mut self, begun: Instant, work: SessionWork) -> Driven<()> {
        let Usage { tokens, micro_usd } = self.session.granted.unwrap_or_default();
        let facts = vec![SessionFact::ModelDropped { tokens, micro_usd }];
        self.thought(begun, WorkOutcome { facts, ..work::outcome_of(work) })
    }

    /// Makes the plan by the model.
    pub(super) async fn plan_by_model(&mut self) -> Driven<()> {
        let begun = Instant::now();
        let mut thinker = match self.begin(SessionWork::Plan)? {
            Ok(thinker) => thinker,
            Err(error) => return self.did(work::not_possible(SessionWork::Plan, error)),
        };
        let judge = self.judge(self.session.iteration + 1);
        let task = self.task();
        let thinking = async move {
            let made = models::planned(&mut thinker, &task, &*judge).await;
            (made, thinker.into_facts())
        };
        let Some((made, mut facts)) = self.watched(thinking).await? else {
            return self.dropped(begun, SessionWork::Plan);
        };
        let outcome = match made {
            Ok(PlanAnswer::Plan((plan, dangers))) => {
                let planned = self.planned_with(plan, dangers);
                WorkOutcome { planner: vec![PlannerEvent::Planned], ..planned }
            }
            Ok(PlanAnswer::Questions(questions)) => {
                let name = self.binding.model_name();
                let headed = |question: ClarifyingQuestion| ClarifyingQuestion {
                    text: format!("{name} asks: {}", question.text),
                    ..question
                };
                let questions = questions.into_iter().map(headed).collect();
                WorkOutcome {
                    facts: vec![SessionFact::Asked { questions }],
                    events: vec![OperatorEvent::ContextMissing],
                    ..work::outcome_of(SessionWork::Plan)
                }
            }
            Err(error) => work::not_possible(SessionWork::Plan, error),
        };
        facts.extend(outcome.facts.clone());
        self.thought(begun, WorkOutcome { facts, ..outcome })
    }

    /// Asks for a better plan. A failure of the target is an answer, and no reason for another plan.
    pub(super) async fn refine_by_model(&mut self, error: OperatorError) -> Driven<()> {
        let begun = Instant::now();
        let gives_up = |error| WorkOutcome {
            planner: vec![PlannerEvent::IterationsUsedUp],
            events: vec![OperatorEvent::Blocked { error }],
            ..work::outcome_of(SessionWork::Recover)
        };
        let used_up = self.session.iteration >= self.session.charter.limits.iterations;
        if used_up || error.code == OperatorCode::BuildFail {
            return self.did(gives_up(error));
        }
        let mut thinker = match self.begin(SessionWork::Recover)? {
            Ok(thinker) => thinker,
            Err(_) => return self.did(gives_up(error)),
        };
        let judge = self.judge(self.session.iteration + 1);
        let (task, results) = (self.task(), models::results_parts(&self.session));
        let thinking = async move {
            let made = models::refined(&mut thinker, &task, results, &*judge).await;
            (made, thinker.into_facts())
        };
        let Some((made, mut facts)): Option<Thought<Option<JudgedPlan>>> =
            self.watched(thinking).await?
        else {
            return self.dropped(begun, SessionWork::Recover);
        };
        let mut outcome = match made {
            Ok(Some((plan, dangers))) => {
                let mut refined = self.planned_with(plan, dangers);
                if refined.events == [OperatorEvent::PlanReady] {
                    refined.events = vec![OperatorEvent::Repairable];
                }
                WorkOutcome { planner: vec![PlannerEvent::PlanRefined], ..refined }
            }
            Ok(None) => gives_up(error),
            Err(why) => {
                let text = format!("the model gave no better plan: {why}");
                facts.push(SessionFact::Remark { text });
                gives_up(error)
            }
        };
        outcome.work = SessionWork::Recover;
        facts.extend(outcome.facts);
        self.thought(begun, WorkOutcome { facts, ..outcome })
    }

    /// Tells whether the model may write another step in the place of one that failed. What a policy refused is not
    /// got around, a target that failed is an answer, and what may have changed something is not repeated.
    pub(super) fn may_adjust(&self) -> bool {
        let class = |error: &OperatorError| {
            let arguments = matches!(error.code, OperatorCode::InvalidArgs | OperatorCode::Model);
            arguments && error.untouched
        };
        self.session.by_model()
            && self.session.adjustments < self.session.charter.limits.iterations
            && self.session.failures.values().all(class)
    }

    /// Asks for another step in the place of the first that failed; where there is none, the failure ends the task.
    pub(super) async fn adjust_by_model(&mut self, error: OperatorError) -> Driven<()> {
        let begun = Instant::now();
        let first = self.session.failures.keys().next().copied();
        let (Some(step), Some(plan)) = (first, self.session.plan.clone()) else {
            return self.did(self.given_up(error));
        };
        let mut thinker = match self.begin(SessionWork::Recover)? {
            Ok(thinker) => thinker,
            Err(_) => return self.did(self.given_up(error)),
        };
        let judge = self.judge(self.session.iteration);
        let (task, draft, why) = (self.task(), plan.drafted(), error.clone());
        let thinking = async move {
            let made = models::adjusted(&mut thinker, &task, (&draft, step, &why), &*judge).await;
            (made, thinker.into_facts())
        };
        let Some((made, mut facts)) = self.watched(thinking).await? else {
            return self.dropped(begun, SessionWork::Recover);
        };
        let outcome = match made {
            Ok((thought, Some((mut adjusted, dangers)))) => {
                keep_statuses(&mut adjusted, &plan, step);
                let (event, waits) = work::plan_follows(&self.session, &dangers, self.now_ms());
                let event = match event {
                    OperatorEvent::PlanReady => OperatorEvent::Repairable,
                    other => other,
                };
                let thought = thought.chars().take(500).collect();
                let adjusted = SessionFact::StepAdjusted { step, plan: adjusted, dangers, thought };
                WorkOutcome {
                    facts: std::iter::once(adjusted).chain(waits).collect(),
                    events: vec![event],
                    planner: vec![PlannerEvent::StepAdjusted],
                    ..work::outcome_of(SessionWork::Recover)
                }
            }
            Ok((_, None)) => self.given_up(error),
            Err(why) => {
                let text = format!("the model gave no other step: {why}");
                facts.push(SessionFact::Remark { text });
                self.given_up(error)
            }
        };
        facts.extend(outcome.facts.clone());
        self.thought(begun, WorkOutcome { facts, ..outcome })
    }

    /// Ends the task at steps that failed.
    fn given_up(&self, error: OperatorError) -> WorkOutcome {
        let steps = self.session.failures.keys();
        let blocked = |&step: &u32| SessionFact::StepStands { step, status: StepStatus::Blocked };
        WorkOutcome {
            facts: steps.map(blocked).collect(),
            events: vec![OperatorEvent::Blocked { error }],
            planner: vec![PlannerEvent::StepGivenUp],
            ..work::outcome_of(SessionWork::Recover)
        }
    }

    /// Tells whether the model is to phrase a question to what the lab knows: the words of the request found
    /// nothing.
    pub(super) fn wants_search(&self) -> bool {
        let session = &self.session;
        let may = session.charter.model.as_ref().is_some_and(|model| model.search);
        let found = session.context_result(work::KNOWLEDGE);
        let hits = found.and_then(|found| found.data.get("hits")?.as_array());
        may && session.by_model() && session.search.is_none() && hits.is_some_and(Vec::is_empty)
    }

    /// Asks the model for a question to what the lab knows. Without one the plan is made without.
    pub(super) async fn search_by_model(&mut self) -> Driven<()> {
        let begun = Instant::now();
        let phrased = |question: String| SessionFact::SearchPhrased { question };
        let mut thinker = match self.begin(SessionWork::Context)? {
            Ok(thinker) => thinker,
            Err(_) => {
                let facts = vec![phrased(String::new())];
                return self.did(WorkOutcome { facts, ..work::outcome_of(SessionWork::Context) });
            }
        };
        let mut task = self.task();
        task.parts.clear();
        let thinking = async move {
            let made = models::searched(&mut thinker, &task).await;
            (made, thinker.into_facts())
        };
        let Some((made, mut facts)) = self.watched(thinking).await? else {
            return self.dropped(begun, SessionWork::Context);
        };
        facts.push(phrased(made.unwrap_or_default()));
        self.thought(begun, WorkOutcome { facts, ..work::outcome_of(SessionWork::Context) })
    }

    /// Tells whether the person is still owed an answer in words.
    pub(super) fn owes_answer(&self) -> bool {
        let session = &self.session;
        session.by_model()
            && session.model_answer.is_none()
            && session.cancel.is_none()
            && !matches!(session.blocked, Some(BlockReason::Refused | BlockReason::Unanswered))
            && session.calls.iter().any(|record| record.step.is_some())
            && session.time_left_ms(self.now_ms()) > 0
    }

    /// Asks the model to answer the person out of the results. Without an answer the summary stands alone.
    pub(super) async fn answer_by_model(&mut self) -> Driven<()> {
        let begun = Instant::now();
        let without = |error: &OperatorError| {
            let text = format!("the model gave no answer: {error}");
            vec![SessionFact::ModelAnswered { lines: Vec::new() }, SessionFact::Remark { text }]
        };
        let mut thinker = match self.begin(SessionWork::Summarize)? {
            Ok(thinker) => thinker,
            Err(error) => {
                let facts = without(&error);
                return self.did(WorkOutcome { facts, ..work::outcome_of(SessionWork::Summarize) });
            }
        };
        let (mut task, results) = (self.task(), models::results_parts(&self.session));
        task.parts.clear();
        let name = self.binding.model_name();
        let thinking = async move {
            let made = models::answered(&mut thinker, &task, results).await;
            (made, thinker.into_facts())
        };
        let Some((made, mut facts)) = self.watched(thinking).await? else {
            self.dropped(begun, SessionWork::Summarize)?;
            let error = OperatorError::new(OperatorCode::ToolTimeout, "there was no time for it");
            let facts = without(&error);
            return self.did(WorkOutcome { facts, ..work::outcome_of(SessionWork::Summarize) });
        };
        match made {
            Ok((answer, remark)) => {
                let mut lines = vec![format!("{name}: {}", answer.summary)];
                if !answer.root_cause.trim().is_empty() {
                    lines.push(format!("{name}: likely cause: {}", answer.root_cause));
                }
                facts.push(SessionFact::ModelAnswered { lines });
                facts.extend(remark.map(|text| SessionFact::Remark { text }));
            }
            Err(error) => facts.extend(without(&error)),
        }
        self.thought(begun, WorkOutcome { facts, ..work::outcome_of(SessionWork::Summarize) })
    }

    /// Collects what the model is told.
    fn task(&self) -> ModelTask {
        let reach = match self.model() {
            Ok(model) => model.roles().of(AgentRole::Test).map(|prompt| prompt.reach),
            Err(_) => Ok(RoleReach::None),
        };
        let tools = self.binding.door.list();
        ModelTask::of(&self.session, &tools, reach.unwrap_or(RoleReach::None))
    }

    /// Returns the check of a draft: it is lowered, and its dangerous calls are listed, with their files.
    fn judge(&self, number: u32) -> PlanJudge {
        let (tools, natures) = (self.binding.door.list(), self.session.context.natures());
        let origin = PlanOrigin {
            plan_id: format!("p{number}"),
            goal: self.session.charter.text.clone(),
            created_at: (self.binding.now)(),
        };
        let files = Arc::clone(&self.binding.files);
        Box::new(move |draft| {
            let plan = lower(draft, origin.clone(), &tools, &natures)?;
            let dangers = work::dangers_of(&plan, &tools, &natures, &|path| files.sha256(path))?;
            Ok((plan, dangers))
        })
    }
}

/// Keeps what is done of a plan when one of its steps is replaced.
fn keep_statuses(adjusted: &mut SessionPlan, before: &SessionPlan, replaced: u32) {
    let replaced = replaced.to_string();
    for step in adjusted.steps.iter_mut().filter(|step| step.step_id != replaced) {
        let known = before.steps.iter().find(|known| known.step_id == step.step_id);
        let status = known.map_or(StepStatus::Pending, |known| known.status);
        step.status = status;
    }
}

impl Session {
    /// Tells whether a model plans the session: the grammar does not understand its words, or is not asked.
    pub fn by_model(&self) -> bool {
        let words = matches!(self.charter.source, crate::journal::PlanSource::Words);
        words && self.charter.model.is_some() && self.request.is_none()
    }
}
