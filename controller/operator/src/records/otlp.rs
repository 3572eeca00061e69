//! OpenTelemetry: one trace per session in the JSON of OTLP, a span for each call of a tool.
//!
//! # Design
//! In this JSON, ids are hex, times and whole numbers are decimal texts, and enums are numbers. The
//! attributes `gen_ai.*` have the names of conventions that are not stable yet. What is no call of a tool is
//! an event of the session's span.

use serde_json::{Map, Value, json};

use super::{RecordKind, RecordLevel, SessionRecord, records_of};
use crate::digest::value_digest;
use crate::journal::SessionRow;
use crate::session::SessionFoldError;

/// Kind of a span: internal.
const INTERNAL: u8 = 1;

/// Codes of a span's status.
const OK: u8 = 1;
const ERROR: u8 = 2;

/// Returns a session as an `ExportTraceServiceRequest`. A call that was cut off has no span.
///
/// # Errors
/// The rows are not the journal of a session.
pub fn session_otlp(
    name: &str,
    rows: &[SessionRow],
    version: &str,
) -> Result<Value, SessionFoldError> {
    let (records, _) = records_of(name, rows)?;
    let id = Ids::of(name, records.first().map(|(_, record)| record));
    let mut spans = Vec::new();
    let mut events = Vec::new();
    for (seq, record) in &records {
        match record.event_type {
            RecordKind::ToolCall => spans.push(call_span(&id, *seq, record)),
            // The span of the call says so.
            RecordKind::ToolCallStarted => {}
            _ => events.push(json!({
                "timeUnixNano": nanos(record),
                "name": record.event_type,
                "attributes": attributes(record),
            })),
        }
    }
    if let (Some((_, first)), Some((_, last))) = (records.first(), records.last()) {
        spans.insert(0, session_span(&id, name, (first, last), events));
    }
    Ok(json!({ "resourceSpans": [{
        "resource": { "attributes": [text("service.name", "jig"), text("service.version", version)] },
        "scopeSpans": [{ "scope": { "name": "jig.session", "version": version }, "spans": spans }],
    }] }))
}

struct Ids {
    trace: String,
    root: String,
}

impl Ids {
    /// A session of an older program has a trace id of another form: then one is made of its name.
    fn of(name: &str, first: Option<&SessionRecord>) -> Self {
        let digest = value_digest(&json!(name));
        let known = first.map(|record| record.trace_id.as_str());
        let known = known.filter(|id| id.parse::<jig_model::TraceId>().is_ok());
        Self { trace: known.unwrap_or(&digest[..32]).to_owned(), root: digest[32..48].to_owned() }
    }
}

fn session_span(
    id: &Ids,
    name: &str,
    (first, last): (&SessionRecord, &SessionRecord),
    events: Vec<Value>,
) -> Value {
    let code = last.data.get("exit_code").and_then(Value::as_u64);
    let ended = last.event_type == RecordKind::SessionEnded;
    let status = match code.filter(|_| ended) {
        Some(0) => json!({ "code": OK }),
        Some(_) => json!({ "code": ERROR }),
        None => json!({}),
    };
    let mut attributes = vec![
        text("gen_ai.operation.name", "invoke_agent"),
        text("gen_ai.agent.name", "jig ask"),
        text("gen_ai.conversation.id", name),
        text("jig.request", &first.message),
    ];
    attributes.extend(code.map(|code| number("jig.exit_code", code)));
    json!({
        "traceId": id.trace,
        "spanId": id.root,
        "name": "invoke_agent jig ask",
        "kind": INTERNAL,
        "startTimeUnixNano": nanos(first),
        "endTimeUnixNano": nanos(last),
        "attributes": attributes,
        "events": events,
        "status": status,
    })
}

fn call_span(id: &Ids, seq: u64, record: &SessionRecord) -> Value {
    let tool = record.data.get("tool").and_then(Value::as_str).unwrap_or_default();
    let mut attributes = attributes(record);
    attributes.push(text("gen_ai.operation.name", "execute_tool"));
    attributes.push(text("gen_ai.tool.name", tool));
    let status = match record.level {
        RecordLevel::Error => json!({ "code": ERROR, "message": record.message }),
        _ => json!({ "code": OK }),
    };
    let end = record.timestamp.as_nanosecond();
    let took = i128::from(record.duration_ms.unwrap_or_default()) * 1_000_000;
    json!({
        "traceId": id.trace,
        "spanId": &value_digest(&json!([id.trace, seq]))[..16],
        "parentSpanId": id.root,
        "name": format!("execute_tool {tool}"),
        "kind": INTERNAL,
        "startTimeUnixNano": (end - took).max(0).to_string(),
        "endTimeUnixNano": end.max(0).to_string(),
        "attributes": attributes,
        "status": status,
    })
}

/// Returns the facts of a record as attributes.
fn attributes(record: &SessionRecord) -> Vec<Value> {
    let fields = |data: &Map<String, Value>| {
        let known = data.iter().filter(|(_, value)| !value.is_null());
        known.map(|(key, value)| text_or_number(&format!("jig.{key}"), value)).collect::<Vec<_>>()
    };
    let mut attributes = fields(&record.data);
    attributes.push(text("jig.message", &record.message));
    attributes
}

fn nanos(record: &SessionRecord) -> String {
    record.timestamp.as_nanosecond().max(0).to_string()
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn number(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn text_or_number(key: &str, value: &Value) -> Value {
    match value {
        Value::String(value) => text(key, value),
        Value::Bool(value) => json!({ "key": key, "value": { "boolValue": value } }),
        value => match value.as_u64() {
            Some(value) => number(key, value),
            None => text(key, &value.to_string()),
        },
    }
}
