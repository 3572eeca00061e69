//! A tool as it is described, and the list of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jig_model::access::AccessRight;
use jig_model::document::did_you_mean;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ToolCall;
use super::schema;
use crate::error::{OperatorCode, OperatorError};

/// What a call can do at worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Danger {
    /// Nothing changes.
    None,
    /// A board is used or changed: flash, reset, power, memory, input.
    Board,
    /// Something outside of the board may change: a program runs on a host, or a server of other
    /// people does what it does.
    Host,
}

impl Danger {
    /// Returns the stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Board => "board",
            Self::Host => "host",
        }
    }
}

impl fmt::Display for Danger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a call does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRisk {
    /// It changes nothing.
    pub read_only: bool,
    /// A second call with the same arguments changes nothing more, so it may be retried.
    pub idempotent: bool,
    /// It overwrites what was there: flash, memory, power state.
    pub destructive: bool,
    /// What it can do at worst.
    pub danger: Danger,
    /// The right that it needs at its place.
    pub right: AccessRight,
}

impl ToolRisk {
    /// A call that only looks.
    pub const READ: Self = Self {
        read_only: true,
        idempotent: true,
        destructive: false,
        danger: Danger::None,
        right: AccessRight::See,
    };
}

/// Tells the risk of a call with these arguments.
pub(super) type RiskOf = fn(&Value) -> ToolRisk;

/// A tool as it is described to a planner, an agent or a reader.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Its name: letters, digits, `_` and `-`, 64 at most.
    pub name: String,
    /// What it does, when to use it and what it answers, for an agent.
    pub description: String,
    /// The JSON Schema of its arguments, an object without references.
    pub input_schema: Arc<Value>,
    /// The JSON Schema of its result, where there is one.
    pub output_schema: Option<Arc<Value>>,
    /// What a call does. Where the command of a call needs a greater right, as a plan that reaches the
    /// host does, the call is judged by that.
    pub risk: ToolRisk,
    /// The risk of a call, where its arguments tell more.
    pub(super) risk_of: Option<RiskOf>,
    /// How long a call may take by default.
    pub timeout: Duration,
    /// The MCP server that has the tool; none if it is one of the rig.
    pub server: Option<String>,
}

impl Tool {
    /// Describes a tool of another server.
    pub(crate) fn of_server(
        server: &str,
        name: String,
        description: String,
        input_schema: Value,
        risk: ToolRisk,
        timeout: Duration,
    ) -> Self {
        let (input_schema, server) = (Arc::new(input_schema), Some(server.to_owned()));
        let (output_schema, risk_of) = (None, None);
        Self { name, description, input_schema, output_schema, risk, risk_of, timeout, server }
    }

    /// Returns the risk of a call with these arguments.
    pub fn risk(&self, arguments: &Value) -> ToolRisk {
        self.risk_of.map_or(self.risk, |of| of(arguments))
    }

    /// Checks the arguments of a call against the schema.
    ///
    /// # Errors
    /// They do not fit: the message names each path and the nearest name or value that fits.
    pub fn check(&self, arguments: &Value) -> Result<(), OperatorError> {
        let misfits = schema::misfits(&self.input_schema, arguments);
        if misfits.is_empty() {
            return Ok(());
        }
        let misfits: Vec<_> = misfits.iter().map(ToString::to_string).collect();
        let message = format!("arguments of {}: {}", self.name, misfits.join("; "));
        Err(OperatorError::new(OperatorCode::InvalidArgs, message)
            .next(format!("jig mcp tools {}", self.name))
            .untouched())
    }
}

/// The tools there are, in a fixed order. Cheap to copy.
#[derive(Debug, Clone, Default)]
pub struct ToolList {
    tools: Arc<[Tool]>,
    by_name: Arc<BTreeMap<String, usize>>,
}

impl FromIterator<Tool> for ToolList {
    /// Of several tools with one name, the first is kept.
    fn from_iter<T: IntoIterator<Item = Tool>>(tools: T) -> Self {
        let (mut kept, mut by_name) = (Vec::new(), BTreeMap::new());
        for tool in tools {
            by_name.entry(tool.name.clone()).or_insert_with(|| {
                kept.push(tool);
                kept.len() - 1
            });
        }
        Self { tools: kept.into(), by_name: Arc::new(by_name) }
    }
}

impl ToolList {
    /// Finds a tool by its name.
    pub fn find(&self, name: &str) -> Option<&Tool> {
        self.by_name.get(name).and_then(|n| self.tools.get(*n))
    }

    /// Returns the tools in their order.
    pub fn iter(&self) -> std::slice::Iter<'_, Tool> {
        self.tools.iter()
    }

    /// Finds the tool of a call and checks its arguments.
    ///
    /// # Errors
    /// There is no such tool, or its arguments do not fit.
    pub fn checked(&self, call: &ToolCall) -> Result<&Tool, OperatorError> {
        let tool = self.find(&call.name).ok_or_else(|| {
            let help = did_you_mean(&call.name, self.by_name.keys().map(String::as_str));
            let name: String = call.name.chars().take(64).collect();
            OperatorError::new(
                OperatorCode::InvalidArgs,
                format!("there is no tool {name:?}; {help}"),
            )
            .next("jig mcp tools")
            .untouched()
        })?;
        tool.check(&call.arguments)?;
        Ok(tool)
    }
}

impl<'l> IntoIterator for &'l ToolList {
    type Item = &'l Tool;
    type IntoIter = std::slice::Iter<'l, Tool>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
