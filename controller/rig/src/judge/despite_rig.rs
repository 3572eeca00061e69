//! What an attempt shows against the target although its verdict blames the rig. Pure.
//!
//! A host that fails prints no crash and no failed test, so these are kept: a retry that passes does
//! not undo them.

use jig_model::{Cause, Fault, Verdict};

use super::observation::{IncidentKind, Observation, Standstill};
use super::rules::judge;

/// Returns the failure of the target that an attempt shows in spite of a failure of the rig: a crash, a
/// failed test, or a line that looks like one. An attempt in which other bytes may have run than the
/// image shows none, and garbage on a transport is judged elsewhere.
pub fn shown_despite_rig(seen: &Observation, verdict: &Verdict) -> Option<Verdict> {
    let other_bytes = matches!(verdict.cause, Cause::WrongImage | Cause::DeployFailed);
    let lab = verdict.cause.fault() == Some(Fault::Lab);
    if !lab || other_bytes || verdict.cause == Cause::OutputLost {
        return None;
    }
    let is_target = |kind: &IncidentKind| !matches!(kind, IncidentKind::Lost(_));
    let alone = Observation {
        failure: None,
        incidents: seen.incidents.iter().filter(|i| is_target(&i.kind)).cloned().collect(),
        standstill: Standstill::default(),
        ..seen.clone()
    };
    let shown = judge(&alone);
    let printed = matches!(
        shown.cause,
        Cause::FaultBanner
            | Cause::GuestPanic
            | Cause::CoreFault
            | Cause::Lockup
            | Cause::TestFailed
            | Cause::SummaryFailed
    );
    if printed {
        return Some(shown);
    }
    let found = [&seen.failed_result, &seen.suspicious, &seen.alarm];
    let line = found.into_iter().find_map(Option::as_ref)?;
    let words = "the target printed what looks like a failed test or a crash";
    let looks = Verdict::of(Cause::SuspiciousOutput, format!("{words}: {}", line.text));
    Some(Verdict { evidence: vec![line.evidence()], ..looks })
}

#[cfg(test)]
mod tests {
    use jig_model::result::{CaseStatus, TestCase, TestReport};

    use super::*;
    use crate::judge::{ByteRange, Incident};
    use crate::workflow::ActionFailure;

    fn incident(kind: IncidentKind) -> Incident {
        Incident { kind, range: ByteRange::default() }
    }

    #[test]
    fn a_failing_host_hides_no_crash_and_no_failed_test() {
        let case = TestCase {
            name: "pop".to_owned(),
            status: CaseStatus::Fail,
            message: None,
            duration_ms: None,
            start: 0,
            end: 1,
        };
        let failed = TestReport { cases: vec![case], ..TestReport::default() };
        let crash = || vec![incident(IncidentKind::Recognised(Cause::FaultBanner))];
        let starved = || Some(ActionFailure::new(Cause::RigUnhealthy, "starved"));
        let base =
            || Observation { results_wanted: true, failure: starved(), ..Observation::default() };
        let line = Some(ByteRange { text: "1 failed".to_owned(), ..ByteRange::default() });
        for (seen, shown) in [
            (base(), None),
            (Observation { incidents: crash(), ..base() }, Some(Cause::FaultBanner)),
            (Observation { report: failed.clone(), ..base() }, Some(Cause::TestFailed)),
            (Observation { failed_result: line, ..base() }, Some(Cause::SuspiciousOutput)),
        ] {
            let verdict = judge(&seen);
            assert_eq!(verdict.cause, Cause::RigUnhealthy);
            let found = shown_despite_rig(&seen, &verdict).map(|shown| shown.cause);
            assert_eq!(found, shown, "{seen:?}");
        }
        let lost = incident(IncidentKind::Lost(Cause::EmulatorKilled));
        let seen =
            Observation { incidents: vec![lost, crash().remove(0)], ..Observation::default() };
        let shown = shown_despite_rig(&seen, &judge(&seen)).map(|shown| shown.cause);
        assert_eq!(shown, Some(Cause::FaultBanner));
        // Other bytes may have run, and what blames the target needs no second look.
        for cause in [Cause::WrongImage, Cause::DeployFailed, Cause::OutputLost, Cause::Hang] {
            assert_eq!(shown_despite_rig(&seen, &Verdict::of(cause, "")), None, "{cause}");
        }
    }
}
