//! `jig mcp`: the tools of the rig, for agents and editors.

mod answers;
mod calls;
mod files;
mod programs;
mod search;
mod tools;

use std::sync::Arc;

use jig_model::{Fault, exit};
use jig_operator::mcp::{McpServed, serve_mcp};
use jig_operator::tools::{RigToolDoor, ToolPolicy};
use jig_rig::identity::named;
use tokio::io::{stdin, stdout};

pub(crate) use self::calls::LabCalls;
pub(crate) use self::programs::other_servers;
use super::runtime::until_signalled;
use crate::args::{Common, McpCommand, ToolPolicyArgs};
use crate::failure::Failure;
use crate::render::Screen;

/// Serves the rig, or shows and calls its tools.
pub(crate) fn mcp(common: &Common, screen: &Screen, command: McpCommand) -> Result<u8, Failure> {
    match command {
        McpCommand::Serve(args) => serve(common, &args.policy),
        McpCommand::Tools(args) => tools::tools(common, screen, args.name.as_deref()),
        McpCommand::Call(args) => tools::call(common, screen, &args),
    }
}

/// Binds the tools of the rig that the arguments name.
fn door(
    common: &Common,
    args: &ToolPolicyArgs,
) -> Result<(Arc<LabCalls>, Arc<RigToolDoor>), Failure> {
    let policy: ToolPolicy = args.allow.iter().copied().collect();
    let identity = args.identity.clone().map(named);
    let calls = Arc::new(LabCalls::open(common, identity, args.root.as_deref())?);
    let door = Arc::new(RigToolDoor::new(calls.clone(), policy));
    Ok((calls, door))
}

/// Serves a client until it closes the connection, or a signal comes. Commands that are under way then are
/// cancelled, and their end is waited for.
fn serve(common: &Common, args: &ToolPolicyArgs) -> Result<u8, Failure> {
    let (calls, door) = door(common, args)?;
    until_signalled(async |cancel| {
        let served = tokio::select! {
            served = serve_mcp(door, env!("CARGO_PKG_VERSION"), stdin(), stdout()) => Some(served),
            () = cancel.cancelled() => None,
        };
        calls.closed().await;
        match served {
            None => Ok(exit::CANCELLED),
            Some(McpServed::Closed) => Ok(exit::PASS),
            Some(McpServed::NoHandshake) => {
                let words = "standard input ended, or was no session of the Model Context Protocol";
                Err(Failure::new(Fault::Usage, words)
                    .help("an MCP client starts this command; to try it by hand: jig mcp tools"))
            }
            Some(McpServed::Broken) => Err(Failure::new(Fault::Bug, "the session broke off")),
        }
    })
}
