//! What is shown of a session.

use jig_operator::machine::OperatorState;
use jig_operator::plan::SessionPlan;
use jig_operator::session::Session;
use jig_operator::summary::SessionSummary;
use serde_json::{Value, json};

use crate::render::{Screen, one_line};

/// Returns a session as a document: `{"session","state","planner","request","questions","waits","plan",
/// "model","draft","summary","exit_code"}`. `model` is `{"name","tokens","usd"}` where one plans. `draft` is the plan
/// in the form that `--plan` reads.
pub(super) fn document(name: &str, session: &Session) -> Value {
    let waits = session.waits.as_ref().map(|waits| {
        json!({
            "digest": waits.digest,
            "until_ms": waits.until_ms,
            "calls": session.dangers,
        })
    });
    let model = session.charter.model.as_ref().filter(|_| session.by_model());
    let model = model.map(|model| {
        let usd = session.used.micro_usd as f64 / 1e6;
        json!({ "name": model.name, "tokens": session.used.tokens, "usd": usd })
    });
    let exit_code = session.summary.as_ref().map(|summary| summary.exit_code);
    json!({
        "session": name,
        "state": session.state,
        "planner": session.planner,
        "request": session.charter.text,
        "questions": session.questions,
        "waits": waits,
        "plan": session.plan,
        "model": model,
        "draft": session.plan.as_ref().map(SessionPlan::drafted),
        "summary": session.summary.as_ref().map(|summary| named(summary, name)),
        "exit_code": exit_code,
    })
}

/// Says what a session waits for, and what to type.
pub(super) fn waiting_lines(name: &str, session: &Session) -> Vec<String> {
    let mut lines = Vec::new();
    match session.state {
        OperatorState::Clarifying => {
            lines.push(format!("{name} asks:"));
            for question in &session.questions {
                lines.push(format!("  {}", one_line(&question.text)));
                if !question.choices.is_empty() {
                    lines.push(format!("    {}", one_line(&question.choices.join(", "))));
                }
            }
            lines.push(format!("answer: jig ask --resume {name} \"ANSWER; ANSWER\""));
        }
        OperatorState::AwaitingConfirmation => {
            lines.push(format!("{name} waits for a confirmation of:"));
            for danger in &session.dangers {
                let args = one_line(&danger.args.to_string());
                let risk = danger.risk;
                lines.push(format!("  {}. {} {args} (risk: {risk})", danger.step, danger.tool));
                for (path, hash) in &danger.files {
                    let hash: String = hash.as_str().unwrap_or_default().chars().take(12).collect();
                    lines.push(format!("     {} has sha256 {hash}...", one_line(path)));
                }
            }
            if let Some(waits) = &session.waits {
                lines.push(format!("confirm: jig ask --resume {name} --confirm {}", waits.digest));
            }
        }
        _ => lines.push(format!("{name} is in {}: jig ask --resume {name}", session.state)),
    }
    lines
}

/// Shows the plan of a session.
pub(super) fn plan_lines(session: &Session) -> Vec<String> {
    let Some(plan) = &session.plan else { return Vec::new() };
    let risk = plan.risk_level;
    let mut lines = vec![format!("plan {} (risk: {risk})", plan.plan_id)];
    for step in &plan.steps {
        let call = step.tool_calls.first();
        let about = call.map_or_else(String::new, |call| format!("{} {}", call.tool, call.args));
        let after = call.map_or_else(String::new, |call| call.after.join(", "));
        let after = if after.is_empty() { after } else { format!(", after {after}") };
        lines.push(format!("  {}. {}{after}", step.step_id, one_line(&step.title)));
        lines.push(format!("     {}", one_line(&about)));
    }
    let policy = &plan.verification;
    lines.push(match policy.commands.as_slice() {
        [] => format!("  verification: {}", policy.mode),
        commands => format!("  verification: {}: {}", policy.mode, one_line(&commands.join("; "))),
    });
    lines
}

/// Tells what a session has come to.
pub(super) fn tell(screen: &Screen, name: &str, session: &Session) {
    let Some(summary) = &session.summary else {
        waiting_lines(name, session).iter().for_each(|line| screen.insist(line));
        return;
    };
    if session.charter.plan_only {
        plan_lines(session).iter().for_each(|line| screen.out(line));
    }
    for line in &summary.answer {
        screen.out(&one_line(line));
    }
    for line in summary_lines(&named(summary, name)) {
        if summary.answer.is_empty() { screen.out(&line) } else { screen.say(&line) }
    }
    screen.say(&format!("  session: {name}"));
}

/// Puts the name of a session into the commands of its summary: the session itself does not know it.
fn named(summary: &SessionSummary, name: &str) -> SessionSummary {
    let mut summary = summary.clone();
    for line in &mut summary.undo {
        if let Some(command) = line.strip_suffix("jig sessions undo SESSION") {
            *line = format!("{command}jig sessions undo {name}");
        }
    }
    summary
}

fn summary_lines(summary: &SessionSummary) -> Vec<String> {
    let mut lines: Vec<String> = summary.done.iter().map(|line| one_line(line)).collect();
    lines.push(format!("  {}", summary.verified));
    let mut part = |name: &str, texts: &[String]| {
        lines.extend(texts.iter().map(|text| format!("  {name}: {}", one_line(text))));
    };
    part("risk", &summary.risks);
    part("undo", &summary.undo);
    part("blocked", summary.blocked.as_slice());
    part("next", &summary.next);
    lines
}
