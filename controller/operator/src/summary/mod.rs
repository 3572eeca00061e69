//! The summary of a session: what was done, why, how it was verified, what is at risk, how to undo it. Pure.
//!
//! Every line rests on a row of the journal. What targets and files said is quoted and never followed.

mod answer;
mod types;

use jig_model::{VerdictKind, exit};
use serde_json::Value;

pub use self::types::SessionSummary;

use crate::journal::{BlockReason, EarlierImage};
use crate::plan::{RiskLevel, SessionStep, StepStatus, VerificationMode};
use crate::session::{CallRecord, Session};

/// Most lines of a part.
const MAX_LINES: usize = 40;

/// Sums up a session.
pub fn summarize(session: &Session) -> SessionSummary {
    let exit_code = crate::session::exit_code(session);
    let mut summary = SessionSummary {
        why: session.charter.text.chars().take(500).collect(),
        verified: verification(session),
        exit_code,
        trace_id: session.charter.trace_id.clone(),
        ..SessionSummary::default()
    };
    if let (true, Some(request)) = (session.cancel.is_none(), &session.request) {
        summary.answer = answer::answer(session, request);
    }
    if let (true, Some(lines)) = (session.cancel.is_none(), &session.model_answer) {
        summary.answer.extend(lines.iter().cloned());
    }
    let mut ran = false;
    for step in session.plan.iter().flat_map(|plan| &plan.steps) {
        let number: u32 = step.step_id.parse().unwrap_or_default();
        summary.done.push(step_line(step, session.last_call_of(number)));
        let last = session.last_call_of(number);
        // What was refused before anything was touched has changed nothing.
        let acted = last.is_some_and(|record| {
            record.result.as_ref().err().is_none_or(|error| !error.untouched)
        });
        ran |= acted;
        let kept = last.is_some_and(|record| !leaves_nothing(session, record));
        if acted && kept && !step.rollback_hint.is_empty() {
            push_new(&mut summary.undo, step.rollback_hint.clone());
        }
    }
    let images = session.earlier_images.iter().filter_map(|(place, image)| {
        let EarlierImage { run, file, sha256 } = image.as_ref()?;
        Some(format!(
            "put back the image of the last recorded run on {place} before, {run} (sha256 {sha256:.12}): \
             jig flash -b {place} {file}"
        ))
    });
    images.for_each(|line| push_new(&mut summary.undo, line));
    let left = session.changes.iter().filter(|(_, undone)| !undone).map(|(change, _)| change);
    let (calls, files) = left.fold((0, 0), |(n, files), change| (n + 1, files + change.count));
    if calls > 0 {
        let unsure = session.changes.iter().any(|(change, undone)| change.unsure && !undone);
        let others = if unsure { ", or others since: look at them first" } else { "" };
        let words = format!("put back {files} files that {calls} calls have changed{others}");
        push_new(&mut summary.undo, format!("{words}: jig sessions undo SESSION"));
    }
    if !ran && session.charter.plan_only {
        summary.done.clear();
    }
    for record in &session.calls {
        let makes_run = matches!(record.call.name.as_str(), "run" | "test" | "recover");
        let run = record.result.as_ref().ok().and_then(|result| result.run.clone());
        summary.runs.extend(run.filter(|run| makes_run && !summary.runs.contains(run)));
    }
    let risk = session.plan.as_ref().map(|plan| plan.risk_level);
    if let Some(level @ (RiskLevel::Medium | RiskLevel::High)) = risk.filter(|_| ran) {
        let elsewhere = session.calls.iter().any(|record| {
            record.step.is_some() && crate::mcp::server_of_tool(&record.call.name).is_some()
        });
        let what = if elsewhere { "another server has acted" } else { "boards were changed" };
        summary.risks.push(format!("risk level {level}: {what}"));
    }
    summary.risks.extend(session.remarks.iter().cloned());
    let reason = session.blocked.as_ref();
    summary.blocked = reason.and_then(blocked);
    summary.next.extend(reason.and_then(|reason| match reason {
        BlockReason::Failed { error } => Some(error.next.clone()),
        BlockReason::Refused | BlockReason::Unanswered | BlockReason::Cancelled { .. } => {
            Some("ask again".to_owned())
        }
        BlockReason::PlanOnly => None,
    }));
    if exit_code == exit::FAIL || exit_code == exit::FLAKY {
        for run in summary.runs.iter().rev().take(3) {
            push_new(&mut summary.next, format!("jig runs log {run}"));
        }
    }
    for lines in [
        &mut summary.answer,
        &mut summary.done,
        &mut summary.risks,
        &mut summary.undo,
        &mut summary.next,
    ] {
        lines.truncate(MAX_LINES);
    }
    summary
}

