//! `jig mcp tools` and `jig mcp call`: what an agent sees, for people.

use std::sync::Arc;

use jig_model::command::{CommandEvent, EventSink};
use jig_model::{Fault, exit};
use jig_operator::error::OperatorError;
use jig_operator::mcp::McpToolDoor;
use jig_operator::tools::{Tool, ToolCall, ToolDoor, ToolList, rig_tools};
use serde_json::{Value, json};

use super::{door, other_servers};
use crate::args::{Common, McpCallArgs};
use crate::commands::ask::agents_file;
use crate::commands::rig::stopped;
use crate::commands::runtime::until_signalled;
use crate::failure::Failure;
use crate::render::{Screen, Style, TextTable, one_line};

/// Lists the tools, or shows one.
///
/// JSON: `{"tools":[{"name","description","right","danger","read_only","idempotent","destructive",
/// "timeout_s","server","input_schema"}]}`; `server` is null of a tool of the rig.
pub(super) fn tools(common: &Common, screen: &Screen, name: Option<&str>) -> Result<u8, Failure> {
    // One of the rig needs no other server.
    let all = match name.filter(|name| rig_tools().find(name).is_some()) {
        Some(_) => rig_tools(),
        None => with_others(common, screen)?,
    };
    let shown: Vec<&Tool> = match name {
        None => all.iter().collect(),
        Some(name) => match all.find(name) {
            Some(tool) => vec![tool],
            None => {
                let error = all.checked(&ToolCall::new(name, json!({}))).err();
                return Err(error.map_or_else(super::super::execute::unexpected, failure));
            }
        },
    };
    if screen.json() {
        let tools: Vec<Value> = shown.into_iter().map(as_json).collect();
        screen.out_json(&json!({ "tools": tools }));
        return Ok(exit::PASS);
    }
    if let (Some(_), [tool]) = (name, shown.as_slice()) {
        screen.out(&format!("{}: {}", tool.name, tool.description));
        let schema = serde_json::to_string_pretty(&*tool.input_schema);
        screen.out(&schema.map_err(|error| Failure::of(Fault::Bug, &error))?);
        return Ok(exit::PASS);
    }
    let mut table = TextTable::new(&["TOOL", "RIGHT", "DANGER", "TIMEOUT", "WHAT IT DOES"]);
    for tool in shown {
        table.row([
            (tool.name.clone(), Some(Style::Bold)),
            (tool.risk.right.to_string(), None),
            (tool.risk.danger.to_string(), None),
            (format!("{} s", tool.timeout.as_secs()), None),
            (one_line(&tool.description), None),
        ]);
    }
    screen.out(&table.text(screen.out_paint()));
    Ok(exit::PASS)
}

/// Lists the tools of the rig, and those of the servers in agents.toml. A server that fails is told and
/// hides no other.
fn with_others(common: &Common, screen: &Screen) -> Result<ToolList, Failure> {
    let others = configured(common)?;
    let failed = until_signalled(async |cancel| {
        tokio::select! {
            failed = others.learn() => Ok(failed),
            () = cancel.cancelled() => Err(stopped()),
        }
    })?;
    for error in failed.into_values() {
        screen.failure_beside(&failure(error));
    }
    let tools = [rig_tools(), others.list()];
    Ok(tools.iter().flat_map(|list| list.iter().cloned()).collect())
}

/// Binds the servers of agents.toml.
fn configured(common: &Common) -> Result<McpToolDoor, Failure> {
    other_servers("agents.toml", agents_file(common)?.mcp)
}

fn as_json(tool: &Tool) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "right": tool.risk.right,
        "danger": tool.risk.danger,
        "server": tool.server,
        "read_only": tool.risk.read_only,
        "idempotent": tool.risk.idempotent,
        "destructive": tool.risk.destructive,
        "timeout_s": tool.timeout.as_secs(),
        "input_schema": &*tool.input_schema,
    })
}

/// Hears nothing: the result says what matters.
struct Unheard;

impl EventSink for Unheard {
    fn event(&self, _: CommandEvent) {}
}

/// Calls a tool. Ends with the exit code of its run, if there is one.
///
/// JSON, also without `--json`: the result as a client of the protocol gets it.
pub(super) fn call(common: &Common, screen: &Screen, args: &McpCallArgs) -> Result<u8, Failure> {
    let arguments: Value = serde_json::from_str(&args.arguments).map_err(|error| {
        Failure::new(Fault::Usage, format!("the arguments are no JSON: {error}"))
            .help(format!("jig mcp tools {}", one_line(&args.name)))
    })?;
    let (calls, rig) = door(common, &args.policy)?;
    // A person who names a tool of another server has confirmed the call by that.
    let door: Arc<dyn ToolDoor> = match rig_tools().find(&args.name) {
        None if args.name.contains("__") => Arc::new(configured(common)?),
        _ => rig,
    };
    let called = until_signalled(async |cancel| {
        let call = door.call(ToolCall::new(&args.name, arguments), Arc::new(Unheard));
        let called = tokio::select! {
            called = call => Some(called),
            () = cancel.cancelled() => None,
        };
        calls.closed().await;
        called.ok_or_else(stopped)
    })?;
    let result = called.map_err(failure)?;
    let text = serde_json::to_string_pretty(&result);
    screen.out(&text.map_err(|error| Failure::of(Fault::Bug, &error))?);
    Ok(result.exit_code.unwrap_or(exit::PASS))
}

fn failure(error: OperatorError) -> Failure {
    Failure::new(error.code.fault(), one_line(&error.to_string())).help(one_line(&error.next))
}
