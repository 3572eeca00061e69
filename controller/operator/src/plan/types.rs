//! Plan, step, verification policy: the fields that are recorded, shown and exported.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

jig_model::words! {
    /// Names how much a plan puts at risk.
    RiskLevel, "risk level" {
        /// It only reads, or uses boards that nothing can harm.
        Low = "low",
        /// It changes boards in a way that a later flash or power-on undoes.
        Medium = "medium",
        /// It destroys contents, disturbs other boards, or reaches beyond the rig.
        High = "high",
    }
}

/// What is to be done to reach a goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionPlan {
    /// Its name, unique in its session: `p1`, `p2` after a refinement.
    pub plan_id: String,
    /// What is to be reached, in words; may be hostile text.
    pub goal: String,
    /// What must not be done on the way, in words.
    pub constraints: Vec<String>,
    /// What is done, in an order that respects dependencies.
    pub steps: Vec<SessionStep>,
    /// How the result is verified.
    pub verification: VerificationPolicy,
    /// The highest risk of its calls.
    pub risk_level: RiskLevel,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionStep {
    /// Its number from 1, as text.
    pub step_id: String,
    /// What is done, in a few words.
    pub title: String,
    /// Why.
    pub intent: String,
    /// The calls, in their order.
    pub tool_calls: Vec<ToolCallTemplate>,
    /// What is expected to come of it.
    pub expected_artifacts: Vec<Artifact>,
    /// Where it stands.
    pub status: StepStatus,
    /// How to undo it by hand; empty where there is nothing to undo.
    pub rollback_hint: String,
}

/// A call as it is planned: its arguments may hold references to earlier results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCallTemplate {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub args: Value,
    /// The steps that have to be done before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// The plan goes on where this call fails: it only adds to the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

jig_model::words! {
    /// Names where a step stands.
    StepStatus, "status of a step" {
        /// Not begun.
        Pending = "pending",
        /// Begun.
        InProgress = "in_progress",
        /// Done.
        Done = "done",
        /// Failed, and not retried.
        Blocked = "blocked",
        /// Not needed any more, or not reached.
        Skipped = "skipped",
    }
}

/// Something that a step is expected to leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// What it is.
    pub kind: ArtifactKind,
    /// Where, or about what: a place, a file, a run.
    pub of: String,
}

jig_model::words! {
    /// Names what steps leave.
    ArtifactKind, "kind of artifact" {
        /// A run with a verdict, of a place.
        Run = "run",
        /// An image in the flash of a place.
        Flash = "flash",
        /// The state of a place: its power, its health.
        State = "state",
        /// An answer.
        Answer = "answer",
    }
}

/// How the result of a plan is verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerificationPolicy {
    /// By what.
    pub mode: VerificationMode,
    /// Calls of tools, each as the name of the tool and its arguments as JSON: `health {"place":"b"}`.
    pub commands: Vec<String>,
    /// Whether the goal is only reached where it passes.
    pub required: bool,
    /// Whether the first failure ends it.
    pub stop_on_fail: bool,
}

jig_model::words! {
    /// Names ways to verify.
    VerificationMode, "verification mode" {
        /// Nothing is verified: nothing was to be changed.
        None = "none",
        /// Commands that only read pass.
        Lint = "lint",
        /// Every run that the plan makes has the verdict `pass`, and the commands pass.
        Test = "test",
        /// A build passes. Refused: the rig takes images and builds none.
        Build = "build",
        /// Commands that only read pass.
        Custom = "custom",
    }
}

impl VerificationPolicy {
    /// Nothing is verified.
    pub fn none() -> Self {
        Self {
            mode: VerificationMode::None,
            commands: Vec::new(),
            required: false,
            stop_on_fail: false,
        }
    }

    /// The verdict of each run decides.
    pub fn verdicts() -> Self {
        Self {
            mode: VerificationMode::Test,
            commands: Vec::new(),
            required: true,
            stop_on_fail: false,
        }
    }
}