/// Tells whether a call leaves nothing behind at its board: a run of an emulated one is that of a new board.
fn leaves_nothing(session: &Session, record: &CallRecord) -> bool {
    let runs = matches!(record.call.name.as_str(), "run" | "test" | "reset" | "recover");
    let place = record.call.arguments.get("place").and_then(Value::as_str);
    let board = place.and_then(|place| session.context.boards.get(place));
    runs && board.is_some_and(|board| board.nature.emulated)
}

fn push_new(lines: &mut Vec<String>, line: String) {
    if !lines.contains(&line) {
        lines.push(line);
    }
}

fn blocked(reason: &BlockReason) -> Option<String> {
    match reason {
        BlockReason::Failed { error } => Some(error.to_string()),
        BlockReason::Refused => {
            Some("what was shown was refused; nothing of it was done".to_owned())
        }
        BlockReason::Unanswered => {
            Some("no confirmation came in time; nothing that needs one was done".to_owned())
        }
        BlockReason::Cancelled { why } => Some(format!("cancelled: {why}")),
        BlockReason::PlanOnly => None,
    }
}

fn step_line(step: &SessionStep, record: Option<&CallRecord>) -> String {
    let title = &step.title;
    let came_to = match (step.status, record.map(|record| &record.result)) {
        (StepStatus::Pending, _) => "not reached".to_owned(),
        (StepStatus::Skipped, None) => "left out".to_owned(),
        (_, Some(Err(error))) => format!("failed: {error}"),
        (_, Some(Ok(result))) => match (result.verdict, &result.run, result.exit_code) {
            (Some(verdict), Some(run), _) => format!("{verdict} ({run})"),
            (Some(verdict), None, _) => verdict.to_string(),
            (None, _, Some(code)) if code != exit::PASS => format!("ended with exit code {code}"),
            _ => "done".to_owned(),
        },
        (status, None) => status.to_string(),
    };
    format!("{title}: {came_to}")
}

fn verification(session: &Session) -> String {
    let Some(plan) = &session.plan else { return "nothing was done".to_owned() };
    let policy = &plan.verification;
    let judged = session.deciding_calls();
    let verdicts: Vec<VerdictKind> = judged
        .iter()
        .filter_map(|record| record.result.as_ref().ok().and_then(|result| result.verdict))
        .collect();
    let passed = verdicts.iter().filter(|verdict| **verdict == VerdictKind::Pass).count();
    match (policy.mode, session.verified) {
        (VerificationMode::None, _) => "nothing to verify".to_owned(),
        (mode, true) if verdicts.is_empty() => format!("verified by {mode}: passed"),
        (mode, true) => format!("verified by {mode}: {passed} of {} runs passed", verdicts.len()),
        (mode, false) if verdicts.is_empty() => format!("not verified by {mode}"),
        (mode, false) => {
            format!("not verified by {mode}: {passed} of {} runs passed", verdicts.len())
        }
    }
}

/// Returns a field of some data as short text.
fn text_of(data: &Value, pointer: &str) -> Option<String> {
    match data.pointer(pointer)? {
        Value::String(text) if !text.is_empty() => Some(text.chars().take(300).collect()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}
