//! Records of whole conversations.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{RecordKind, RecordLevel, SessionRecord, records_of, session_otlp};
use crate::session::tests::rows_of;

const FLASH: &str = "flash and test on real boards";
const RECOVERED: &str = "the rig fails, is recovered, and the same test passes";
const DEGRADED: &str = "the runs are searched where the knowledge of the lab does not answer";

async fn records(name: &str) -> Vec<SessionRecord> {
    let rows = rows_of(name).await;
    records_of("s1", &rows).unwrap().0.into_iter().map(|(_, record)| record).collect()
}

fn kinds(records: &[SessionRecord]) -> BTreeSet<RecordKind> {
    records.iter().map(|record| record.event_type).collect()
}

#[tokio::test(start_paused = true)]
async fn each_record_has_the_fields_of_the_form_and_one_trace() {
    use RecordKind as K;
    let all = records(FLASH).await;
    for record in &all {
        let told = json!(record);
        for field in ["timestamp", "level", "session_id", "trace_id", "event_type", "message"] {
            assert!(told[field].is_string(), "{field}: {told}");
        }
        assert_eq!(
            (told["session_id"].as_str(), told["trace_id"].as_str()),
            (Some("s1"), Some("t1"))
        );
        let known = [
            "timestamp",
            "level",
            "session_id",
            "trace_id",
            "event_type",
            "message",
            "data",
            "duration_ms",
        ];
        assert!(
            told.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())),
            "{told}"
        );
        assert!(record.timestamp.to_string().ends_with('Z'));
    }
    assert!(all.windows(2).all(|two| two[0].timestamp <= two[1].timestamp));
    let wanted = [
        K::SessionStarted,
        K::PlanCreated,
        K::Confirmation,
        K::ToolCallStarted,
        K::ToolCall,
        K::State,
        K::Evaluation,
        K::Performance,
        K::SessionEnded,
    ];
    assert!(kinds(&all).is_superset(&BTreeSet::from(wanted)), "{:?}", kinds(&all));
    let flash = all.iter().find(|one| one.event_type == K::ToolCall && one.data["tool"] == "flash");
    let flash = flash.unwrap();
    assert_eq!(flash.data["arguments"]["place"], "bench-3");
    assert!(flash.duration_ms.is_some() && flash.data["ok"] == true, "{flash:?}");
    let run = all.iter().find(|one| one.event_type == K::ToolCall && one.data["tool"] == "test");
    assert_eq!(run.unwrap().data["run"], "20261126-130000-bbbb");
    let ended = all.last().unwrap();
    assert_eq!((ended.event_type, &ended.data["exit_code"]), (K::SessionEnded, &json!(0)));
    assert_eq!(all.iter().filter(|one| one.event_type == K::SessionEnded).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn iterations_errors_and_degradations_are_told() {
    use RecordKind as K;
    let all = records(RECOVERED).await;
    let failed = all.iter().find(|one| one.event_type == K::Evaluation).unwrap();
    assert_eq!(failed.data["passed"], false);
    let refined = all.iter().find(|one| one.event_type == K::PlanRefined).unwrap();
    assert_eq!(refined.data["iteration"], 2);
    let passed = all.iter().rfind(|one| one.event_type == K::Evaluation).unwrap();
    assert_eq!(passed.data["passed"], true);
    let all = records(DEGRADED).await;
    let call = all.iter().find(|one| {
        one.data.get("tool") == Some(&json!("knowledge_search")) && one.event_type == K::ToolCall
    });
    assert_eq!(call.unwrap().level, RecordLevel::Error);
    let degraded = all.iter().find(|one| one.event_type == K::StepDegraded).unwrap();
    assert_eq!(
        (degraded.level, &degraded.data["tool"]),
        (RecordLevel::Warn, &json!("runs_search"))
    );
}

/// The records of a session that a process goes on with are those that one process would have made.
#[tokio::test(start_paused = true)]
async fn records_do_not_depend_on_where_a_process_began() {
    let rows = rows_of(RECOVERED).await;
    let (whole, _) = records_of("s1", &rows).unwrap();
    for kept in 1..rows.len() {
        let (mut told, mut fold) = records_of("s1", &rows[..kept]).unwrap();
        let mut session = crate::session::Session::of(&rows[..kept]).unwrap();
        for row in &rows[kept..] {
            session.apply(row).unwrap();
            told.extend(fold.row(&session, row).into_iter().map(|record| (row.seq, record)));
        }
        assert_eq!(told, whole, "behind row {kept}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_a_trace_of_opentelemetry() {
    let rows = rows_of(FLASH).await;
    let exported = session_otlp("s1", &rows, "0.1.0").unwrap();
    let scope = &exported["resourceSpans"][0]["scopeSpans"][0];
    let spans = scope["spans"].as_array().unwrap();
    let traces: BTreeSet<_> = spans.iter().map(|span| span["traceId"].as_str().unwrap()).collect();
    assert_eq!(traces.len(), 1);
    assert!(traces.first().unwrap().parse::<jig_model::TraceId>().is_ok(), "{traces:?}");
    let ids: BTreeSet<_> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), spans.len());
    assert!(ids.iter().all(|id| id.len() == 16 && id.bytes().all(|b| b.is_ascii_hexdigit())));
    let (root, calls) = spans.split_first().unwrap();
    assert_eq!(root["status"]["code"], 1);
    assert!(calls.iter().all(|span| span["parentSpanId"] == root["spanId"]));
    let names: Vec<_> = calls.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert!(
        names.contains(&"execute_tool flash") && names.contains(&"execute_tool test"),
        "{names:?}"
    );
    let time = |span: &Value, at: &str| span[at].as_str().unwrap().parse::<u64>().unwrap();
    for span in spans {
        assert!(time(span, "startTimeUnixNano") <= time(span, "endTimeUnixNano"), "{span}");
    }
    let events = root["events"].as_array().unwrap();
    assert!(events.iter().any(|event| event["name"] == "PLAN_CREATED"), "{events:?}");
}
