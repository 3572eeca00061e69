//! What goes wrong in a session: seven codes, each with who is to blame and what to do next.
//!
//! A code is a fact that retry policies and scripts match. The words beside it are for people, and may
//! quote hostile text.

use jig_model::Fault;
use serde::{Deserialize, Serialize};

jig_model::words! {
    /// Names the class of a failure.
    OperatorCode, "error code" {
        /// A policy, an access rule or a missing confirmation forbids it.
        PolicyDenied = "E_POLICY_DENIED",
        /// A file, a service or the rig could not be used.
        Io = "E_IO",
        /// A tool took longer than it may.
        ToolTimeout = "E_TOOL_TIMEOUT",
        /// The arguments do not fit the tool.
        InvalidArgs = "E_INVALID_ARGS",
        /// Someone else uses what the tool needs.
        Conflict = "E_CONFLICT",
        /// A build or a test failed: the target is to blame.
        BuildFail = "E_BUILD_FAIL",
        /// A model, or a plan that was handed in, does not keep to the protocol.
        Model = "E_MODEL",
    }
}

impl OperatorCode {
    /// Returns who is to blame.
    pub fn fault(self) -> Fault {
        match self {
            Self::PolicyDenied | Self::InvalidArgs | Self::Model => Fault::Usage,
            Self::Io | Self::ToolTimeout | Self::Conflict => Fault::Lab,
            Self::BuildFail => Fault::Target,
        }
    }

    /// Returns the class of a failure with this blame. What a target is to blame for is a failed test.
    pub fn of_fault(fault: Fault) -> Self {
        match fault {
            Fault::Usage | Fault::Profile => Self::InvalidArgs,
            Fault::Target => Self::BuildFail,
            Fault::Lab | Fault::Unknown | Fault::Bug | Fault::Cancelled => Self::Io,
        }
    }

    /// Returns what a person can do, where nothing more particular is known.
    pub fn next(self) -> &'static str {
        match self {
            Self::PolicyDenied => "jig access check",
            Self::Io | Self::ToolTimeout => "jig doctor",
            Self::InvalidArgs => "jig ask --forms",
            Self::Conflict => "jig boards",
            Self::BuildFail => "jig runs show last",
            Self::Model => "jig sessions show last",
        }
    }
}

/// A failure as it is recorded and shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
#[error("{code}: {message}")]
pub struct OperatorError {
    /// Its class.
    pub code: OperatorCode,
    /// What happened and where; may quote hostile text.
    pub message: String,
    /// What to do next, preferably a command to paste.
    pub next: String,
    /// Whether the failure came before anything was changed: the call may be repeated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untouched: bool,
}

impl OperatorError {
    /// A failure with the next step of its class.
    pub fn new(code: OperatorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), next: code.next().to_owned(), untouched: false }
    }

    /// Names the next step.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = next.into();
        self
    }

    /// Says that nothing was changed.
    #[must_use]
    pub fn untouched(mut self) -> Self {
        self.untouched = true;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_its_text_and_a_next_step() {
        let texts: Vec<_> = OperatorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(
            texts,
            [
                "E_POLICY_DENIED",
                "E_IO",
                "E_TOOL_TIMEOUT",
                "E_INVALID_ARGS",
                "E_CONFLICT",
                "E_BUILD_FAIL",
                "E_MODEL",
            ],
        );
        assert!(OperatorCode::ALL.iter().all(|code| code.next().starts_with("jig ")));
    }

    #[test]
    fn a_rig_failure_is_never_a_failed_test() {
        for fault in [Fault::Lab, Fault::Unknown, Fault::Bug, Fault::Cancelled] {
            assert_ne!(OperatorCode::of_fault(fault), OperatorCode::BuildFail, "{fault:?}");
        }
        assert_eq!(OperatorCode::of_fault(Fault::Target), OperatorCode::BuildFail);
    }
}
