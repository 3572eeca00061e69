//! What a row of the journal says.

use jig_agents::Usage;
use jig_agents::roles::AgentRole;
use serde::{Deserialize, Serialize};

use crate::context::SessionContext;
use crate::error::OperatorError;
use crate::grammar::UserRequest;
use crate::machine::{OperatorEvent, PlannerEvent};
use crate::plan::{DangerousCall, PlanDraft, RiskLevel, SessionPlan, StepStatus, ToolCallTemplate};
use crate::summary::SessionSummary;
use crate::tools::ToolCall;

/// What a row says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SessionEntry {
    /// A person asks for something: the session begins. Always the first row, and only that.
    Begun(Charter),
    /// Work is about to be done.
    Intent(WorkIntent),
    /// Work has been done.
    Outcome(WorkOutcome),
    /// A person, or another process, says something.
    Request(PersonRequest),
}

/// What a session is held to from its first row on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charter {
    /// The request in words; hostile text.
    pub text: String,
    /// Where the plan comes from.
    pub source: PlanSource,
    /// The highest risk that is confirmed in advance, if any is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<RiskLevel>,
    /// Whether the session ends with the plan.
    #[serde(default)]
    pub plan_only: bool,
    /// Connects all records of the session.
    pub trace_id: String,
    /// Where it ends at the latest.
    pub limits: SessionLimits,
    /// The folder that files are named relative to.
    pub folder: String,
    /// The host on which it was asked for; unknown in the journal of an older program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The model that may plan it; none is asked if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<CharterModel>,
}

/// The model of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CharterModel {
    /// Its name in `agents.toml`.
    pub name: String,
    /// Whether it also plans what the grammar understands.
    pub first: bool,
    /// Whether it phrases a question to what the lab knows where the words of the request find nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub search: bool,
}

/// Where a plan comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case")]
pub enum PlanSource {
    /// The words of the request, by the grammar.
    Words,
    /// A draft that was handed in.
    Draft {
        /// The draft.
        draft: PlanDraft,
    },
}

/// Where a session ends at the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionLimits {
    /// How long a call may take, in seconds.
    pub step_s: u64,
    /// How long a session may be at work, in seconds; waiting for a person is not work.
    pub session_s: u64,
    /// How often the plan is made or refined at most.
    pub iterations: u32,
    /// How long a confirmation may be given, and holds, in seconds.
    pub confirm_s: u64,
    /// How many calls a session makes at most, repeated ones included.
    pub calls: u32,
    /// How many tokens a session uses at most, those of questions and of answers.
    #[serde(default = "usual_tokens")]
    pub tokens: u64,
    /// How much money a session uses at most, in millionths of a US dollar.
    #[serde(default = "usual_micro_usd", skip_serializing_if = "is_usual_micro_usd")]
    pub micro_usd: u64,
}

fn usual_tokens() -> u64 {
    200_000
}

fn usual_micro_usd() -> u64 {
    5_000_000
}

fn is_usual_micro_usd(micro_usd: &u64) -> bool {
    *micro_usd == usual_micro_usd()
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            step_s: 60,
            session_s: 600,
            iterations: 3,
            confirm_s: 600,
            calls: 200,
            tokens: usual_tokens(),
            micro_usd: usual_micro_usd(),
        }
    }
}

jig_model::words! {
    /// Names the kinds of work.
    SessionWork, "work of a session" {
        /// Parse and judge the request.
        Intake = "intake",
        /// Read what the plan depends on.
        Context = "context",
        /// Make the plan.
        Plan = "plan",
        /// Call a tool.
        Call = "call",
        /// Judge a wave of calls.
        Wave = "wave",
        /// Verify.
        Verify = "verify",
        /// Handle a failure.
        Recover = "recover",
        /// A confirmation has not come in time, or was given in advance.
        Confirm = "confirm",
        /// Write the summary.
        Summarize = "summarize",
        /// End the round.
        Close = "close",
    }
}

jig_model::words! {
    /// Names what a call leaves behind where it is cut off.
    CutOffEffect, "effect class" {
        /// Nothing: it only reads.
        Pure = "pure",
        /// Something that the same call replaces when it is retried.
        Idempotent = "idempotent",
        /// A board in an unknown state.
        Device = "device",
    }
}

/// Work that is about to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkIntent {
    /// The kind.
    pub work: SessionWork,
    /// The call, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallIntent>,
    /// The tokens that a model may use for it, where one is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<u64>,
    /// The money that it may use for it, in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub grant_micro_usd: u64,
    /// Hash of the row before, which is the state that the work is given.
    pub input: String,
}

impl WorkIntent {
    /// Returns what a model may use for it, where one is asked.
    pub fn granted(&self) -> Option<Usage> {
        let micro_usd = self.grant_micro_usd;
        self.grant.map(|tokens| Usage { tokens, micro_usd })
    }
}

/// A call that is about to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallIntent {
    /// The number of the call in the session, from 1.
    pub number: u32,
    /// The step, where it is a step of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// The call.
    pub call: ToolCall,
    /// What it leaves behind where it is cut off.
    pub effect: CutOffEffect,
}

/// Work that has been done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkOutcome {
    /// The kind.
    pub work: SessionWork,
    /// The number of the call, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// What moves the session, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<OperatorEvent>,
    /// What moves the planner, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub planner: Vec<PlannerEvent>,
    /// What later work needs to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<SessionFact>,
    /// How long it took, in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
}

