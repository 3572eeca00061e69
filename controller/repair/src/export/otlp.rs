//! OpenTelemetry: one trace per run in the JSON of OTLP, a span for each step.
//!
//! # Design
//! In this JSON, ids are hex, times and whole numbers are decimal texts, and enums are numbers. The
//! attributes `gen_ai.*` have the names of conventions that are not stable yet.

use serde_json::{Value, json};

use super::proposed;
use crate::journal::{Digest, Entry, Intent, Outcome, Row};
use crate::machine::{RepairEvent, RepairState};

/// Kind of a span: internal.
const INTERNAL: u8 = 1;

/// Codes of a span's status.
const OK: u8 = 1;
const ERROR: u8 = 2;

/// Returns a run as an `ExportTraceServiceRequest`. A step that was cut off has no span.
pub fn otlp(name: &str, rows: &[Row], version: &str) -> Value {
    let digest = Digest::of(name.as_bytes()).to_string();
    let trace = &digest[..32];
    let root = &digest[32..48];
    let mut spans = Vec::new();
    let mut begun: Option<(&Intent, u64)> = None;
    for row in rows {
        match &row.entry {
            Entry::Intent(intent) => begun = Some((intent, row.time_ms)),
            Entry::Outcome(outcome) => {
                let start = begun.take().map_or(row.time_ms, |(_, start)| start);
                spans.push(step(trace, root, row, outcome, start));
            }
            Entry::Begun(_) | Entry::Request(_) => {}
        }
    }
    if let Some(span) = whole(trace, root, name, rows) {
        spans.insert(0, span);
    }
    json!({ "resourceSpans": [{
        "resource": { "attributes": [text("service.name", "jig"), text("service.version", version)] },
        "scopeSpans": [{ "scope": { "name": "jig.repair", "version": version }, "spans": spans }],
    }] })
}

/// The span of the run.
fn whole(trace: &str, root: &str, name: &str, rows: &[Row]) -> Option<Value> {
    let (first, last) = (rows.first()?, rows.last()?);
    let Entry::Begun(contract) = &first.entry else { return None };
    let end = rows.iter().rev().find_map(|row| match &row.entry {
        Entry::Outcome(outcome) if outcome.result.event == Some(RepairEvent::Reported) => {
            Some(outcome.state)
        }
        _ => None,
    });
    // What is accepted and not proven is neither an error nor a success.
    let warned = rows.iter().any(|row| match &row.entry {
        Entry::Outcome(outcome) => outcome.result.event == Some(RepairEvent::AcceptedWithWarning),
        _ => false,
    });
    let status = match end {
        Some(RepairState::Success) if warned => json!({}),
        Some(RepairState::Success) => json!({ "code": OK }),
        Some(_) => json!({ "code": ERROR }),
        None => json!({}),
    };
    Some(json!({
        "traceId": trace,
        "spanId": root,
        "name": "invoke_agent jig repair",
        "kind": INTERNAL,
        "startTimeUnixNano": nanos(first.time_ms),
        "endTimeUnixNano": nanos(last.time_ms),
        "attributes": [
            text("gen_ai.operation.name", "invoke_agent"),
            text("gen_ai.agent.name", "jig repair"),
            text("gen_ai.conversation.id", name),
            text("jig.goal", &contract.goal),
            text("jig.base", &contract.base),
            text("jig.state", end.map_or("", |state| state.as_str())),
            json!({ "key": "jig.warning", "value": { "boolValue": warned } }),
        ],
        "status": status,
    }))
}

fn step(trace: &str, root: &str, row: &Row, outcome: &Outcome, start: u64) -> Value {
    let state = outcome.state.as_str();
    let mut attributes = vec![
        text("jig.state", state),
        text("jig.event", outcome.result.event.map_or("", |event| event.as_str())),
        text("jig.reason", &outcome.result.reason),
        number("jig.row", row.seq),
    ];
    let name = match proposed(outcome) {
        Some(proposed) => {
            attributes.push(text("gen_ai.operation.name", "invoke_agent"));
            attributes.push(text("gen_ai.agent.name", &proposed.agent));
            attributes.push(text("jig.patch", &proposed.patch));
            attributes.push(number("jig.usage.tokens", proposed.usage.tokens));
            attributes.push(number("jig.usage.micro_usd", proposed.usage.micro_usd));
            format!("invoke_agent {}", proposed.agent)
        }
        None => {
            attributes.push(text("gen_ai.operation.name", "execute_tool"));
            attributes.push(text("gen_ai.tool.name", state));
            format!("execute_tool {state}")
        }
    };
    json!({
        "traceId": trace,
        "spanId": &row.hash.to_string()[..16],
        "parentSpanId": root,
        "name": name,
        "kind": INTERNAL,
        "startTimeUnixNano": nanos(start),
        "endTimeUnixNano": nanos(row.time_ms.max(start)),
        "attributes": attributes,
        "status": {},
    })
}

fn nanos(time_ms: u64) -> String {
    u128::from(time_ms).saturating_mul(1_000_000).to_string()
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn number(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}
