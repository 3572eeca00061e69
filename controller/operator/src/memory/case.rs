//! A session as a case for later ones.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jig_agents::roles::AgentRole;
use jig_model::signature::verdict_signature;
use jig_model::{Verdict, VerdictKind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::digest::value_digest;
use crate::error::{OperatorCode, OperatorError};
use crate::journal::BlockReason;
use crate::session::{CallRecord, Session};

/// Longest text of a case, in bytes.
const MAX_TEXT: usize = 2000;

/// Most names of a list.
const MAX_NAMES: usize = 64;

jig_model::words! {
    /// Names the role whose instruction a failure concerns.
    CaseRole, "role" {
        /// Makes the plan.
        Planner = "planner",
        /// Changes code.
        Code = "code",
        /// Runs tests.
        Test = "test",
        /// Explains results.
        Analysis = "analysis",
        /// Searches what is known.
        Knowledge = "knowledge",
    }
}

impl CaseRole {
    /// Returns the role in which a model is asked: plans are asked of [`AgentRole::Test`].
    pub fn asked(self) -> AgentRole {
        match self {
            Self::Planner | Self::Test => AgentRole::Test,
            Self::Code => AgentRole::Code,
            Self::Analysis => AgentRole::Analysis,
            Self::Knowledge => AgentRole::Knowledge,
        }
    }
}

/// The class of a failure: names of closed lists, and no word of a target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureClass {
    /// The role that it concerns.
    pub role: CaseRole,
    /// The tool that failed; nothing where no call did.
    pub tool: Option<String>,
    /// The code.
    pub code: OperatorCode,
    /// The cause of the verdict, where a run has one.
    pub cause: Option<String>,
}

