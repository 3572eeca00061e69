//! The work of each state, as far as it needs nothing but the session: pure functions that say which row
//! comes next.

use std::collections::BTreeMap;
use std::time::Duration;

use jig_model::VerdictKind;
use serde_json::{Map, Value, json};

use super::fold::{CallRecord, Session};
use crate::error::{OperatorCode, OperatorError};
use crate::grammar::{NotUnderstood, RequestQuestion, UserRequest, names_call, parse};
use crate::journal::{BlockReason, PlanSource, SessionFact, SessionWork, WorkOutcome};
use crate::machine::{ConfirmScope, OperatorEvent, PlannerEvent, PlannerState};
use crate::plan::{
    BoardNature, DangerousCall, RiskLevel, SessionPlan, SessionStep, StepStatus, ToolCallTemplate,
    VerificationMode, call_danger, confirmation_digest, next_wave,
};
use crate::retry::{StepRetry, step_retry};
use crate::tools::{ToolCall, ToolList};

/// Starts an outcome.
pub(super) fn outcome_of(work: SessionWork) -> WorkOutcome {
    WorkOutcome {
        work,
        call: None,
        events: Vec::new(),
        planner: Vec::new(),
        facts: Vec::new(),
        duration_ms: 0,
    }
}

/// Ends a state without a plan.
pub(super) fn not_possible(work: SessionWork, error: OperatorError) -> WorkOutcome {
    WorkOutcome { events: vec![OperatorEvent::NotPossible { error }], ..outcome_of(work) }
}

/// Ends the session from wherever it is at work.
pub(super) fn cancelled(work: SessionWork, why: String) -> WorkOutcome {
    let reason = BlockReason::Cancelled { why: why.clone() };
    WorkOutcome {
        events: vec![OperatorEvent::Cancel { why }],
        facts: vec![SessionFact::Blocked { reason }],
        ..outcome_of(work)
    }
}

/// The session's time is up. Where there is a failure to handle, this is it.
pub(super) fn out_of_time(session: &Session, work: SessionWork) -> WorkOutcome {
    let limit = session.charter.limits.session_s;
    let failed = session.failures.iter().next();
    let failed = failed.map(|(step, error)| format!("; step {step}: {error}"));
    let words =
        format!("the session was at work for {limit} s, its limit{}", failed.unwrap_or_default());
    let error = OperatorError::new(OperatorCode::ToolTimeout, words)
        .next("raise session_s in agents.toml, or give --session-timeout");
    let reason = BlockReason::Failed { error };
    WorkOutcome {
        events: vec![OperatorEvent::Timeout],
        facts: vec![SessionFact::Blocked { reason }],
        ..outcome_of(work)
    }
}

/// Reads the words of the request, where they were not read yet.
pub(super) fn understood(session: &Session) -> Result<Option<UserRequest>, OperatorError> {
    match (&session.request, &session.charter.source) {
        (Some(request), _) => Ok(Some(request.clone())),
        (None, PlanSource::Draft { .. }) => Ok(None),
        // The model is asked where the grammar is not, or does not understand.
        (None, PlanSource::Words) if session.charter.model.as_ref().is_some_and(|m| m.first) => {
            Ok(None)
        }
        (None, PlanSource::Words)
            if session.charter.model.is_some() && parse(&session.charter.text).is_err() =>
        {
            Ok(None)
        }
        (None, PlanSource::Words) => parse(&session.charter.text).map(Some).map_err(|error| {
            let NotUnderstood { nearest, .. } = &error;
            let forms: Vec<_> = nearest.iter().map(|form| form.form).collect();
            OperatorError::new(
                OperatorCode::InvalidArgs,
                format!("{error}; nearest forms: {}", forms.join(" | ")),
            )
            .next("jig ask --forms")
            .untouched()
        }),
    }
}

/// The tool that searches what the lab has learnt.
pub(super) const KNOWLEDGE: &str = "knowledge_search";

/// Longest question to it, in characters.
const MAX_QUESTION: usize = 300;

