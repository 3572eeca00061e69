//! ATIF, the Agent Trajectory Interchange Format of Harbor: the goal, what agents proposed, and what the
//! loop found out.

use serde_json::{Value, json};

use super::{proposed, rfc3339};
use crate::journal::{Entry, Outcome, Request, Row};
use crate::run::Run;

/// The version that is written.
const SCHEMA: &str = "ATIF-v1.7";

/// Returns a run as a trajectory.
pub fn atif(name: &str, rows: &[Row], run: &Run, version: &str) -> Value {
    let mut steps = Vec::new();
    for row in rows {
        let said = match &row.entry {
            Entry::Begun(contract) => Some(("user", contract.goal.clone(), json!({}))),
            Entry::Intent(_) | Entry::Request(Request::Resume) => None,
            Entry::Outcome(outcome) => Some(said(outcome)),
            Entry::Request(Request::Stop { why }) => {
                Some(("user", format!("stop: {why}"), json!({})))
            }
            Entry::Request(Request::Submit(_)) => {
                Some(("user", "a client submits a patch".to_owned(), json!({})))
            }
            Entry::Request(Request::Approve { digest }) => {
                Some(("user", format!("approved: sha256:{digest}"), json!({})))
            }
            Entry::Request(Request::Reject { why }) => {
                Some(("user", format!("refused: {why}"), json!({})))
            }
        };
        let Some((source, message, mut extra)) = said else { continue };
        extra["row"] = row.seq.into();
        steps.push(json!({
            "step_id": steps.len() + 1,
            "timestamp": rfc3339(row.time_ms),
            "source": source,
            "message": message,
            "extra": extra,
        }));
    }
    json!({
        "schema_version": SCHEMA,
        "session_id": name,
        "agent": { "name": "jig repair", "version": version },
        "final_metrics": {
            "total_cost_usd": run.usage.micro_usd as f64 / 1e6,
            "total_steps": steps.len(),
            "extra": { "tokens": run.usage.tokens, "iterations": run.iteration },
        },
        "steps": steps,
    })
}

fn said(outcome: &Outcome) -> (&'static str, String, Value) {
    let extra = json!({ "state": outcome.state, "event": outcome.result.event, "evidence": outcome.result.evidence });
    match proposed(outcome) {
        Some(proposed) => {
            let usage = json!({ "agent": proposed.agent, "patch": proposed.patch,
                "tokens": proposed.usage.tokens, "micro_usd": proposed.usage.micro_usd });
            let mut extra = extra;
            extra["proposal"] = usage;
            ("agent", proposed.hypothesis.clone(), extra)
        }
        None => ("system", format!("{}: {}", outcome.state, outcome.result.reason), extra),
    }
}
