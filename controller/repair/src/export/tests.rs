//! Tests of the exports against the shapes that their readers need.

use serde_json::Value;

use super::*;
use crate::journal::{Contract, Digest, Effect, Entry, Intent, Outcome, Row, StepResult, Usage};
use crate::machine::{RepairEvent, RepairState};
use crate::run::Run;

/// The rows of a run up to its first patch.
fn rows() -> Vec<Row> {
    let contract = Contract {
        goal: "the boot test passes".to_owned(),
        task: "00".to_owned(),
        base: "abc".to_owned(),
        ..Contract::default()
    };
    let intent = |state| {
        Entry::Intent(Intent {
            state,
            part: None,
            effect: Effect::Pure,
            input: String::new(),
            flashes: 0,
        })
    };
    let outcome = |state, event, facts| {
        let result = StepResult { facts, ..StepResult::of(event, "because") };
        Entry::Outcome(Outcome { state, part: None, result })
    };
    let usage = Usage { tokens: 70, micro_usd: 1_500_000 };
    let patch = Proposed {
        diff: String::new(),
        patch: "p1".to_owned(),
        agent: "http:local".to_owned(),
        hypothesis: "the bound is one too high".to_owned(),
        usage,
        diagnostic: false,
    };
    let entries = [
        Entry::Begun(contract),
        intent(RepairState::Init),
        outcome(RepairState::Init, RepairEvent::ContextReady, Vec::new()),
        intent(RepairState::CodeAnalysis),
        outcome(RepairState::CodeAnalysis, RepairEvent::PatchPlanned, Vec::new()),
        intent(RepairState::PatchGeneration),
        outcome(RepairState::PatchGeneration, RepairEvent::PatchValid, vec![Fact::Proposed(patch)]),
    ];
    let row = |(entry, seq): (Entry, u64)| Row {
        seq,
        time_ms: 1_000 * seq,
        entry,
        hash: Digest::of(&seq.to_be_bytes()),
    };
    entries.into_iter().zip(1..).map(row).collect()
}

fn attribute<'v>(span: &'v Value, key: &str) -> Option<&'v Value> {
    let all = span["attributes"].as_array()?;
    all.iter().find(|one| one["key"] == key).map(|one| &one["value"])
}

#[test]
fn each_step_is_a_span_below_the_span_of_the_run() {
    let document = otlp("run-1", &rows(), "0.1.0");
    let spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!(spans.len(), 4);
    let hex = |id: &Value, len| {
        let id = id.as_str().unwrap();
        id.len() == len && id.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    for span in spans {
        assert!(hex(&span["traceId"], 32) && hex(&span["spanId"], 16), "{span}");
        assert_eq!(span["traceId"], spans[0]["traceId"]);
        let time = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
    }
    assert_eq!(spans[0]["parentSpanId"], Value::Null);
    assert!(spans[1..].iter().all(|span| span["parentSpanId"] == spans[0]["spanId"]));
    let names: Vec<_> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    let tools = ["execute_tool INIT", "execute_tool CODE_ANALYSIS"];
    assert_eq!(names, ["invoke_agent jig repair", tools[0], tools[1], "invoke_agent http:local"]);
    assert_eq!(attribute(&spans[3], "jig.usage.tokens").unwrap()["intValue"], "70");
    assert_eq!(attribute(&spans[3], "gen_ai.agent.name").unwrap()["stringValue"], "http:local");
    assert_eq!(spans[3]["startTimeUnixNano"], "6000000000");
    assert_eq!(spans[0]["status"], serde_json::json!({}), "the run has not ended");
}

#[test]
fn a_trajectory_has_the_goal_the_proposals_and_the_findings_in_order() {
    let rows = rows();
    let document = atif("run-1", &rows, &Run::of(&rows).unwrap(), "0.1.0");
    assert_eq!(document["schema_version"], "ATIF-v1.7");
    assert_eq!(document["session_id"], "run-1");
    let steps = document["steps"].as_array().unwrap();
    assert!(steps.iter().zip(1..).all(|(step, id)| step["step_id"] == id));
    let sources: Vec<_> = steps.iter().map(|step| step["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["user", "system", "system", "agent"]);
    assert_eq!(steps[0]["message"], "the boot test passes");
    assert_eq!(steps[0]["timestamp"], "1970-01-01T00:00:01Z");
    assert_eq!(steps[3]["message"], "the bound is one too high");
    assert_eq!(document["final_metrics"]["total_cost_usd"], 1.5);
    assert_eq!(document["final_metrics"]["total_steps"], 4);
}