/// Names the tool that the context still needs, and its arguments.
pub(super) fn missing_context(session: &Session) -> Option<ToolCall> {
    let missing = |tool: &str| session.context_result(tool).is_none();
    let request = session.request.as_ref();
    let all = session.by_model();
    if missing("places") && (all || needs_users(request)) {
        return Some(ToolCall::new("places", json!({})));
    }
    if missing("runs_list") && (all || needs_runs(request)) {
        return Some(ToolCall::new("runs_list", json!({ "limit": 100 })));
    }
    let asked = |record: &CallRecord| record.step.is_none() && record.call.name == KNOWLEDGE;
    if all && !session.calls.iter().any(asked) {
        let question: String = session.charter.text.chars().take(MAX_QUESTION).collect();
        return Some(ToolCall::new(KNOWLEDGE, json!({ "question": question, "limit": 5 })));
    }
    let asked_once = session.calls.iter().filter(|record| asked(record)).count() == 1;
    if let Some(question) =
        session.search.as_ref().filter(|question| asked_once && !question.is_empty())
    {
        return Some(ToolCall::new(KNOWLEDGE, json!({ "question": question, "limit": 5 })));
    }
    None
}

fn needs_users(request: Option<&UserRequest>) -> bool {
    match request {
        Some(UserRequest::Act { actions }) => {
            actions.iter().flat_map(|action| &action.targets).any(|target| target.free)
                || actions
                    .iter()
                    .flat_map(|action| &action.targets)
                    .any(|target| target.amount == crate::grammar::Amount::Any)
        }
        _ => false,
    }
}

fn needs_runs(request: Option<&UserRequest>) -> bool {
    use RequestQuestion as Q;
    let Some(UserRequest::Ask { question }) = request else { return false };
    matches!(
        question,
        Q::WhyRun { .. }
            | Q::WhyTest { .. }
            | Q::Bisect { .. }
            | Q::Compare { .. }
            | Q::Run { .. }
            | Q::TestOutcome { .. }
            | Q::Log { .. }
    )
}

/// Lists the dangerous calls of a plan, as they are shown.
pub(super) fn dangers_of(
    plan: &SessionPlan,
    tools: &ToolList,
    natures: &BTreeMap<String, BoardNature>,
    file: &dyn Fn(&str) -> Result<String, OperatorError>,
) -> Result<Vec<DangerousCall>, OperatorError> {
    let mut dangers = Vec::new();
    for step in &plan.steps {
        for template in &step.tool_calls {
            let call = ToolCall::new(&template.tool, template.args.clone());
            dangers.extend(danger_of(step, &call, tools, natures, file)?);
        }
    }
    Ok(dangers)
}

/// Judges one call of a step; nothing where it is harmless.
pub(super) fn danger_of(
    step: &SessionStep,
    call: &ToolCall,
    tools: &ToolList,
    natures: &BTreeMap<String, BoardNature>,
    file: &dyn Fn(&str) -> Result<String, OperatorError>,
) -> Result<Option<DangerousCall>, OperatorError> {
    let Some(tool) = tools.find(&call.name) else { return Ok(None) };
    let place = call.arguments.get("place").and_then(Value::as_str);
    let nature = place.and_then(|place| natures.get(place)).copied().unwrap_or_default();
    let danger = call_danger(&tool.name, tool.risk(&call.arguments), nature);
    if !danger.confirm {
        return Ok(None);
    }
    let mut files = Map::new();
    // What another server means by its arguments is not known.
    let of_rig = ["image", "plan"].into_iter().filter(|_| tool.server.is_none());
    for name in of_rig {
        if let Some(path) = call.arguments.get(name).and_then(Value::as_str) {
            files.insert(path.to_owned(), file(path)?.into());
        }
    }
    Ok(Some(DangerousCall {
        step: step.step_id.parse().unwrap_or_default(),
        tool: call.name.clone(),
        args: call.arguments.clone(),
        risk: danger.level,
        files,
    }))
}

/// Returns what follows a plan: a confirmation that is waited for, or its steps.
pub(super) fn plan_follows(
    session: &Session,
    dangers: &[DangerousCall],
    now_ms: u64,
) -> (OperatorEvent, Vec<SessionFact>) {
    let digest = confirmation_digest(dangers);
    let held = session.confirmed.as_ref();
    let confirmed = held.is_some_and(|held| held.digest == digest && now_ms <= held.until_ms);
    if dangers.is_empty() || confirmed {
        return (OperatorEvent::PlanReady, Vec::new());
    }
    let until_ms = now_ms.saturating_add(session.charter.limits.confirm_s.saturating_mul(1000));
    (OperatorEvent::DangerousPlanReady, vec![SessionFact::Waits { digest, until_ms }])
}

