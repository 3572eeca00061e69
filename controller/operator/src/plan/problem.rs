//! What is wrong with a draft of a plan.

use crate::error::{OperatorCode, OperatorError};

/// Most mistakes that are told at once.
const SHOWN: usize = 8;

/// A mistake of a draft.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanProblem {
    /// It has no steps, or more than a plan may have.
    #[error("a plan has 1 to {most} steps, and this one {found}")]
    StepCount {
        /// How many it may have.
        most: usize,
        /// How many it has.
        found: usize,
    },
    /// Two steps have one number, or one has none.
    #[error("each step has a number of its own, from 1")]
    Numbers,
    /// A text is too long.
    #[error("step {step}: a text is longer than {most} bytes")]
    LongText {
        /// The step.
        step: u32,
        /// How long it may be.
        most: usize,
    },
    /// A step depends on one that is not there.
    #[error("step {step}: it depends on step {on}, which is not there")]
    NoSuchStep {
        /// The step.
        step: u32,
        /// The other one.
        on: u32,
    },
    /// The call of a step fits no tool.
    #[error("step {step}: {}", why.message)]
    Call {
        /// The step.
        step: u32,
        /// What is wrong with the call.
        why: OperatorError,
    },
    /// A step that acts may not be left out.
    #[error("step {0}: only a step that reads may be optional")]
    OptionalAct(u32),
    /// What is confirmed has to be shown, and a result is not known yet.
    #[error("step {0}: a call that waits for a confirmation takes no argument from a result")]
    HiddenArgument(u32),
    /// Steps wait for each other.
    #[error("steps {} depend on each other", numbers(.0))]
    Circle(Vec<u32>),
    /// Nothing is built here.
    #[error("this rig takes images and builds none: verification cannot be `build`")]
    BuildVerification,
    /// A verification has too many commands.
    #[error("a verification has at most {0} commands")]
    CommandCount(usize),
    /// A command of the verification is no call.
    #[error(transparent)]
    Command(#[from] VerificationCommandError),
    /// A command of the verification fits no tool.
    #[error("verification: {}", .0.message)]
    VerificationCall(OperatorError),
    /// A command of the verification acts.
    #[error("verification: {0} does not only read")]
    VerificationActs(String),
}

/// Says that a command of a verification cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the arguments of verification command {command:?} are no JSON: {why}")]
pub struct VerificationCommandError {
    /// The command; hostile text.
    pub(super) command: String,
    /// What the reader of JSON said.
    pub(super) why: String,
}

fn numbers(steps: &[u32]) -> String {
    steps.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// Refuses a draft for its mistakes; the first ones are told.
pub(super) fn refused(wrong: &[PlanProblem]) -> OperatorError {
    let shown: Vec<_> = wrong.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = match wrong.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let words = format!("the plan is refused: {}{more}", shown.join("; "));
    OperatorError::new(OperatorCode::Model, words).untouched()
}
