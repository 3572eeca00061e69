//! What users type after `jig mcp`. Parsing only.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use jig_model::IdentityName;
use jig_model::access::AccessRight;

use super::common::key_name;

/// What to do with the Model Context Protocol.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Serve the rig to an agent or editor on standard input and output
    Serve(McpServeArgs),
    /// List the tools, or show one with the schema of its arguments
    Tools(McpToolsArgs),
    /// Call a tool and print its result as JSON
    Call(McpCallArgs),
}

/// What calls of tools may do.
#[derive(Debug, Args)]
pub(crate) struct ToolPolicyArgs {
    /// Allow calls that need these rights, separated by commas: use, power, flash, administer
    ///
    /// To see is always allowed. The access rules of the rig apply beside it.
    #[arg(long, value_name = "RIGHTS", value_delimiter = ',', value_parser = right)]
    pub(crate) allow: Vec<AccessRight>,
    /// As whom the calls are made: in access rules, leases, records and the audit log; this user without
    /// it
    #[arg(long = "as", value_name = "NAME", value_parser = key_name)]
    pub(crate) identity: Option<IdentityName>,
    /// Folder under which images and plans that calls name have to lie [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) root: Option<PathBuf>,
}

/// Reads a right. The name of a verb would allow more than that verb.
fn right(text: &str) -> Result<AccessRight, String> {
    let named = AccessRight::ALL.into_iter().find(|right| right.as_str() == text);
    named.ok_or_else(|| "use one of: see, use, power, flash, administer".to_owned())
}

/// Arguments of `jig mcp serve`.
#[derive(Debug, Args)]
pub(crate) struct McpServeArgs {
    #[command(flatten)]
    pub(crate) policy: ToolPolicyArgs,
}

/// Arguments of `jig mcp tools`.
#[derive(Debug, Args)]
pub(crate) struct McpToolsArgs {
    /// The tool
    pub(crate) name: Option<String>,
}

/// Arguments of `jig mcp call`.
#[derive(Debug, Args)]
pub(crate) struct McpCallArgs {
    /// The tool
    pub(crate) name: String,
    /// Its arguments, as a JSON object
    #[arg(default_value = "{}")]
    pub(crate) arguments: String,
    #[command(flatten)]
    pub(crate) policy: ToolPolicyArgs,
}