/// Returns the confirmation that was given in advance, if it reaches as far as the risk.
pub(super) fn confirmed_in_advance(session: &Session) -> Option<OperatorEvent> {
    let waits = session.waits.as_ref()?;
    let highest = session.dangers.iter().map(|danger| danger.risk).max().unwrap_or(RiskLevel::High);
    let scope = ConfirmScope { digest: waits.digest.clone() };
    let reaches = session.charter.confirmed? >= highest;
    // A confirmation in advance is one of the person's words, and not of what a model adds to them.
    let named =
        !session.by_model() || session.dangers.iter().all(|danger| is_named(session, danger));
    (reaches && named).then_some(OperatorEvent::Confirm { yes: true, scope })
}

/// Tells whether the words of the person name a dangerous call: its verb, its board and its files.
fn is_named(session: &Session, danger: &DangerousCall) -> bool {
    let place = danger.args.get("place").and_then(Value::as_str).unwrap_or_default();
    let kind = session.context.boards.get(place).map_or("", |board| board.kind.as_str());
    names_call(&session.charter.text, &danger.tool, &danger.args, (place, kind))
}

/// Lists the steps that are next, side by side.
pub(super) fn wave_of(session: &Session, tools: &ToolList) -> Vec<SessionStep> {
    let Some(plan) = &session.plan else { return Vec::new() };
    let board_of = |step: &SessionStep| {
        let call = step.tool_calls.first()?;
        let tool = tools.find(&call.tool)?;
        let place = call.args.get("place").and_then(Value::as_str).map(str::to_owned);
        // What two of them change in one folder could not be told apart.
        let folder = tool.server.as_ref().map(|_| "the folder of the session".to_owned());
        folder.or(place).filter(|_| !tool.risk(&call.args).read_only)
    };
    let wave = next_wave(&plan.steps, board_of);
    wave.into_iter().filter_map(|at| plan.steps.get(at).cloned()).collect()
}

/// Judges a wave whose calls have all ended.
pub(super) fn judged(session: &Session, wave: &[u32]) -> WorkOutcome {
    let mut outcome = outcome_of(SessionWork::Wave);
    if session.planner == PlannerState::Executing {
        outcome.planner.push(PlannerEvent::StepLeft);
    }
    outcome.planner.push(PlannerEvent::StepResult);
    let steps = session.plan.iter().flat_map(|plan| &plan.steps);
    let optional: Vec<u32> = steps
        .filter(|step| step.tool_calls.iter().all(|call| call.optional))
        .filter_map(|step| step.step_id.parse().ok())
        .collect();
    let mut first_failure = None;
    for &step in wave {
        let error = session
            .failures
            .get(&step)
            .filter(|_| session.last_call_of(step).is_none_or(|record| record.result.is_err()));
        match error {
            None => outcome.facts.push(SessionFact::StepStands { step, status: StepStatus::Done }),
            // It goes on by another call.
            Some(error) if degraded(session, step, error).is_some() => {
                first_failure = first_failure.or_else(|| Some((step, error.clone())));
            }
            Some(error) if optional.contains(&step) => {
                let text = format!("step {step} was left out: {error}");
                outcome.facts.push(SessionFact::Remark { text });
                outcome.facts.push(SessionFact::StepStands { step, status: StepStatus::Skipped });
            }
            Some(error) => {
                first_failure = first_failure.or_else(|| Some((step, error.clone())));
            }
        }
    }
    match first_failure {
        Some((step, error)) => outcome.events.push(OperatorEvent::StepFailed { step, error }),
        None => outcome.planner.push(PlannerEvent::StepOk),
    }
    outcome
}

/// Tells whether a failed verdict ends the plan early.
pub(super) fn stops_early(session: &Session) -> bool {
    let stops = session.plan.as_ref().is_some_and(|plan| plan.verification.stop_on_fail);
    stops
        && session.deciding_calls().iter().any(|record| {
            matches!(&record.result, Ok(result)
                if result.verdict.is_some_and(|verdict| verdict != VerdictKind::Pass))
        })
}

/// All steps are done, or the rest is not reached.
pub(super) fn steps_done(session: &Session) -> WorkOutcome {
    let steps = session.plan.iter().flat_map(|plan| &plan.steps);
    let open = steps.filter(|step| step.status == StepStatus::Pending);
    let skipped = open.filter_map(|step| {
        let step = step.step_id.parse().ok()?;
        Some(SessionFact::StepStands { step, status: StepStatus::Skipped })
    });
    WorkOutcome {
        facts: skipped.collect(),
        events: vec![OperatorEvent::StepsDone],
        planner: vec![PlannerEvent::NoStepLeft, PlannerEvent::EvaluationDue],
        ..outcome_of(SessionWork::Wave)
    }
}

