//! The table of tools: schemas, rights, refusals, results.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use jig_model::command::{
    CommandEvent, ConsoleLogEvent, ConsoleLogItem, ConsoleLogSource, EndedReply, EventSink,
    PlanText, Reply, RunReply,
};
use jig_model::protocol::BoxFuture;
use jig_model::{Cause, Evidence, Verdict, VerdictKind};
use serde_json::json;

use super::*;
use crate::tools::{RigQuestion, ToolCall, ToolDoor};

/// A rig that answers everything, and remembers what it was asked.
#[derive(Default)]
struct FakeRig {
    asked: Mutex<Vec<RigRequest>>,
    /// Never answers a command.
    hangs: bool,
    /// Waits for its place first.
    waits: bool,
    /// How many bytes its console prints.
    prints: usize,
}

struct Deaf;

impl EventSink for Deaf {
    fn event(&self, _: CommandEvent) {}
}

impl RigCalls for FakeRig {
    fn execute(
        &self,
        command: jig_model::command::Command,
        input: Vec<u8>,
        events: Arc<dyn EventSink>,
    ) -> BoxFuture<'_, Result<Reply, OperatorError>> {
        Box::pin(async move {
            let place = command.place().clone();
            let runs = matches!(command.name(), "run" | "test" | "recover" | "exec");
            self.asked
                .lock()
                .unwrap()
                .push(RigRequest::Command { command: Box::new(command), input });
            if self.waits {
                let holder = "eve".to_owned();
                events.event(CommandEvent::Waiting { place: place.clone(), holder });
            }
            if self.hangs {
                std::future::pending::<()>().await;
            }
            for offset in (0..self.prints).step_by(4096) {
                let bytes = vec![b'x'; 4096.min(self.prints - offset)];
                events.event(CommandEvent::ConsoleLog(ConsoleLogEvent {
                    at: jiff::Timestamp::UNIX_EPOCH,
                    source: ConsoleLogSource::Captured { file: 1 },
                    offset: offset as u64,
                    item: ConsoleLogItem::Output { bytes },
                }));
            }
            Ok(match runs {
                false => Reply::Ended(EndedReply { place }),
                true => {
                    let mut verdict = Verdict::of(Cause::TestFailed, "1 of 3 tests failed");
                    verdict.evidence.push(Evidence {
                        file: "consoles/1/uart0.raw".to_owned(),
                        start: 5,
                        end: 9,
                        note: "test_x".to_owned(),
                    });
                    Reply::Run(RunReply {
                        run: "20260101-000000-abcd".parse().unwrap(),
                        dir: PathBuf::new(),
                        verdict,
                        exit_code: 1,
                        not_struck: Vec::new(),
                    })
                }
            })
        })
    }

    fn ask(&self, question: RigQuestion) -> BoxFuture<'_, Result<Value, OperatorError>> {
        Box::pin(async move {
            let answer = match &question {
                RigQuestion::RunLog { .. } => json!({ "lines": ["+0.1 uart0> FAIL", "verdict"] }),
                RigQuestion::Run { .. } => json!({ "record": { "id": "20260101-000000-abcd",
                    "verdict": { "kind": "fail" }, "exit_code": 1 } }),
                _ => json!({ "answer": true }),
            };
            self.asked.lock().unwrap().push(RigRequest::Question(question));
            Ok(answer)
        })
    }

    fn image(&self, named: &str) -> Result<PathBuf, OperatorError> {
        match named.starts_with("..") {
            true => Err(OperatorError::new(OperatorCode::PolicyDenied, "outside").untouched()),
            false => Ok(PathBuf::from("/work").join(named)),
        }
    }

    fn plan(&self, named: &str) -> Result<PlanText, OperatorError> {
        Ok(PlanText { origin: named.to_owned(), text: String::new() })
    }
}

fn all_rights() -> ToolPolicy {
    [AccessRight::Administer].into_iter().collect()
}

