//! Events of a session: what they carry, and the triggers by which the table knows them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::OperatorError;

jig_model::words! {
    /// Names an event as the table of transitions knows it: without what it carries.
    ///
    /// Seven are words of a person, a tool or a clock. The others are facts that the work of a state
    /// establishes; each stands for an arrow that needs a condition and no event.
    OperatorTrigger, "trigger" {
        /// A person asks for something.
        UserMessage = "USER_MESSAGE",
        /// A person answers questions.
        ClarificationAnswer = "CLARIFICATION_ANSWER",
        /// A tool is to be called.
        ToolCallRequest = "TOOL_CALL_REQUEST",
        /// A tool has answered.
        ToolCallResult = "TOOL_CALL_RESULT",
        /// A person confirms what was shown.
        ConfirmYes = "CONFIRM(yes)",
        /// A person refuses what was shown.
        ConfirmNo = "CONFIRM(no)",
        /// A limit of time has passed.
        Timeout = "TIMEOUT",
        /// The session is to end.
        Cancel = "CANCEL",
        /// Facts are missing that change the plan.
        ContextMissing = "context missing",
        /// The request is understood.
        RequestUnderstood = "request understood",
        /// What the plan depends on is known.
        ContextReady = "context ready",
        /// A plan without dangerous actions is made.
        PlanReady = "plan ready",
        /// A plan with dangerous actions that nothing has confirmed yet is made.
        DangerousPlanReady = "dangerous plan ready",
        /// There can be no plan.
        NotPossible = "not possible",
        /// A step has failed.
        StepFailed = "step failed",
        /// All steps are done.
        StepsDone = "steps done",
        /// The verification has passed, or none is required.
        VerificationPassed = "verification passed",
        /// The verification has failed.
        VerificationFailed = "verification failed",
        /// A repaired step or plan goes on.
        Repairable = "repairable",
        /// Nothing more can be done without a person.
        Blocked = "blocked",
        /// The summary is written.
        Summarized = "summarized",
        /// The round is over.
        Closed = "closed",
    }
}

/// What happens to a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum OperatorEvent {
    /// A person asks for something.
    UserMessage {
        /// In these words; hostile text.
        text: String,
    },
    /// A person answers the questions of the session.
    ClarificationAnswer {
        /// In these words; hostile text.
        text: String,
    },
    /// A tool is to be called.
    ToolCallRequest {
        /// The tool.
        name: String,
        /// Its arguments.
        args: Value,
    },
    /// A tool has answered.
    ToolCallResult {
        /// The tool.
        name: String,
        /// Whether it did what it was asked; says nothing about a verdict.
        ok: bool,
        /// What it answered, as data.
        payload: Value,
    },
    /// A person confirms or refuses what was shown.
    Confirm {
        /// Whether it is confirmed.
        yes: bool,
        /// What the answer is for.
        scope: ConfirmScope,
    },
    /// A limit of time has passed.
    Timeout,
    /// The session is to end.
    Cancel {
        /// Why.
        why: String,
    },
    /// Facts are missing that change the plan.
    ContextMissing,
    /// The request is understood.
    RequestUnderstood,
    /// What the plan depends on is known.
    ContextReady,
    /// A plan is made, of which everything is confirmed or harmless.
    PlanReady,
    /// A plan is made with dangerous actions that nothing has confirmed yet.
    DangerousPlanReady,
    /// There can be no plan.
    NotPossible {
        /// Why.
        error: OperatorError,
    },
    /// A step has failed.
    StepFailed {
        /// The step.
        step: u32,
        /// Why.
        error: OperatorError,
    },
    /// All steps are done.
    StepsDone,
    /// The verification has passed, or none is required.
    VerificationPassed,
    /// The verification has failed.
    VerificationFailed {
        /// Why.
        error: OperatorError,
    },
    /// A repaired step or plan goes on.
    Repairable,
    /// Nothing more can be done without a person.
    Blocked {
        /// Why.
        error: OperatorError,
    },
    /// The summary is written.
    Summarized,
    /// The round is over.
    Closed,
}

/// What a confirmation is for: exactly what was shown, and nothing that comes later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfirmScope {
    /// SHA-256 in lower-case hex of the dangerous calls as they were shown.
    pub digest: String,
}

impl OperatorEvent {
    /// Returns what the table knows the event by.
    pub fn trigger(&self) -> OperatorTrigger {
        use OperatorTrigger as T;
        match self {
            Self::UserMessage { .. } => T::UserMessage,
            Self::ClarificationAnswer { .. } => T::ClarificationAnswer,
            Self::ToolCallRequest { .. } => T::ToolCallRequest,
            Self::ToolCallResult { .. } => T::ToolCallResult,
            Self::Confirm { yes: true, .. } => T::ConfirmYes,
            Self::Confirm { yes: false, .. } => T::ConfirmNo,
            Self::Timeout => T::Timeout,
            Self::Cancel { .. } => T::Cancel,
            Self::ContextMissing => T::ContextMissing,
            Self::RequestUnderstood => T::RequestUnderstood,
            Self::ContextReady => T::ContextReady,
            Self::PlanReady => T::PlanReady,
            Self::DangerousPlanReady => T::DangerousPlanReady,
            Self::NotPossible { .. } => T::NotPossible,
            Self::StepFailed { .. } => T::StepFailed,
            Self::StepsDone => T::StepsDone,
            Self::VerificationPassed => T::VerificationPassed,
            Self::VerificationFailed { .. } => T::VerificationFailed,
            Self::Repairable => T::Repairable,
            Self::Blocked { .. } => T::Blocked,
            Self::Summarized => T::Summarized,
            Self::Closed => T::Closed,
        }
    }
}
