//! Whether a failed call is repeated. Pure.
//!
//! # Design
//! *Two policies, one of which applies to each call.* A call that only reads is retried where it is made:
//! three times, after 200 ms, 500 ms and 1 s. It changes nothing, so nobody has to decide. A call that acts
//! is never retried there. Its failure comes to the planner, which repeats the step by the class of the
//! failure: a time-out twice, a service or rig that cannot be used three times, a board that others use
//! until the session's time is up, with pauses from 1 s that double up to 30 s. A step is only repeated where a second call
//! does no harm: its tool is idempotent, or the call was refused before anything was changed. So the two
//! never multiply.

use std::time::Duration;

use crate::error::{OperatorCode, OperatorError};

/// Pauses between the attempts of a call that only reads.
pub const READ_PAUSES: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_millis(500), Duration::from_secs(1)];

/// First pause between the attempts of a step, and the longest.
const BASE: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

jig_model::words! {
    /// Names the class of a step's failure, by which the planner decides.
    StepFailure, "class of a step's failure" {
        /// The step cannot succeed as it is.
        InvalidParam = "INVALID_PARAM",
        /// It took too long.
        Timeout = "TIMEOUT",
        /// What carries it out does not work.
        ServiceUnavailable = "SERVICE_UNAVAILABLE",
        /// What it needs is in use.
        ResourceExhausted = "RESOURCE_EXHAUSTED",
        /// The target failed: evidence, and no failure of the step.
        TargetFailed = "TARGET_FAILED",
    }
}

impl StepFailure {
    /// Returns the class of a failure.
    pub fn of(code: OperatorCode) -> Self {
        match code {
            OperatorCode::PolicyDenied | OperatorCode::InvalidArgs | OperatorCode::Model => {
                Self::InvalidParam
            }
            OperatorCode::ToolTimeout => Self::Timeout,
            OperatorCode::Io => Self::ServiceUnavailable,
            OperatorCode::Conflict => Self::ResourceExhausted,
            OperatorCode::BuildFail => Self::TargetFailed,
        }
    }
}

/// What is done about a failed step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepRetry {
    /// It is repeated after a pause.
    Again(Duration),
    /// The planner is asked for another step in its place.
    Adjust,
    /// The task ends.
    Stop,
}

/// Returns the pause before a call that only reads is repeated, after so many failures.
pub fn read_retry(error: &OperatorError, failures: usize) -> Option<Duration> {
    let passing =
        matches!(error.code, OperatorCode::Io | OperatorCode::ToolTimeout | OperatorCode::Conflict);
    READ_PAUSES.get(failures.checked_sub(1)?).copied().filter(|_| passing)
}

/// Decides about a step that has failed so many times. `repeatable` says that a second call does no harm;
/// `reads` that the call only reads, and was retried where it was made.
pub fn step_retry(
    error: &OperatorError,
    failures: u32,
    repeatable: bool,
    reads: bool,
) -> StepRetry {
    let class = StepFailure::of(error.code);
    let most = match class {
        StepFailure::InvalidParam | StepFailure::TargetFailed => return StepRetry::Adjust,
        StepFailure::Timeout => 2,
        StepFailure::ServiceUnavailable => 3,
        // The session's time ends it.
        StepFailure::ResourceExhausted => u32::MAX,
    };
    if reads || !repeatable || failures > most {
        return StepRetry::Stop;
    }
    let doubled = BASE.saturating_mul(1 << failures.saturating_sub(1).min(16));
    StepRetry::Again(doubled.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: OperatorCode) -> OperatorError {
        OperatorError::new(code, "x")
    }

    #[test]
    fn a_call_that_reads_is_retried_three_times_where_that_may_help() {
        let io = error(OperatorCode::Io);
        let pauses: Vec<_> = (0..5).map(|n| read_retry(&io, n).map(|p| p.as_millis())).collect();
        assert_eq!(pauses, [None, Some(200), Some(500), Some(1000), None]);
        for code in [OperatorCode::InvalidArgs, OperatorCode::PolicyDenied, OperatorCode::BuildFail]
        {
            assert_eq!(read_retry(&error(code), 1), None, "{code}");
        }
    }

    #[test]
    fn a_step_is_repeated_by_the_class_of_its_failure() {
        use OperatorCode as C;
        use StepRetry::{Adjust, Stop};
        let again = |s| StepRetry::Again(Duration::from_secs(s));
        let table = [
            (C::InvalidArgs, vec![Adjust, Adjust]),
            (C::PolicyDenied, vec![Adjust]),
            (C::Model, vec![Adjust]),
            (C::BuildFail, vec![Adjust]),
            (C::ToolTimeout, vec![again(1), again(2), Stop]),
            (C::Io, vec![again(1), again(2), again(4), Stop]),
            (
                C::Conflict,
                vec![again(1), again(2), again(4), again(8), again(16), again(30), again(30)],
            ),
        ];
        for (code, wanted) in table {
            let found: Vec<_> = (1..=u32::try_from(wanted.len()).unwrap())
                .map(|failures| step_retry(&error(code), failures, true, false))
                .collect();
            assert_eq!(found, wanted, "{code}");
        }
    }

    #[test]
    fn what_may_have_acted_is_not_repeated_and_reads_are_retried_at_one_level() {
        for code in [OperatorCode::ToolTimeout, OperatorCode::Io, OperatorCode::Conflict] {
            assert_eq!(step_retry(&error(code), 1, false, false), StepRetry::Stop, "{code}");
            assert_eq!(step_retry(&error(code), 1, true, true), StepRetry::Stop, "{code}");
        }
    }
}
