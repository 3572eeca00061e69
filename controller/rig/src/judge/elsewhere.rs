//! Reports on consoles that the plan does not wait on: none may contradict a pass. Pure.

use jig_model::Verdict;
use jig_model::VerdictKind::{Fail, Flaky, Inconclusive, Pass};

use super::observation::Observation;
use super::rules::{
    Rule, claimed_failures, contradiction, executed, failed_case, plan_mismatch, report_incomplete,
    unfinished_case,
};

/// Rules by which a report on another console contradicts a pass, in their order.
const ELSEWHERE: &[Rule] = &[
    failed_case,
    claimed_failures,
    unfinished_case,
    plan_mismatch,
    report_incomplete,
    contradiction,
];

/// Judges the reports on other consoles than the one that the plan waits on. A failure there is one
/// of the run; what is incomplete there only takes a pass, one too that has begun and has no result. A
/// console with no more than a line that resembles an opening reports nothing.
pub(super) fn contradicted(seen: &Observation, found: &Verdict) -> Option<Verdict> {
    if !matches!(found.kind, Pass | Flaky | Inconclusive) {
        return None;
    }
    let reports = seen.elsewhere.iter().filter(|other| {
        let report = &other.report;
        executed(report) > 0 || report.has_begun() || report.claimed_failures.is_some_and(|n| n > 0)
    });
    let decided = reports.filter_map(|other| {
        let alone = Observation {
            output: other.output.clone(),
            report: other.report.clone(),
            results_wanted: seen.results_wanted,
            ..Observation::default()
        };
        let mut verdict = ELSEWHERE.iter().find_map(|rule| rule(&alone))?;
        verdict.summary = format!("on console {}: {}", other.console, verdict.summary);
        verdict.tests = other.report.clone();
        Some(verdict)
    });
    let mut decided: Vec<Verdict> = decided.collect();
    let failed = decided.iter().position(|verdict| verdict.kind == Fail);
    let open = matches!(found.kind, Pass | Flaky) && !decided.is_empty();
    let first = failed.or(open.then_some(0))?;
    Some(decided.swap_remove(first))
}

#[cfg(test)]
mod tests {
    use jig_model::Cause;
    use jig_model::result::{CaseStatus, TestCase, TestReport};

    use super::*;
    use crate::judge::{ByteRange, ConsoleReport, judge};

    fn report(statuses: &[CaseStatus], ended: bool) -> ConsoleReport {
        let case = |status: &CaseStatus| TestCase {
            name: "late".to_owned(),
            status: *status,
            message: None,
            duration_ms: None,
            start: 0,
            end: 0,
        };
        let cases = statuses.iter().map(case).collect();
        ConsoleReport {
            console: "uart1".parse().unwrap(),
            output: ByteRange::default(),
            report: TestReport { cases, ended, ..TestReport::default() },
        }
    }

    #[test]
    fn a_failure_elsewhere_decides_and_what_is_open_there_takes_a_pass() {
        use CaseStatus::{Fail as Failed, Pass as Passed, Unfinished};
        for (found, statuses, ended, cause) in [
            (Cause::Passed, &[Passed][..], true, None),
            (Cause::Passed, &[Passed, Failed], true, Some(Cause::TestFailed)),
            (Cause::NoResults, &[Failed], false, Some(Cause::TestFailed)),
            (Cause::Passed, &[Passed], false, Some(Cause::ReportIncomplete)),
            (Cause::Flaky, &[Passed, Unfinished], true, Some(Cause::PlanMismatch)),
            (Cause::NoResults, &[Passed], false, None),
            (Cause::Passed, &[], false, None),
            // What blames the rig, or a crash, stands.
            (Cause::ProbeLost, &[Failed], true, None),
            (Cause::FaultBanner, &[Failed], true, None),
        ] {
            for results_wanted in [true, false] {
                let elsewhere = vec![report(&[Passed], true), report(statuses, ended)];
                let seen = Observation { elsewhere, results_wanted, ..Observation::default() };
                let decided = contradicted(&seen, &Verdict::of(found, "found"));
                let decided_by = decided.as_ref().map(|verdict| verdict.cause);
                assert_eq!(decided_by, cause, "{found} {statuses:?} {ended} {results_wanted}");
                if let Some(Verdict { summary, .. }) = decided {
                    assert!(summary.starts_with("on console uart1: "), "{summary}");
                }
            }
        }
    }

    #[test]
    fn a_report_that_has_begun_elsewhere_takes_a_pass_and_a_line_of_a_log_does_not() {
        for (statuses, may_be_log, cause) in [
            (&[CaseStatus::Unfinished][..], true, None),
            (&[CaseStatus::Unfinished], false, Some(Cause::PlanMismatch)),
            (&[], false, Some(Cause::ReportIncomplete)),
            (&[], true, None),
        ] {
            for results_wanted in [true, false] {
                let mut other = report(statuses, false);
                other.report.format = Some(jig_model::result::ResultFormat::Ztest);
                other.report.may_be_log = may_be_log;
                let seen = Observation {
                    elsewhere: vec![other],
                    results_wanted,
                    ..Observation::default()
                };
                let decided = contradicted(&seen, &Verdict::of(Cause::Passed, "found"));
                assert_eq!(decided.map(|verdict| verdict.cause), cause, "{statuses:?}");
            }
        }
    }

    #[test]
    fn missing_results_that_stand_elsewhere_are_told() {
        use CaseStatus::{Pass as Passed, Unfinished};
        for (statuses, ended, told) in [
            (&[Passed][..], true, true),
            (&[Passed], false, false),
            (&[Unfinished], true, false),
            (&[], true, false),
        ] {
            let seen = Observation {
                elsewhere: vec![report(statuses, ended)],
                printed_elsewhere: true,
                results_wanted: true,
                ..Observation::default()
            };
            let verdict = judge(&seen);
            assert_eq!(verdict.cause, Cause::NoResults);
            let advice = "a report stands on console uart1: add --console uart1, or";
            assert_eq!(verdict.summary.contains(advice), told, "{}", verdict.summary);
        }
    }
}