/// Arguments that fit each tool, as many of them as there are.
fn samples() -> Vec<(&'static str, Value)> {
    vec![
        ("boards", json!({})),
        ("places", json!({})),
        ("health", json!({ "place": "bench-1", "history": 3 })),
        ("leases", json!({})),
        ("runs_list", json!({ "place": "bench-1", "before": "2026", "limit": 3 })),
        ("runs_show", json!({ "run": "last" })),
        ("runs_log", json!({ "run": "last", "from": 7, "lines": 10 })),
        ("runs_files", json!({ "run": "last" })),
        ("runs_read", json!({ "run": "last", "file": "events.jsonl", "from": 1, "length": 20 })),
        ("runs_compare", json!({ "before": "2026", "after": "last" })),
        ("explain", json!({ "run": "last" })),
        ("knowledge_search", json!({ "question": "hard fault", "board": "b", "limit": 2 })),
        ("runs_search", json!({ "question": "hard fault", "limit": 2 })),
        ("audit", json!({ "since_s": 60, "limit": 5 })),
        ("recovery_steps", json!({ "place": "bench-1" })),
        ("power_status", json!({ "place": "bench-1" })),
        ("console", json!({ "place": "bench-1", "console": "uart0", "since_s": 60 })),
        (
            "run",
            json!({ "place": "bench-1", "image": "a.elf", "until": "OK", "console": "uart0",
            "reject": ["E"], "allow": ["W"], "timeout_s": 5,
            "options": { "repeat": 2, "recoveries": 0, "strict": true, "coverage": true } }),
        ),
        (
            "test",
            json!({ "place": "bench-1", "plan": "p.toml", "image": "a.elf",
            "options": { "strict": "behind" } }),
        ),
        (
            "console_send",
            json!({ "place": "bench-1", "console": "uart0", "text": "x\n",
            "quiet_ms": 100 }),
        ),
        ("exec", json!({ "place": "bench-1", "argv": ["uname", "-a"], "timeout_s": 5 })),
        ("check", json!({ "place": "bench-1" })),
        ("reset", json!({ "place": "bench-1" })),
        ("power", json!({ "place": "bench-1", "action": "cycle", "off_ms": 100 })),
        ("recover", json!({ "place": "bench-1", "from": "reset" })),
        ("flash", json!({ "place": "bench-1", "image": "a.elf" })),
        ("erase", json!({ "place": "bench-1" })),
        ("halt", json!({ "place": "bench-1" })),
        ("resume", json!({ "place": "bench-1" })),
        ("registers", json!({ "place": "bench-1", "names": ["pc"] })),
        ("memory_read", json!({ "place": "bench-1", "address": "0x20000000", "length": 16 })),
        ("memory_write", json!({ "place": "bench-1", "address": "0x20000000", "bytes": "00ff" })),
        ("backtrace", json!({ "place": "bench-1", "image": "a.elf" })),
        (
            "breakpoint",
            json!({ "place": "bench-1", "function": "main", "image": "a.elf",
            "reset": true, "timeout_ms": 100 }),
        ),
    ]
}

fn request(name: &str, arguments: &Value) -> Result<RigRequest, OperatorError> {
    rig_tools().checked(&ToolCall::new(name, arguments.clone()))?;
    let row = RIG_TOOLS.iter().find(|row| row.name == name).unwrap();
    (row.lower)(arguments.clone(), &FakeRig::default())
}

async fn called(
    rig: FakeRig,
    policy: ToolPolicy,
    name: &str,
    arguments: Value,
) -> Result<ToolResult, OperatorError> {
    let door = RigToolDoor::new(Arc::new(rig), policy);
    door.call(ToolCall::new(name, arguments), Arc::new(Deaf)).await
}

fn now<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn each_tool_says_all_that_an_agent_needs() {
    let tools = rig_tools();
    assert_eq!(tools.iter().count(), RIG_TOOLS.len(), "names are unique");
    for tool in &tools {
        let fits = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(tool.name.chars().all(fits) && tool.name.len() <= 64, "{}", tool.name);
        assert!(tool.description.len() > 35 && tool.description.ends_with('.'), "{}", tool.name);
        let schema = &tool.input_schema;
        assert_eq!(schema["type"], "object", "{}", tool.name);
        assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
        assert!(!schema.to_string().contains("$ref"), "{}: {schema}", tool.name);
        for (name, of) in schema["properties"].as_object().into_iter().flatten() {
            let about = of["description"].as_str().is_some() || of.get("default").is_some();
            assert!(about, "{} {name}: {of}", tool.name);
        }
    }
}

