//! What a model is told: the state, the boards, the tools, the runs, what the lab knows. Pure.

use std::fmt::Write as _;

use jig_agents::budget::PromptPart;
use jig_agents::roles::{AgentRole, RoleReach, RoleState};
use jig_model::VerdictKind;
use jig_model::access::AccessRight;
use serde_json::{Map, Value, json};

use super::asking;
use crate::session::{CallRecord, Session};
use crate::tools::{Tool, ToolList, escaped};

/// Most boards, runs and pieces of knowledge that a model is told.
const MAX_BOARDS: usize = 100;
const MAX_RUNS: usize = 20;
const MAX_KNOWN: usize = 5;

/// Longest description of a tool, in characters.
const MAX_ABOUT: usize = 160;

/// Most results of calls that a model is told.
const MAX_RESULTS: usize = 12;

/// Longest result of a call that a model is told, in characters.
const MAX_RESULT: usize = 4000;

/// What a model is given for one piece of work.
pub(crate) struct ModelTask {
    /// The words of the person.
    pub(crate) text: String,
    /// The state that the roles share.
    pub(crate) state: RoleState,
    /// The tools that may be planned.
    pub(crate) tools: ToolList,
    /// The places of the rig.
    pub(crate) places: Vec<String>,
    /// What the person has answered to questions of the model.
    pub(crate) answers: Vec<String>,
    /// Further parts, the most important first.
    pub(crate) parts: Vec<PromptPart>,
}

impl ModelTask {
    /// Returns the words of the person: the request, and the answers to questions about it.
    pub(super) fn request(&self) -> String {
        let answers = self.answers.iter().map(|answer| format!("\n{answer}"));
        answers.fold(self.text.clone(), |text, answer| text + &answer)
    }

    /// Collects what is known in a session.
    pub(crate) fn of(session: &Session, tools: &ToolList, reach: RoleReach) -> Self {
        let tools: ToolList = tools.iter().filter(|tool| may_plan(tool, reach)).cloned().collect();
        let acts = |tool: &&Tool| !tool.risk.read_only;
        let probe = |tool: &&Tool| PROBE_TOOLS.contains(&tool.name.as_str());
        let lines = |wanted: &dyn Fn(&&Tool) -> bool| -> String {
            tools.iter().filter(|tool| wanted(tool)).map(tool_line).collect()
        };
        let parts = [
            ("boards", boards(session)),
            ("tools that use a board", lines(&|tool| acts(tool) && !probe(tool))),
            ("tools that only read", lines(&|tool| !acts(tool) && !probe(tool))),
            ("what the lab knows", known(session)),
            ("newest runs", runs(session)),
            ("tools of a debug probe", lines(&probe)),
        ];
        let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
        Self {
            text: session.charter.text.clone(),
            state: role_state(session),
            tools: tools.clone(),
            places: session.context.boards.keys().cloned().collect(),
            answers: asking::answered(&session.answers),
            parts: parts.map(|(name, text)| PromptPart { name, text }).collect(),
        }
    }
}

/// Tools that few requests need: they come last in a prompt.
const PROBE_TOOLS: [&str; 7] =
    ["halt", "resume", "registers", "memory_read", "memory_write", "backtrace", "breakpoint"];

fn may_plan(tool: &Tool, reach: RoleReach) -> bool {
    match reach {
        RoleReach::None => false,
        RoleReach::Read => tool.risk.read_only,
        // A session has no rights of an administrator at the rig. What other servers do waits for a person.
        RoleReach::Rig => tool.server.is_some() || tool.risk.right != AccessRight::Administer,
    }
}

/// Returns a tool as a line: `run(place*: text, image: text): Puts an image on a board.`
fn tool_line(tool: &Tool) -> String {
    let none = Map::new();
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    let required = tool.input_schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| {
        required.is_some_and(|names| names.iter().any(|known| known.as_str() == Some(name)))
    };
    let arguments = properties.unwrap_or(&none).iter().map(|(name, schema)| {
        let star = if is_required(name) { "*" } else { "" };
        format!("{name}{star}: {}", kind_of(schema, 0))
    });
    let arguments: Vec<_> = arguments.collect();
    let about: String = tool.description.split_whitespace().collect::<Vec<_>>().join(" ");
    let about: String = about.chars().take(MAX_ABOUT).collect();
    // Servers of other people describe their tools as they like.
    on_a_line(&format!("{}({}): {about}", tool.name, arguments.join(", "))) + "\n"
}

fn on_a_line(text: &str) -> String {
    escaped(text.as_bytes()).replace(['\n', '\t'], " ")
}