/// Judges the results by the policy. `commands` are those of the verification, made by now.
pub(super) fn verified(session: &Session, commands: &[&CallRecord]) -> WorkOutcome {
    let mut outcome = outcome_of(SessionWork::Verify);
    let policy = session.plan.as_ref().map(|plan| plan.verification.clone());
    let Some(policy) = policy.filter(|policy| policy.mode != VerificationMode::None) else {
        outcome.events.push(OperatorEvent::VerificationPassed);
        outcome.planner.push(PlannerEvent::EvaluationPassed);
        return outcome;
    };
    let command = commands.iter().find_map(|record| match &record.result {
        Err(error) => Some(error.clone()),
        Ok(result) => bad_result(record, result.verdict, result.exit_code),
    });
    let judges_runs = policy.mode == VerificationMode::Test;
    let runs = session.deciding_calls();
    let run = runs.iter().filter(|_| judges_runs).find_map(|record| match &record.result {
        Ok(result) => bad_result(record, result.verdict, result.exit_code),
        Err(_) => None,
    });
    match run.or(command) {
        Some(error) if policy.required => {
            outcome.events.push(OperatorEvent::VerificationFailed { error });
            outcome.planner.push(PlannerEvent::EvaluationFailed);
        }
        failed => {
            if let Some(error) = failed {
                let text = format!("the verification, which is not required, failed: {error}");
                outcome.facts.push(SessionFact::Remark { text });
            }
            outcome.events.push(OperatorEvent::VerificationPassed);
            outcome.planner.push(PlannerEvent::EvaluationPassed);
        }
    }
    outcome
}

/// Says why a result is no pass; nothing if it is one, or has nothing to pass.
fn bad_result(
    record: &CallRecord,
    verdict: Option<VerdictKind>,
    exit_code: Option<u8>,
) -> Option<OperatorError> {
    let run = record.result.as_ref().ok().and_then(|result| result.run.clone());
    let next = run.map(|run| format!("jig ask \"why did {run} fail\""));
    let place = record.call.arguments.get("place").and_then(Value::as_str).unwrap_or("the rig");
    let (code, words) = match (verdict, exit_code) {
        (Some(VerdictKind::Pass), _) | (None, None | Some(0)) => return None,
        (Some(VerdictKind::EnvError), _) => (OperatorCode::Io, "the rig failed".to_owned()),
        (Some(kind @ (VerdictKind::Inconclusive | VerdictKind::Cancelled)), _) => {
            (OperatorCode::Conflict, format!("the verdict is {kind}: evidence is missing"))
        }
        (Some(kind), _) => (OperatorCode::BuildFail, format!("the verdict is {kind}")),
        (None, Some(code)) => (OperatorCode::Io, format!("it ended with exit code {code}")),
    };
    let error = OperatorError::new(code, format!("{} on {place}: {words}", record.call.name));
    Some(match next {
        Some(next) => error.next(next),
        None => error,
    })
}

/// Lists the steps whose runs blame the rig.
pub(super) fn rig_failed(session: &Session) -> Vec<u32> {
    let steps = session.plan.iter().flat_map(|plan| &plan.steps);
    let numbers = steps.filter_map(|step| step.step_id.parse::<u32>().ok());
    numbers
        .filter(|&step| {
            session.last_call_of(step).is_some_and(|record| {
                matches!(&record.result, Ok(result)
                    if result.verdict == Some(VerdictKind::EnvError))
            })
        })
        .collect()
}

/// What is done about failed steps.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StepRecovery {
    /// They are repeated after a pause, some of them by other calls.
    Again(Duration, Vec<SessionFact>),
    /// Their confirmation has run out: it is asked for again.
    Confirm,
    /// The task ends.
    Block(OperatorError),
}