#[test]
fn each_sample_fits_and_each_argument_is_in_one() {
    let samples = samples();
    let named: BTreeSet<_> = samples.iter().map(|(name, _)| *name).collect();
    let known: BTreeSet<_> = RIG_TOOLS.iter().map(|row| row.name).collect();
    assert_eq!(named, known);
    for (name, arguments) in &samples {
        request(name, arguments).unwrap_or_else(|error| panic!("{name}: {error}"));
        let tools = rig_tools();
        let schema = &tools.find(name).unwrap().input_schema;
        for argument in schema["properties"].as_object().into_iter().flatten() {
            // Either of two that exclude each other.
            let excluded = ["plan_text", "address"].contains(&argument.0.as_str());
            assert!(excluded || arguments.get(argument.0).is_some(), "{name} {}", argument.0);
        }
    }
}

#[test]
fn the_right_of_a_tool_is_that_of_its_command() {
    for (name, arguments) in samples() {
        let tools = rig_tools();
        let risk = tools.find(name).unwrap().risk(&arguments);
        match request(name, &arguments).unwrap() {
            RigRequest::Question(_) => assert_eq!(risk, ToolRisk::READ, "{name}"),
            RigRequest::Command { command, .. } => {
                assert_eq!(risk.right, command.access_right(), "{name}");
            }
        }
        assert_eq!(risk.read_only, risk.right == AccessRight::See, "{name}");
        assert_eq!(risk.read_only, risk.danger == Danger::None, "{name}");
    }
}

#[test]
fn mutilated_arguments_are_refused_and_never_more() {
    let odd = [
        json!(null),
        json!(-1),
        json!(1e300),
        json!("../../etc/passwd\u{0}"),
        json!([[]]),
        json!({ "a": {} }),
        json!(true),
    ];
    for (name, arguments) in samples() {
        let fields: Vec<String> = arguments.as_object().unwrap().keys().cloned().collect();
        for field in fields {
            for value in &odd {
                let mut arguments = arguments.clone();
                arguments[&field] = value.clone();
                if let Err(error) = request(name, &arguments) {
                    let known = [OperatorCode::InvalidArgs, OperatorCode::PolicyDenied];
                    assert!(known.contains(&error.code) && error.untouched, "{name}: {error:?}");
                }
            }
        }
        for value in &odd {
            assert!(request(name, value).is_err() || value == &json!({}), "{name} {value}");
        }
    }
}

#[test]
fn refusals_name_the_path_and_what_would_fit() {
    let refused = |name: &str, arguments: Value| request(name, &arguments).unwrap_err().message;
    assert_eq!(
        request("flsh", &json!({})).unwrap_err().message,
        "there is no tool \"flsh\"; did you mean `flash`?"
    );
    assert_eq!(
        refused("run", json!({ "plce": "bench-1" })),
        "arguments of run: at /: `place` is missing (The place, or the kind of an emulated board.); \
         at /plce: there is no such argument; did you mean `place`?"
    );
    assert_eq!(
        refused("power", json!({ "place": "bench-1", "action": "cycel" })),
        "arguments of power: at /action: \"cycel\" does not fit; did you mean `cycle`?"
    );
    assert_eq!(
        refused("run", json!({ "place": "bench-1", "options": { "repeat": 0 } })),
        "arguments of run: at /options/repeat: 0 is too small; the least is 1"
    );
    assert_eq!(
        refused("exec", json!({ "place": "bench-1", "argv": ["ls", 7] })),
        "arguments of exec: at /argv/1: 7 is no string"
    );
    assert_eq!(refused("boards", json!([])), "arguments of boards: at /: a list is no object");
    let bad_name = refused("reset", json!({ "place": "a b" }));
    assert!(
        bad_name.starts_with("arguments of reset: at /place: \"a b\" does not fit"),
        "{bad_name}"
    );
    let step = refused("recover", json!({ "place": "b", "from": "rset" }));
    assert!(step.contains("at /from: \"rset\" does not fit; did you mean `reset`?"), "{step}");
    let address = refused("memory_read", json!({ "place": "b", "address": "x", "length": 4 }));
    assert!(address.contains("at /address: \"x\" is no address"), "{address}");
}