/// Something that work has found out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "kebab-case")]
pub enum SessionFact {
    /// What the request amounts to.
    Understood {
        /// The request.
        request: UserRequest,
    },
    /// What is asked before a plan can be made.
    Asked {
        /// The questions.
        questions: Vec<ClarifyingQuestion>,
    },
    /// What the plan depends on.
    Context {
        /// The boards and runs.
        context: SessionContext,
    },
    /// A plan replaces the earlier one.
    Planned {
        /// The plan.
        plan: SessionPlan,
        /// Its dangerous calls that nothing has confirmed yet.
        dangers: Vec<DangerousCall>,
    },
    /// The status of a step has changed.
    StepStands {
        /// The step.
        step: u32,
        /// Its status.
        status: StepStatus,
    },
    /// A call has failed.
    CallFailed {
        /// The step, where it was one of the plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<u32>,
        /// Why.
        error: OperatorError,
    },
    /// A step goes on by another call, because the service behind its own does not answer.
    Degraded {
        /// The step.
        step: u32,
        /// The call that stands in.
        call: ToolCallTemplate,
        /// Why.
        error: OperatorError,
    },
    /// A call has changed files of the folder.
    FilesChanged(ChangedFiles),
    /// Files are as they were before a call.
    RolledBack {
        /// The call that had changed them.
        call: u32,
        /// The files.
        files: Vec<String>,
    },
    /// What the records tell of the image that a place had before the session.
    EarlierImage {
        /// The place.
        place: String,
        /// The image; nothing where no record tells of one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<EarlierImage>,
    },
    /// The session was kept as a case, or could not be.
    CaseKept {
        /// The unit of knowledge, where one was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unit: Option<String>,
        /// Why it could not be.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why_not: Option<String>,
    },
    /// A confirmation is waited for.
    Waits {
        /// What it has to be bound to.
        digest: String,
        /// When it is too late, in milliseconds since 1970.
        until_ms: u64,
    },
    /// A model was asked.
    ModelAsked {
        /// For what.
        role: AgentRole,
        /// The version of the prompt.
        prompt_version: u32,
        /// Its name in `agents.toml`.
        model: String,
        /// The tokens that were used.
        tokens: u64,
        /// The money that they cost, in millionths of a US dollar.
        #[serde(default, skip_serializing_if = "is_zero")]
        micro_usd: u64,
        /// The beginning of its answer; hostile text.
        said: String,
        /// Why there is no answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<OperatorError>,
    },
    /// A question was dropped before its answer came.
    ModelDropped {
        /// The tokens that count as used.
        tokens: u64,
        /// The money that counts as used, in millionths of a US dollar.
        #[serde(default, skip_serializing_if = "is_zero")]
        micro_usd: u64,
    },
    /// A step is replaced by another one.
    StepAdjusted {
        /// The step.
        step: u32,
        /// The plan with the new step.
        plan: SessionPlan,
        /// Its dangerous calls.
        dangers: Vec<DangerousCall>,
        /// What the model thinks about the failure; hostile text.
        thought: String,
    },
    /// A model has phrased the question to what the lab knows; an empty one where it could not.
    SearchPhrased {
        /// The question; hostile text.
        question: String,
    },
    /// A model has answered the person; without lines where it could not.
    ModelAnswered {
        /// The answer; hostile text.
        lines: Vec<String>,
    },
    /// Something that a person should know, in words; may hold hostile text.
    Remark {
        /// What.
        text: String,
    },
    /// Nothing more can be done.
    Blocked {
        /// Why.
        reason: BlockReason,
    },
    /// The summary.
    Summary {
        /// The summary.
        summary: SessionSummary,
    },
}

/// Files of the folder that a call has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangedFiles {
    /// The number of the call.
    pub call: u32,
    /// The step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// The files, relative to the work tree; the first ones.
    pub files: Vec<String>,
    /// How many there are.
    pub count: u64,
    /// Some may be of others: the process that made the call was killed, and they were compared later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
}

/// An image that a place had before a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlierImage {
    /// The run that put it there.
    pub run: String,
    /// The copy that the run has kept.
    pub file: String,
    /// SHA-256 in lower-case hex.
    pub sha256: String,
}

/// Why a session ends before its goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "kebab-case")]
pub enum BlockReason {
    /// Something failed.
    Failed {
        /// What.
        error: OperatorError,
    },
    /// A person refused what was shown.
    Refused,
    /// No confirmation or answer came in time.
    Unanswered,
    /// The session was cancelled.
    Cancelled {
        /// Why.
        why: String,
    },
    /// Only the plan was asked for.
    PlanOnly,
}

/// A question whose answer changes the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClarifyingQuestion {
    /// What is missing, as the answers are kept by it: `board`, `image`, `plan`, `board:nrf53`.
    pub slot: String,
    /// The question.
    pub text: String,
    /// Answers that would do, if they can be listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
}

/// What a person, or another process, says to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub enum PersonRequest {
    /// A process drives the session on. Until then no time of the session has passed.
    Resume,
    /// Answers to the questions, in their order.
    Answer {
        /// The answers; hostile text.
        answers: Vec<String>,
    },
    /// What waits is confirmed or refused.
    Confirm {
        /// Confirmed.
        yes: bool,
        /// What the answer is for.
        digest: String,
    },
    /// The session is to end.
    Cancel {
        /// Why.
        why: String,
    },
    /// Files that a call of the session had changed were put back.
    Undone {
        /// The number of the call.
        call: u32,
    },
}