/// Decides about the failed steps of a wave: the gravest decides.
pub(super) fn step_recovery(session: &Session, tools: &ToolList, now_ms: u64) -> StepRecovery {
    let mut pause = Duration::ZERO;
    let mut facts = Vec::new();
    for (&step, error) in &session.failures {
        if let Some(call) = degraded(session, step, error) {
            facts.push(SessionFact::Degraded { step, call, error: error.clone() });
            continue;
        }
        if is_optional(session, step) {
            // It failed beside one that goes on: it is left out when the wave is judged again.
            continue;
        }
        let record = session.last_call_of(step);
        let (reads, repeatable) = record.map_or((false, true), |record| {
            let Some(tool) = tools.find(&record.call.name) else { return (false, false) };
            let risk = tool.risk(&record.call.arguments);
            let place = record.call.arguments.get("place").and_then(Value::as_str);
            let board = place.and_then(|place| session.context.boards.get(place));
            let emulated = board.is_some_and(|board| board.nature.emulated);
            (risk.read_only, risk.idempotent || emulated)
        });
        let expired = session.confirmed.as_ref().is_some_and(|held| held.until_ms < now_ms);
        if error.code == OperatorCode::PolicyDenied && expired && !session.dangers.is_empty() {
            return StepRecovery::Confirm;
        }
        let times = session.failed_times.get(&step).copied().unwrap_or(1);
        match step_retry(error, times, repeatable || error.untouched, reads) {
            StepRetry::Again(wait) => pause = pause.max(wait),
            StepRetry::Adjust | StepRetry::Stop => return StepRecovery::Block(error.clone()),
        }
    }
    StepRecovery::Again(pause, facts)
}

fn is_optional(session: &Session, step: u32) -> bool {
    let id = step.to_string();
    let steps = session.plan.iter().flat_map(|plan| &plan.steps);
    let mut found = steps.filter(|step| step.step_id == id);
    found.any(|step| step.tool_calls.iter().all(|call| call.optional))
}

/// Returns the call by which a failed step goes on, where the service behind its own does not answer: the
/// runs are searched for the words in place of the knowledge that was learnt from them.
fn degraded(session: &Session, step: u32, error: &OperatorError) -> Option<ToolCallTemplate> {
    if !matches!(error.code, OperatorCode::Io | OperatorCode::ToolTimeout) {
        return None;
    }
    let id = step.to_string();
    let steps = session.plan.iter().flat_map(|plan| &plan.steps);
    let step = steps.into_iter().find(|step| step.step_id == id)?;
    let call = step.tool_calls.first().filter(|call| call.tool == "knowledge_search")?;
    let question = call.args.get("question")?;
    let mut args = json!({ "question": question });
    if let Some(limit) = call.args.get("limit") {
        args["limit"] = limit.clone();
    }
    Some(ToolCallTemplate { tool: "runs_search".to_owned(), args, ..call.clone() })
}

/// Leads the planner to its end.
pub(super) fn planner_end(planner: PlannerState) -> Vec<PlannerEvent> {
    use PlannerEvent as E;
    match planner {
        PlannerState::Passed => vec![E::CaseStored, E::Closed],
        PlannerState::Completed => vec![E::Closed],
        PlannerState::Failed => vec![E::CaseStored],
        PlannerState::Done => Vec::new(),
        _ => vec![E::Exception, E::CaseStored],
    }
}

/// Returns the exit code of a session. Verdicts of its runs decide, the gravest first; what ended the
/// session before its goal counts where no run says more.
pub(crate) fn exit_code(session: &Session) -> u8 {
    use jig_model::exit;
    let codes = session.deciding_calls().into_iter().filter_map(|record| {
        record.result.as_ref().ok().and_then(|result| {
            // A verdict and an exit code that contradict each other are never a pass.
            let verdict = result.verdict.map(exit::of_verdict);
            [verdict, result.exit_code].into_iter().flatten().max_by_key(|code| gravity(*code))
        })
    });
    let codes: Vec<u8> = codes.collect();
    let said = codes.iter().any(|code| *code != exit::PASS);
    let blocked = session.blocked.as_ref().and_then(|reason| match reason {
        // What the failure of a verification comes from, a run has said.
        BlockReason::Failed { .. } if said => None,
        BlockReason::Failed { error } => Some(exit::of_fault(error.code.fault())),
        BlockReason::Refused | BlockReason::Cancelled { .. } => Some(exit::CANCELLED),
        BlockReason::Unanswered => Some(exit::INCONCLUSIVE),
        BlockReason::PlanOnly => None,
    });
    codes.into_iter().chain(blocked).max_by_key(|code| gravity(*code)).unwrap_or(exit::PASS)
}

/// Orders exit codes: what is said about a target stands before what is said about the rig.
fn gravity(code: u8) -> usize {
    use jig_model::exit;
    const ORDER: [u8; 9] = [
        exit::PASS,
        exit::INCONCLUSIVE,
        exit::LAB,
        exit::CANCELLED,
        exit::PROFILE,
        exit::USAGE,
        exit::FLAKY,
        exit::FAIL,
        exit::BUG,
    ];
    // A code that is not of Jig says that something is wrong.
    ORDER.iter().position(|&known| known == code).unwrap_or(ORDER.len())
}