#[test]
fn what_is_not_allowed_is_neither_offered_nor_done() {
    let door = |policy| RigToolDoor::new(Arc::new(FakeRig::default()), policy);
    let offered: Vec<_> = door(ToolPolicy::default()).list().iter().cloned().collect();
    assert!(offered.iter().all(|tool| tool.risk.read_only), "{offered:?}");
    assert_eq!(door(all_rights()).list().iter().count(), RIG_TOOLS.len());
    let flash = json!({ "place": "bench-1", "image": "a.elf" });
    let only = |right| [right].into_iter().collect::<ToolPolicy>();
    let refused = now(called(FakeRig::default(), only(AccessRight::Use), "flash", flash.clone()));
    let refused = refused.unwrap_err();
    assert_eq!((refused.code, refused.untouched), (OperatorCode::PolicyDenied, true));
    assert_eq!(refused.next, "jig mcp serve --allow use,flash");
    now(called(FakeRig::default(), only(AccessRight::Flash), "flash", flash)).unwrap();
    // A plan that starts programs on the host needs more than the tool itself.
    let plan = "version = 1\nname = \"x\"\ntimeout = \"9s\"\n[[stage]]\nname = \"s\"\n[[stage.step]]\n\
                name = \"t\"\nactions = [{ host_command = [\"touch\", \"/x\"] }]\n";
    assert!(jig_model::plan::Plan::parse("plan", plan).unwrap().reaches_host());
    let arguments = json!({ "place": "bench-1", "plan_text": plan });
    assert_eq!(rig_tools().find("test").unwrap().risk(&arguments).danger, Danger::Host);
    let refused = now(called(FakeRig::default(), only(AccessRight::Use), "test", arguments));
    assert_eq!(refused.unwrap_err().code, OperatorCode::PolicyDenied);
}

#[test]
fn a_failed_run_is_a_result_with_its_verdict_evidence_and_log() {
    let result = now(called(
        FakeRig::default(),
        all_rights(),
        "run",
        json!({ "place": "bench-1", "image": "a.elf" }),
    ))
    .unwrap();
    assert_eq!((result.verdict, result.exit_code), (Some(VerdictKind::Fail), Some(1)));
    assert_eq!(result.text.as_deref(), Some("+0.1 uart0> FAIL\nverdict"));
    assert_eq!((result.logs[0].from, result.logs[0].to), (5, 9));
    let shown =
        now(called(FakeRig::default(), ToolPolicy::default(), "runs_show", json!({}))).unwrap();
    assert_eq!((shown.verdict, shown.exit_code), (Some(VerdictKind::Fail), Some(1)));
    assert_eq!(shown.run, result.run);
}

#[test]
fn output_of_a_console_is_cut_to_head_and_tail() {
    let rig = FakeRig { prints: 1 << 20, ..FakeRig::default() };
    let arguments = json!({ "place": "bench-1" });
    let result = now(called(rig, ToolPolicy::default(), "console", arguments)).unwrap();
    assert!(result.text.unwrap().len() < 40_000);
    assert_eq!((result.cut[0].path.as_str(), result.cut[0].whole), ("/text", 1 << 20));
}

#[test]
fn a_call_that_takes_too_long_is_ended_and_says_so() {
    let rig = Arc::new(FakeRig { hangs: true, ..FakeRig::default() });
    let door = RigToolDoor::new(rig, all_rights());
    let mut call = ToolCall::new("reset", json!({ "place": "bench-1" }));
    call.timeout_ms = Some(20);
    let error = now(async {
        tokio::time::timeout(Duration::from_secs(20), door.call(call, Arc::new(Deaf))).await
    });
    let error = error.expect("the call has a time-out of its own").unwrap_err();
    assert_eq!((error.code, error.untouched), (OperatorCode::ToolTimeout, false));
}

/// A run has begun before anything is done: one that still waits may be repeated. Of another command that is
/// not known.
#[test]
fn a_call_that_waits_for_its_place_says_who_has_it() {
    let cases = [
        ("run", json!({ "place": "bench-1" }), (OperatorCode::Conflict, true)),
        ("reset", json!({ "place": "bench-1" }), (OperatorCode::ToolTimeout, false)),
    ];
    for (tool, arguments, wanted) in cases {
        let rig = Arc::new(FakeRig { hangs: true, waits: true, ..FakeRig::default() });
        let door = RigToolDoor::new(rig, all_rights());
        let mut call = ToolCall::new(tool, arguments);
        call.timeout_ms = Some(20);
        let error = now(async {
            tokio::time::timeout(Duration::from_secs(20), door.call(call, Arc::new(Deaf))).await
        });
        let error = error.expect("the call has a time-out of its own").unwrap_err();
        assert_eq!((error.code, error.untouched), wanted, "{error}");
        assert_eq!(error.message.contains("in use by eve"), tool == "run", "{error}");
    }
}