impl FailureClass {
    /// Returns the class as one text: `test run E_IO emulator_missing`.
    pub fn key(&self) -> String {
        let Self { role, tool, code, cause } = self;
        let words = [Some(role.as_str()), tool.as_deref(), Some(code.as_str()), cause.as_deref()];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// A session as a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionCase {
    /// The trace of the session, by which it is known.
    pub trace_id: String,
    /// When it ended.
    pub at: Timestamp,
    /// The request; hostile text.
    pub request: String,
    /// Equal for sessions that ask for the same: a digest of tools, arguments and places.
    pub goal: String,
    /// Whether the goal was reached.
    pub passed: bool,
    /// The class of what it failed by.
    pub class: Option<FailureClass>,
    /// The signature of the run that failed, or of the failure; may hold hostile text.
    pub signature: Option<String>,
    /// What failed, in words; may hold hostile text.
    pub failure: Option<String>,
    /// The tools that its steps called, in their order.
    pub tools: Vec<String>,
    /// The kinds of boards.
    pub boards: BTreeSet<String>,
    /// The places.
    pub places: BTreeSet<String>,
    /// Its runs.
    pub runs: Vec<String>,
}

impl SessionCase {
    /// Makes the case of a session that is about to end. Nothing of one that was cancelled or refused, and of
    /// one that only looked and found what it looked for: it teaches nothing.
    pub fn of(session: &Session, at: Timestamp) -> Option<Self> {
        let error = match &session.blocked {
            Some(
                BlockReason::Refused
                | BlockReason::Unanswered
                | BlockReason::Cancelled { .. }
                | BlockReason::PlanOnly,
            ) => return None,
            Some(BlockReason::Failed { error }) => Some(error.clone()),
            None => None,
        };
        let steps: Vec<&CallRecord> =
            session.calls.iter().filter(|record| record.step.is_some()).collect();
        let acts = steps.iter().any(|record| is_acting(&record.call.name));
        if !acts && error.is_none() {
            return None;
        }
        // A request that was not understood says more of the grammar than of the rig.
        if steps.is_empty() && error.as_ref().is_some_and(|e| e.code == OperatorCode::InvalidArgs) {
            return None;
        }
        let failing = failing(session);
        let named = |record: &&CallRecord, at: &str| {
            record.call.arguments.get(at).and_then(Value::as_str).map(str::to_owned)
        };
        let places: BTreeSet<String> =
            steps.iter().filter_map(|record| named(record, "place")).take(MAX_NAMES).collect();
        let known = places.iter().filter_map(|place| session.context.boards.get(place));
        let boards = known.map(|board| board.kind.clone()).collect();
        let runs = steps.iter().filter_map(|record| record.result.as_ref().ok()?.run.clone());
        let failed = error.is_some() || failing.is_some();
        let class = failed.then(|| class_of(failing, error.as_ref()));
        let signature = failing.and_then(signature_of);
        let words = error.map(|error| error.to_string());
        Some(Self {
            trace_id: session.charter.trace_id.clone(),
            at,
            request: cut(&session.charter.text),
            goal: goal_of(session),
            passed: !failed,
            signature: signature.or_else(|| class.as_ref().map(FailureClass::key)),
            class,
            failure: words.map(|words| cut(&words)),
            tools: steps.iter().map(|r| listed_name(&r.call.name)).take(MAX_NAMES).collect(),
            boards,
            places,
            runs: runs.map(|run| run.to_string()).take(MAX_NAMES).collect(),
        })
    }
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

/// Returns the name of a tool as instructions may have it. How another server calls its tools is its own
/// word, and may be a sentence.
fn listed_name(tool: &str) -> String {
    match crate::mcp::server_of_tool(tool) {
        Some(server) => format!("{server}__*"),
        None => tool.to_owned(),
    }
}

fn is_acting(tool: &str) -> bool {
    crate::tools::rig_tools().find(tool).is_none_or(|tool| !tool.risk.read_only)
}

/// Returns the call that a session has failed by: the last one that counts.
fn failing(session: &Session) -> Option<&CallRecord> {
    let bad = |record: &&&CallRecord| match &record.result {
        Err(_) => true,
        Ok(result) => result.verdict.is_some_and(|verdict| verdict != VerdictKind::Pass),
    };
    let deciding = session.deciding_calls();
    deciding.iter().rev().find(bad).copied()
}

fn class_of(failing: Option<&CallRecord>, error: Option<&OperatorError>) -> FailureClass {
    let Some(record) = failing else {
        let code = error.map_or(OperatorCode::Model, |error| error.code);
        return FailureClass { role: CaseRole::Planner, tool: None, code, cause: None };
    };
    let (code, cause) = match &record.result {
        Err(error) => (error.code, None),
        Ok(result) => {
            let code = match result.verdict {
                Some(VerdictKind::EnvError) => OperatorCode::Io,
                Some(VerdictKind::Inconclusive | VerdictKind::Cancelled) => OperatorCode::Conflict,
                _ => OperatorCode::BuildFail,
            };
            (code, verdict_of(record).map(|verdict| verdict.cause.to_string()))
        }
    };
    let tool = listed_name(&record.call.name);
    let role = match tool.as_str() {
        "knowledge_search" | "runs_search" => CaseRole::Knowledge,
        "explain" | "runs_compare" | "runs_show" | "runs_list" | "runs_log" | "runs_read" => {
            CaseRole::Analysis
        }
        _ if crate::mcp::server_of_tool(&tool).is_some() => CaseRole::Code,
        _ => CaseRole::Test,
    };
    FailureClass { role, tool: Some(tool), code, cause }
}

/// Reads the verdict of a run out of the result of its call.
fn verdict_of(record: &CallRecord) -> Option<Verdict> {
    let data = &record.result.as_ref().ok()?.data;
    serde_json::from_value(data.get("verdict")?.clone()).ok()
}

fn signature_of(record: &CallRecord) -> Option<String> {
    verdict_of(record).and_then(|verdict| verdict_signature(&verdict)).map(|text| cut(&text))
}

/// Digests what a session wants: the calls of its first plan, without what a repetition adds.
fn goal_of(session: &Session) -> String {
    let steps = session.plan.iter().flat_map(|plan| &plan.steps);
    let calls: BTreeSet<String> = steps
        .flat_map(|step| &step.tool_calls)
        .filter(|call| call.tool != "recover")
        .map(|call| format!("{} {}", call.tool, call.args))
        .collect();
    if calls.is_empty() {
        value_digest(&json!(session.charter.text))
    } else {
        value_digest(&json!(calls))
    }
}
