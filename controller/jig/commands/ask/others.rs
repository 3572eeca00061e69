//! Tools of other servers in a session: which servers its plan names, and what is said where one fails.

use std::collections::BTreeSet;

use jig_model::Fault;
use jig_operator::grammar::parse;
use jig_operator::journal::{CharterModel, PlanSource};
use jig_operator::mcp::{McpToolDoor, server_of_tool};
use jig_operator::session::Session;

use super::bind::agents_file;
use crate::args::Common;
use crate::commands::mcp::other_servers;
use crate::failure::Failure;
use crate::render::{Screen, one_line};

/// Binds the servers of `agents.toml`. None is started yet.
pub(super) fn bound(common: &Common) -> Result<McpToolDoor, Failure> {
    other_servers("agents.toml", agents_file(common)?.mcp)
}

/// Tells whether a model plans a session: it may use the tools of every server.
fn plans_by_model(session: &Session) -> bool {
    let words = matches!(session.charter.source, PlanSource::Words) && session.request.is_none();
    let may = |model: &CharterModel| model.first || parse(&session.charter.text).is_err();
    words && session.charter.model.as_ref().is_some_and(may)
}

/// Names the servers whose tools the plan of a session names. The grammar plans with tools of the rig alone,
/// so that a request in words that it understands starts no server.
pub(super) fn named_by(session: &Session) -> BTreeSet<String> {
    let drafted = match &session.charter.source {
        PlanSource::Draft { draft } => Some(draft),
        PlanSource::Words => None,
    };
    let drafted_steps = drafted.iter().flat_map(|draft| &draft.steps);
    let steps = session.plan.iter().flat_map(|plan| &plan.steps);
    let calls = steps.flat_map(|step| &step.tool_calls).map(|call| &call.tool);
    let verified = drafted.iter().flat_map(|draft| &draft.verification);
    let verified = verified.chain(session.plan.iter().map(|plan| &plan.verification));
    let commands = verified.flat_map(|policy| &policy.commands);
    let tools = drafted_steps.map(|step| &step.skill_name).chain(calls).chain(commands);
    tools.filter_map(|tool| server_of_tool(tool).map(str::to_owned)).collect()
}

/// Starts the servers that a session needs and learns their tools. One that fails is told and hides no
/// other: a plan that names its tools is refused where it is lowered.
pub(super) async fn learnt(door: &McpToolDoor, session: &Session, screen: &Screen) {
    let (names, all) = (named_by(session), plans_by_model(session));
    if names.is_empty() && !all {
        return;
    }
    let failed = door.learn_of(|name| all || names.contains(name)).await;
    for error in failed.into_values() {
        let failure = Failure::new(Fault::Lab, one_line(&error.to_string()));
        screen.failure_beside(&failure.help(one_line(&error.next)));
    }
}
