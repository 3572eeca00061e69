//! Whom a verdict makes suspect. Pure.

use jig_model::{Cause, Verdict};

/// Who may have to be looked at before a verdict is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suspicion {
    /// Nobody: the evidence names who it was, or no recovery helps.
    Nobody,
    /// The rig: it is recovered, and the test has its turn again.
    Rig,
    /// The firmware or the rig: what did not happen may have been kept from happening. A
    /// known-good image on the same place tells.
    Either,
}

/// Says whom a verdict makes suspect.
///
/// What the firmware is seen to do wrong is its own: a report with a failed case, a fault.
/// What is not seen proves nothing by itself: silence and resets look the same
/// behind a loose cable and a weak supply.
pub fn suspicion(verdict: &Verdict) -> Suspicion {
    match verdict.cause {
        // What several attempts amount to is looked into already.
        Cause::Passed | Cause::ExpectationsMet | Cause::Flaky | Cause::Unconfirmed => {
            Suspicion::Nobody
        }
        Cause::Cancelled | Cause::Abandoned => Suspicion::Nobody,

        Cause::TestFailed
        | Cause::SummaryFailed
        | Cause::FaultBanner
        | Cause::CoreFault
        | Cause::Lockup
        | Cause::GuestPanic
        | Cause::AssertFailed
        | Cause::HostCommandFailed => Suspicion::Nobody,

        // An exit code is the word of the process that runs a board, and noise has no end
        // either.
        Cause::GuestExit
        | Cause::TargetAborted
        | Cause::OutputFlood
        | Cause::WatchdogReset
        | Cause::UnexpectedReset
        | Cause::BootLoop
        | Cause::Hang
        | Cause::ExpectMissed
        | Cause::NoOutput
        | Cause::NoResults
        | Cause::NoTests
        | Cause::PlanMismatch
        | Cause::ReportIncomplete
        | Cause::IdentityMissing
        | Cause::GoalMissed => Suspicion::Either,

        Cause::OutputLost
        | Cause::WrongImage
        | Cause::EmulatorRefused
        | Cause::EmulatorKilled
        | Cause::EmulatorExited
        | Cause::EmulatorStuck
        | Cause::ProbeMissing
        | Cause::ProbeBusy
        | Cause::ProbeLost
        | Cause::TargetUnresponsive
        | Cause::RigUnhealthy
        | Cause::ConsoleLost
        | Cause::DeployFailed
        | Cause::PowerFailed
        | Cause::PowerUnreachable
        | Cause::PowerMismatch
        | Cause::StorageFailed => Suspicion::Rig,

        // Only a person changes these: what is soldered, what is locked, what is not installed.
        Cause::ChipProtected
        | Cause::WrongChip
        | Cause::EmulatorMissing
        | Cause::HostCommandMissing
        | Cause::PlannerFailed
        | Cause::InternalError => Suspicion::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use jig_model::{Fault, VerdictKind};

    use super::*;

    #[test]
    fn the_rig_is_suspected_exactly_where_the_lab_is_to_blame_and_can_be_repaired() {
        for &cause in Cause::ALL {
            let found = suspicion(&Verdict::of(cause, ""));
            match cause.fault() {
                None | Some(Fault::Cancelled | Fault::Bug | Fault::Unknown) => {
                    assert_eq!(found, Suspicion::Nobody, "{cause}");
                }
                Some(Fault::Target) => assert_ne!(found, Suspicion::Rig, "{cause}"),
                Some(Fault::Lab) => assert_ne!(found, Suspicion::Either, "{cause}"),
                Some(other) => panic!("{cause} is blamed on {other:?}"),
            }
            // What proves nothing is always looked into.
            if cause.verdict() == VerdictKind::Inconclusive && cause != Cause::Unconfirmed {
                assert_ne!(found, Suspicion::Nobody, "{cause}");
            }
        }
    }
}
