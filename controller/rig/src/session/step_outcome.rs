//! What a step of the ladder did, or why it failed; the texts of both.

use std::fmt;
use std::time::Duration;

use jig_model::protocol::{CheckReport, DriverError};
use jig_model::recovery::RecoveryStep;
use jig_model::{Cause, Note, PlaceName};

use super::environment::{ClaimError, HubError};
use crate::attempt::AttemptError;
use crate::store::StoreError;

/// Why a place is taken out of service.
pub(super) const NOTHING_HELPED: &str = "no step of the ladder was proven to help";

/// What a step did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StepDone {
    Reopened,
    EmulatorRestarted,
    Reset,
    AttachedUnderReset,
    /// The known-good image of this name runs.
    Reflashed(String),
    /// The power was off, for this long if the step sets the time.
    PowerCycled(Option<Duration>),
    /// How the power of the hub was cycled and confirmed.
    HubCycled(String),
    Waited,
    FailedOver {
        from: PlaceName,
        to: PlaceName,
    },
    OutOfService,
}

impl fmt::Display for StepDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reopened => f.write_str("everything was let go of and taken up again"),
            Self::EmulatorRestarted => f.write_str("a new emulator was started"),
            Self::Reset => f.write_str("the board was reset"),
            Self::AttachedUnderReset => {
                f.write_str("the probe attached while the chip was held in reset")
            }
            Self::Reflashed(image) => Note::KnownGoodPassed { image: image.clone() }.fmt(f),
            Self::PowerCycled(None) => f.write_str("the board's power was cycled"),
            Self::PowerCycled(Some(off)) => {
                write!(f, "the board's power was cycled, off for {off:?}")
            }
            Self::HubCycled(how) => f.write_str(how),
            Self::Waited => f.write_str("it was given time"),
            Self::FailedOver { from, to } => write!(f, "the run moved from place {from} to {to}"),
            Self::OutOfService => write!(f, "the place is out of service: {NOTHING_HELPED}"),
        }
    }
}

/// How a known-good image failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the known-good image {image} does not work on this place either: {cause}: {summary}")]
pub(super) struct KnownGoodFailure {
    pub(super) image: String,
    pub(super) cause: Cause,
    pub(super) summary: String,
}

/// Says why a step failed, or why the rig does not prove that it works.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    /// The power device did not answer several times in a row; each time costs its whole time-out.
    #[error("skipped: what switches the board's power did not answer {0} times")]
    PowerSilent(u32),
    #[error("this place has no power control")]
    NoPower,
    #[error("this place has no reset")]
    NoReset,
    #[error("the place has no debug probe")]
    NoProbe,
    #[error("there is no known-good image")]
    NoKnownGood,
    #[error(transparent)]
    KnownGood(#[from] KnownGoodFailure),
    #[error("a stop was requested")]
    Cancelled,
    #[error("{step} took too long")]
    Overdue { step: RecoveryStep },
    /// A check did not pass.
    #[error("{}: {}", .0.check, .0.detail)]
    Check(CheckReport),
    #[error("nothing at this place can prove that it works")]
    NoProof,
    #[error("no equivalent place is free: {}", all(.0))]
    NoSpare(Vec<ClaimError>),
    #[error(transparent)]
    Hub(#[from] HubError),
    #[error(transparent)]
    Bind(#[from] AttemptError),
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn all(errors: &[ClaimError]) -> String {
    let texts: Vec<String> = errors.iter().map(|error| jig_model::chain(error)).collect();
    texts.join("; ")
}