/// Names the kind of an argument in a few words.
fn kind_of(schema: &Value, depth: usize) -> String {
    let branches = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.as_array());
    if let Some(branches) = branches.filter(|_| depth < 3) {
        let null = |branch: &&Value| branch.get("type").and_then(Value::as_str) != Some("null");
        let kinds: Vec<_> =
            branches.iter().filter(null).take(4).map(|branch| kind_of(branch, depth + 1)).collect();
        return kinds.join(" or ");
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let words: Vec<_> = choices.iter().filter_map(Value::as_str).take(12).collect();
        return words.join("|");
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("any")
        }
        _ => "any",
    };
    let fields = schema.get("properties").and_then(Value::as_object).filter(|_| depth < 1);
    match (kind, fields) {
        ("object", Some(fields)) => {
            let fields: Vec<_> = fields
                .iter()
                .take(8)
                .map(|(name, schema)| format!("{name}: {}", kind_of(schema, depth + 1)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        ("array", _) => {
            let of = schema.get("items").filter(|_| depth < 3);
            format!("list of {}", of.map_or("any".to_owned(), |of| kind_of(of, depth + 1)))
        }
        ("string", _) => "text".to_owned(),
        (kind, _) => kind.to_owned(),
    }
}

fn boards(session: &Session) -> String {
    let mut text = String::new();
    for (place, board) in session.context.boards.iter().take(MAX_BOARDS) {
        let kind = if board.nature.emulated { "emulated" } else { "real" };
        let health = board.health.as_deref().unwrap_or("unknown health");
        let user = if board.used_by.is_some() { ", in use" } else { "" };
        let _ = writeln!(text, "{place}: a {kind} {}, {health}{user}", board.kind);
    }
    text
}

fn runs(session: &Session) -> String {
    let mut text = String::new();
    for run in session.context.runs.iter().take(MAX_RUNS) {
        let _ = writeln!(
            text,
            "{} on {} ({}): {} {}: {}",
            run.id,
            run.place,
            run.plan,
            run.verdict,
            run.cause,
            on_a_line(&run.summary)
        );
    }
    text
}

fn known(session: &Session) -> String {
    let found = session.context_result("knowledge_search");
    let hits = found.and_then(|found| found.data.get("hits")?.as_array());
    let mut text = String::new();
    for hit in hits.into_iter().flatten().take(MAX_KNOWN) {
        let word = |at: &str| {
            let word = hit.pointer(at).and_then(Value::as_str).unwrap_or_default();
            on_a_line(word)
        };
        let (title, status) = (word("/unit/content/title"), word("/unit/standing/status"));
        let (cause, help) = (word("/unit/content/root_cause"), word("/unit/content/resolution"));
        let _ = writeln!(text, "{title} ({status}); cause: {cause}; what helped: {help}");
    }
    text
}

fn status_of(record: &CallRecord) -> &'static str {
    match &record.result {
        Err(_) => "error",
        Ok(result) => match (result.verdict, result.exit_code) {
            (Some(VerdictKind::Pass), None | Some(0)) => "passed",
            (Some(_), _) => "failed",
            (None, None | Some(0)) => "done",
            (None, Some(_)) => "failed",
        },
    }
}

/// Returns the state that the roles share. Results come from the rig alone.
pub(crate) fn role_state(session: &Session) -> RoleState {
    let drafted = session.plan.as_ref().map(|plan| json!(plan.drafted()));
    let test_plan = match drafted {
        Some(Value::Object(plan)) => plan,
        _ => Map::new(),
    };
    let result = |record: &&CallRecord| {
        let status = status_of(record);
        if status == "done" {
            return None;
        }
        let mut fields = Map::new();
        fields.insert("step".to_owned(), json!(record.step));
        fields.insert("tool".to_owned(), json!(record.call.name));
        fields.insert("status".to_owned(), json!(status));
        match &record.result {
            Ok(result) => {
                fields.insert("verdict".to_owned(), json!(result.verdict));
                fields.insert("run".to_owned(), json!(result.run));
            }
            Err(error) => {
                fields.insert("error".to_owned(), json!(error.to_string()));
            }
        }
        Some(fields)
    };
    let errors = session.failures.iter().map(|(step, error)| format!("step {step}: {error}"));
    RoleState {
        task_id: session.charter.trace_id.clone(),
        iteration: session.iteration,
        repo_path: session.charter.folder.clone(),
        test_plan,
        test_results: session.deciding_calls().iter().filter_map(result).collect(),
        messages: session.remarks.clone(),
        errors: errors.chain(session.unverified.iter().map(ToString::to_string)).collect(),
        ..RoleState::default()
    }
}

/// Returns what the steps have come to, a part a call: those that did not pass first, then the newest.
pub(crate) fn results_parts(session: &Session) -> Vec<PromptPart> {
    let of_steps = session.calls.iter().filter(|record| record.step.is_some());
    let mut records: Vec<&CallRecord> = of_steps.collect();
    records.sort_by_key(|record| {
        let failed = matches!(status_of(record), "failed" | "error");
        (!failed, std::cmp::Reverse(record.number))
    });
    let part = |record: &&CallRecord| {
        let step = record.step.unwrap_or_default();
        let (name, args) = (&record.call.name, &record.call.arguments);
        let came_to = match &record.result {
            Ok(result) => json!({
                "verdict": result.verdict, "run": result.run, "exit_code": result.exit_code,
                "data": result.data, "text": result.text,
            })
            .to_string(),
            Err(error) => error.to_string(),
        };
        let came_to: String = came_to.chars().take(MAX_RESULT).collect();
        let text = format!("step {step}: {name} {args} came to: {came_to}");
        PromptPart { name: "result", text }
    };
    records.iter().take(MAX_RESULTS).map(part).collect()
}

/// Returns the state as a role sees it, then what the session knows.
pub(super) fn parts_for(
    task: &ModelTask,
    role: AgentRole,
    first: &[PromptPart],
) -> Vec<PromptPart> {
    let state = task.state.part(role);
    first.iter().cloned().chain([state]).chain(task.parts.iter().cloned()).collect()
}
