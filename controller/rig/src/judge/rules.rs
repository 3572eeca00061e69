//! The rules, in the order in which they decide.

use std::time::Duration;

use jig_model::VerdictKind::{Fail, Flaky, Inconclusive, Pass};
use jig_model::result::{CaseStatus, TestReport};
use jig_model::{Cause, Evidence, Verdict};

use super::observation::{ImageIdentity, Incident, IncidentKind, Observation, Standstill};

type Rule = fn(&Observation) -> Option<Verdict>;

/// The first rule that applies decides.
///
/// The order keeps two promises: rig failures come before failures of the target, so that no rig
/// failure is blamed on the firmware; and a pass comes last, so that nothing may be missing.
const RULES: &[(&str, Rule)] = &[
    ("cancelled", cancelled),
    ("rig-lost-board", rig_lost_board),
    ("rig-action", rig_action),
    ("wrong-content", wrong_content),
    ("wrong-image", wrong_image),
    ("crash", crash),
    ("watchdog", watchdog),
    ("boot-loop-or-flood", boot_loop_or_flood),
    ("unasked-reset", unasked_reset),
    ("unidentified-report", unidentified_report),
    ("failed-case", failed_case),
    ("claimed-failures", claimed_failures),
    ("bad-exit", bad_exit),
    ("core-fault", core_fault),
    ("recognised", recognised),
    ("bytes-lost", bytes_lost),
    ("silent", silent),
    ("failed-action", failed_action),
    ("identity-missing", identity_missing),
    ("no-results", no_results),
    ("unfinished-case", unfinished_case),
    ("no-tests", no_tests),
    ("plan-mismatch", plan_mismatch),
    ("no-end", report_incomplete),
    ("contradiction", contradiction),
    ("restarted", restarted),
];

/// Judges one attempt.
///
/// Each awaited report of an earlier boot is judged like the last one. A proven failure in any of
/// them decides; else the last boot, unless it passes and an earlier one is inconclusive.
pub fn judge(seen: &Observation) -> Verdict {
    let mut verdict = judge_boots(seen);
    if let Some(doubt) = garbled(seen, &verdict) {
        verdict = doubt;
    }
    explain(seen, &mut verdict);
    if let Some(doubt) = stood_still(seen, &verdict) {
        verdict = doubt;
    }
    verdict.notes.clone_from(&seen.notes);
    verdict
}

fn judge_boots(seen: &Observation) -> Verdict {
    let last = judge_boot(seen);
    if seen.earlier.is_empty() || !matches!(last.kind, Pass | Flaky | Inconclusive) {
        return last;
    }
    let boots = seen.earlier.iter().map(|heard| {
        judge_boot(&Observation {
            output: heard.output.clone(),
            report: heard.report.clone(),
            earlier: Vec::new(),
            // These belong to the last boot alone.
            failure: None,
            identity: ImageIdentity::default(),
            post_mortem: None,
            ..seen.clone()
        })
    });
    let mut boots: Vec<Verdict> = boots.collect();
    let failed = boots.iter().position(|verdict| verdict.kind == Fail);
    let open = || boots.iter().position(|verdict| verdict.kind != Pass);
    match failed.or_else(|| if last.kind == Pass { open() } else { None }) {
        Some(index) => boots.swap_remove(index),
        None => last,
    }
}

fn judge_boot(seen: &Observation) -> Verdict {
    let decided = RULES.iter().find_map(|(name, rule)| {
        let verdict = rule(seen)?;
        tracing::debug!(rule = name, cause = %verdict.cause, "verdict");
        Some(verdict)
    });
    let mut verdict = decided.unwrap_or_else(|| passed(seen));
    verdict.tests = seen.report.clone();
    verdict
}

/// Adds what the debug port found to a verdict that blames the target.
fn explain(seen: &Observation, verdict: &mut Verdict) {
    let Some(finding) = &seen.post_mortem else { return };
    let blamed = verdict.cause.fault() == Some(jig_model::Fault::Target);
    if !blamed || verdict.evidence.iter().any(|known| known.file == finding.range.file) {
        return;
    }
    verdict.summary = format!("{}; {}", verdict.summary.trim_end(), finding.range.text);
    // The deciding range stays the first one.
    let second = verdict.evidence.len().min(1);
    verdict.evidence.insert(second, finding.range.evidence());
}

fn verdict(cause: Cause, summary: impl Into<String>, evidence: Vec<Evidence>) -> Verdict {
    Verdict { evidence, ..Verdict::of(cause, summary) }
}

fn on_output(seen: &Observation, cause: Cause, summary: impl Into<String>) -> Verdict {
    let mut evidence = seen.output.evidence();
    "output of this boot".clone_into(&mut evidence.note);
    verdict(cause, summary, vec![evidence])
}

fn incident(seen: &Observation, wanted: impl Fn(&IncidentKind) -> bool) -> Option<&Incident> {
    seen.incidents.iter().find(|incident| wanted(&incident.kind))
}

fn by_incident(incident: &Incident, cause: Cause, summary: impl Into<String>) -> Verdict {
    verdict(cause, summary, vec![incident.range.evidence()])
}

fn cancelled(seen: &Observation) -> Option<Verdict> {
    seen.cancelled.then(|| Verdict::of(Cause::Cancelled, "somebody asked to stop"))
}

/// Of several losses the one that explains the others decides, in whatever order they were
/// reported: a lost board ends its transports, but not the other way round.
fn rig_lost_board(seen: &Observation) -> Option<Verdict> {
    let losses = seen.incidents.iter().filter_map(|incident| match incident.kind {
        IncidentKind::Lost(cause) => Some((incident, cause)),
        _ => None,
    });
    let (first, cause) = losses.min_by_key(|(_, cause)| match cause {
        Cause::ConsoleLost => 2,
        Cause::StorageFailed => 1,
        _ => 0,
    })?;
    Some(by_incident(first, cause, first.range.text.clone()))
}

fn rig_action(seen: &Observation) -> Option<Verdict> {
    let failure = seen.failure.as_ref()?;
    let lab = failure.cause.fault() == Some(jig_model::Fault::Lab);
    lab.then(|| verdict(failure.cause, failure.detail.clone(), failure.evidence.clone()))
}

/// Compares the bytes read back from the board with those that were deployed: a build id proves
/// less, and few images print one.
fn wrong_content(seen: &Observation) -> Option<Verdict> {
    let read_back = seen.identity.read_back.as_ref()?;
    (read_back.found != read_back.deployed).then(|| {
        let short = |hash: &str| hash.chars().take(12).collect::<String>();
        let summary = format!(
            "the board holds other bytes (sha256 {}) than were deployed (sha256 {})",
            short(&read_back.found),
            short(&read_back.deployed)
        );
        Verdict::of(Cause::WrongImage, summary)
    })
}

fn wrong_image(seen: &Observation) -> Option<Verdict> {
    let printed = seen.identity.printed.as_ref()?;
    let deployed = seen.identity.deployed.as_ref()?;
    // A target may print a shortened id; it must be the beginning of the whole one.
    if deployed.starts_with(&printed.hex) {
        return None;
    }
    let summary =
        format!("the target says it runs build {}, but build {deployed} was deployed", printed.hex);
    Some(verdict(Cause::WrongImage, summary, vec![printed.range.evidence()]))
}

fn crash(seen: &Observation) -> Option<Verdict> {
    // A banner explains more than the lock-up or panic it may have led to.
    let recognised = seen.incidents.iter().filter_map(|incident| match incident.kind {
        IncidentKind::Recognised(cause @ (Cause::FaultBanner | Cause::GuestPanic)) => {
            Some((incident, cause))
        }
        _ => None,
    });
    // The first in a log, not the first reported: consoles are read concurrently.
    let first = recognised.min_by_key(|(i, _)| (&i.range.file, i.range.start));
    if let Some((incident, cause)) = first {
        let summary = format!("{}: {}", cause_text(cause), incident.range.text.trim());
        return Some(by_incident(incident, cause, summary));
    }
    if let Some(lockup) = incident(seen, |kind| *kind == IncidentKind::Lockup) {
        let line = lockup.range.text.lines().next().unwrap_or_default();
        let summary = format!("the processor locked up: {line}");
        return Some(by_incident(lockup, Cause::Lockup, summary));
    }
    if let Some(aborted) = incident(seen, |kind| *kind == IncidentKind::Aborted) {
        let line = aborted.range.text.lines().next().unwrap_or_default();
        let summary = format!("the target did what its board cannot execute: {line}");
        return Some(by_incident(aborted, Cause::TargetAborted, summary));
    }
    let panic = incident(seen, |kind| *kind == IncidentKind::GuestPanic)?;
    Some(by_incident(panic, Cause::GuestPanic, "the target's operating system panicked"))
}

fn cause_text(cause: Cause) -> &'static str {
    if cause == Cause::GuestPanic { "panic" } else { "fault" }
}

fn watchdog(seen: &Observation) -> Option<Verdict> {
    let incident = incident(seen, |kind| *kind == IncidentKind::Watchdog)?;
    Some(by_incident(incident, Cause::WatchdogReset, "the watchdog reset the target"))
}

fn boot_loop_or_flood(seen: &Observation) -> Option<Verdict> {
    // A boot loop may cause a flood, but not the other way round.
    [Cause::BootLoop, Cause::OutputFlood].into_iter().find_map(|cause| {
        let found = incident(seen, |kind| *kind == IncidentKind::Recognised(cause))?;
        Some(by_incident(found, cause, found.range.text.clone()))
    })
}

fn unasked_reset(seen: &Observation) -> Option<Verdict> {
    let wanted = |kind: &IncidentKind| {
        matches!(kind, IncidentKind::Reset | IncidentKind::Recognised(Cause::UnexpectedReset))
    };
    let first = incident(seen, wanted)?;
    let count = |kind| seen.incidents.iter().filter(|incident| incident.kind == kind).count();
    // Resets that a wait or a console has reported already do not count again.
    let recognised = count(IncidentKind::Recognised(Cause::UnexpectedReset));
    let count = count(IncidentKind::Reset).max(recognised);
    let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let summary = format!("the target reset itself {times}, unasked");
    Some(by_incident(first, Cause::UnexpectedReset, summary))
}

fn cases(
    seen: &Observation,
    status: CaseStatus,
) -> impl Iterator<Item = &jig_model::result::TestCase> {
    seen.report.cases.iter().filter(move |case| case.status == status)
}

fn case_evidence(seen: &Observation, status: CaseStatus) -> Vec<Evidence> {
    // A reader opens the first few only.
    let listed = cases(seen, status).take(10).map(|case| Evidence {
        file: seen.output.file.clone(),
        start: case.start,
        end: case.end,
        note: case.name.clone(),
    });
    listed.collect()
}

fn executed(report: &TestReport) -> usize {
    report.cases.len() - report.count(CaseStatus::Unfinished)
}

/// Checks the build id before results count: if an image promises to print its build id and a boot
/// reports tests without it, another image may have run. A successful read-back proves the image,
/// too. Faults of the boot come before this rule.
fn unidentified_report(seen: &Observation) -> Option<Verdict> {
    let reports = !seen.report.cases.is_empty() && seen.identity.read_back.is_none();
    if reports { identity_missing(seen) } else { None }
}

fn failed_case(seen: &Observation) -> Option<Verdict> {
    let failed = seen.report.count(CaseStatus::Fail);
    let first = cases(seen, CaseStatus::Fail).next()?;
    let all = executed(&seen.report);
    let reason = first.message.as_deref().map(|m| format!(": {m}")).unwrap_or_default();
    let summary = format!("{failed} of {all} tests failed, first {}{reason}", first.name);
    Some(verdict(Cause::TestFailed, summary, case_evidence(seen, CaseStatus::Fail)))
}

fn claimed_failures(seen: &Observation) -> Option<Verdict> {
    let claimed = seen.report.claimed_failures.filter(|&n| n > 0)?;
    let summary =
        format!("the target's own summary claims {claimed} failed, though no case says so");
    Some(on_output(seen, Cause::SummaryFailed, summary))
}

fn bad_exit(seen: &Observation) -> Option<Verdict> {
    seen.incidents.iter().find_map(|incident| match incident.kind {
        IncidentKind::Exit(code) if code != 0 => {
            let summary = format!("the firmware ended with exit code {code}");
            Some(by_incident(incident, Cause::GuestExit, summary))
        }
        _ => None,
    })
}

/// A core that is halted in a fault has failed, whether or not a console reports it. Faults on a
/// console, and the way in which a target ended, come before: they name the failure more closely.
fn core_fault(seen: &Observation) -> Option<Verdict> {
    let finding = seen.post_mortem.as_ref()?;
    let proven =
        finding.proves.filter(|cause| matches!(cause, Cause::CoreFault | Cause::Lockup))?;
    let text = &finding.range.text;
    let summary = match seen.failure {
        Some(_) => text.clone(),
        // Else it would look as if the target had printed something wrong.
        None => format!("in the end the processor stands in a fault: {text}"),
    };
    Some(verdict(proven, summary, vec![finding.range.evidence()]))
}

/// Any other failure that a fault signature stands for, such as a hang that a kernel reports.
fn recognised(seen: &Observation) -> Option<Verdict> {
    let found = seen.incidents.iter().filter_map(|incident| match incident.kind {
        IncidentKind::Recognised(cause) => Some((incident, cause)),
        _ => None,
    });
    let (first, cause) = found.min_by_key(|(i, _)| (&i.range.file, i.range.start))?;
    Some(by_incident(first, cause, first.range.text.trim()))
}

fn silent(seen: &Observation) -> Option<Verdict> {
    let wanted = seen.results_wanted || seen.failure.is_some();
    (wanted && !seen.printed()).then(|| {
        let summary = "the target printed nothing in this boot";
        on_output(seen, Cause::NoOutput, summary)
    })
}

fn failed_action(seen: &Observation) -> Option<Verdict> {
    let failure = seen.failure.as_ref()?;
    let mut decided = verdict(failure.cause, failure.detail.clone(), failure.evidence.clone());
    // A wait for results that ran out while none had begun proves nothing against the target.
    if failure.cause == Cause::Hang && seen.results_wanted && seen.report.format.is_none() {
        return no_results(seen);
    }
    if decided.evidence.is_empty() {
        decided.evidence.push(seen.output.evidence());
    }
    Some(decided)
}

/// A missing result may have been lost in a gap; an observed failure stands.
fn bytes_lost(seen: &Observation) -> Option<Verdict> {
    let missed = |cause| matches!(cause, Cause::Hang | Cause::ExpectMissed | Cause::GoalMissed);
    if seen.failure.as_ref().is_some_and(|failure| !missed(failure.cause)) {
        return None;
    }
    let gap = seen.gaps.first()?;
    let lost = gap.lost.map_or("an unknown number of".to_owned(), |n| n.to_string());
    let summary = format!("{lost} console bytes are missing: {}", gap.range.text);
    Some(verdict(Cause::OutputLost, summary, vec![gap.range.evidence()]))
}

/// A missing or incomplete result may have been lost in garbage, so it proves nothing against the
/// target. An observed failure stands, and so does a pass.
fn garbled(seen: &Observation, found: &Verdict) -> Option<Verdict> {
    let missed = matches!(
        found.cause,
        Cause::Hang
            | Cause::ExpectMissed
            | Cause::GoalMissed
            | Cause::SummaryFailed
            | Cause::NoResults
            | Cause::NoTests
            | Cause::PlanMismatch
            | Cause::ReportIncomplete
            | Cause::IdentityMissing
    );
    let garbage = seen.garbage.as_ref().filter(|_| missed)?;
    let summary = format!(
        "the console gave {}, so what is missing may be lost: {}",
        garbage.text, found.summary
    );
    let mut evidence = found.evidence.clone();
    evidence.insert(0, garbage.evidence());
    let doubt = verdict(Cause::OutputLost, summary, evidence);
    Some(Verdict { tests: found.tests.clone(), ..doubt })
}

/// Longest stop of an emulator that puts no failure in doubt: tools that inspect a process stop it
/// for less.
const STOPPED: Duration = Duration::from_millis(250);
/// Longest stop of Jig itself that a busy host explains.
const FROZEN: Duration = Duration::from_secs(2);

/// The clock of a target continues while it is stopped, so the stop may have caused a failure, and
/// the test is attempted again. A pass stands.
fn stood_still(seen: &Observation, found: &Verdict) -> Option<Verdict> {
    let Standstill { stopped, latest } = seen.standstill;
    let (cause, what, time) = if stopped >= STOPPED {
        (Cause::EmulatorStuck, "what runs the board was stopped", stopped)
    } else if latest >= FROZEN {
        (Cause::RigUnhealthy, "jig itself stood still", latest)
    } else {
        return None;
    };
    if found.cause.fault() != Some(jig_model::Fault::Target) {
        return None;
    }
    let time = time.as_secs_f64();
    let summary =
        format!("{what} for {time:.1} s, so nothing is proven against it: {}", found.summary);
    let doubt = verdict(cause, summary, found.evidence.clone());
    Some(Verdict { tests: found.tests.clone(), ..doubt })
}

fn identity_missing(seen: &Observation) -> Option<Verdict> {
    let identity = &seen.identity;
    (identity.announces && identity.deployed.is_some() && identity.printed.is_none()).then(|| {
        let summary = "the image promises to print its build id, but this boot printed none";
        on_output(seen, Cause::IdentityMissing, summary)
    })
}

fn no_results(seen: &Observation) -> Option<Verdict> {
    (seen.results_wanted && seen.report.format.is_none()).then(|| {
        let summary = "the target printed, but no known result format was found \
                       (wait for a text instead: --until REGEX)";
        on_output(seen, Cause::NoResults, summary)
    })
}

fn unfinished_case(seen: &Observation) -> Option<Verdict> {
    let first = cases(seen, CaseStatus::Unfinished).next()?;
    let summary = format!("test {} began and has no result", first.name);
    Some(verdict(Cause::PlanMismatch, summary, case_evidence(seen, CaseStatus::Unfinished)))
}

fn no_tests(seen: &Observation) -> Option<Verdict> {
    (seen.results_wanted && seen.report.ended && seen.report.cases.is_empty())
        .then(|| on_output(seen, Cause::NoTests, "the report holds no test at all"))
}

fn report_incomplete(seen: &Observation) -> Option<Verdict> {
    (seen.results_wanted && !seen.report.ended).then(|| {
        let all = executed(&seen.report);
        on_output(
            seen,
            Cause::ReportIncomplete,
            format!("{all} tests ran, but the report has no end marker"),
        )
    })
}

fn plan_mismatch(seen: &Observation) -> Option<Verdict> {
    let planned = seen.report.planned?;
    let all = executed(&seen.report) as u64;
    (seen.results_wanted && planned != all).then(|| {
        let summary = format!("{planned} tests were announced, but {all} have a result");
        on_output(seen, Cause::PlanMismatch, summary)
    })
}

/// A report that contradicts itself proves nothing, even where each line is green.
fn contradiction(seen: &Observation) -> Option<Verdict> {
    let remark = seen.report.remarks.first()?;
    seen.results_wanted.then(|| on_output(seen, Cause::PlanMismatch, remark.clone()))
}

/// A step that needed several starts did not simply work.
fn restarted(seen: &Observation) -> Option<Verdict> {
    (seen.restarts > 0).then(|| {
        let n = seen.restarts;
        let s = if n == 1 { "" } else { "s" };
        on_output(seen, Cause::Flaky, format!("everything worked in the end, after {n} restart{s}"))
    })
}

fn passed(seen: &Observation) -> Verdict {
    if !seen.results_wanted {
        return on_output(seen, Cause::ExpectationsMet, "everything the plan expects was seen");
    }
    let skipped = seen.report.count(CaseStatus::Skip);
    let count = seen.report.count(CaseStatus::Pass);
    let s = if count == 1 { "" } else { "s" };
    let skips = if skipped == 0 { String::new() } else { format!(", {skipped} skipped") };
    on_output(seen, Cause::Passed, format!("{count} test{s} passed{skips}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{ByteRange, CoreFinding, EarlierReport, Gap, PrintedId, ReadBack};
    use crate::workflow::ActionFailure;
    use jig_model::VerdictKind;
    use jig_model::result::{ResultFormat, TestCase};

    fn case(name: &str, status: CaseStatus) -> TestCase {
        TestCase { name: name.into(), status, message: None, duration_ms: None, start: 0, end: 1 }
    }

    fn green() -> Observation {
        Observation {
            output: ByteRange { end: 10, ..ByteRange::default() },
            results_wanted: true,
            report: TestReport {
                format: Some(ResultFormat::Unity),
                cases: vec![case("a", CaseStatus::Pass), case("b", CaseStatus::Skip)],
                planned: Some(2),
                claimed_failures: Some(0),
                ended: true,
                remarks: vec![],
            },
            ..Observation::default()
        }
    }

    fn incident(kind: IncidentKind) -> Incident {
        Incident { kind, range: ByteRange::default() }
    }

    fn finding(proves: Cause) -> CoreFinding {
        CoreFinding { proves: Some(proves), range: ByteRange::default() }
    }

    #[test]
    fn what_a_debug_port_finds_comes_behind_the_rig_and_what_the_target_said() {
        let fault = Some(finding(Cause::CoreFault));
        let seen = || Observation { post_mortem: fault.clone(), ..green() };
        for (cause, what) in [
            (Cause::ProbeLost, IncidentKind::Lost(Cause::ProbeLost)),
            (Cause::FaultBanner, IncidentKind::Recognised(Cause::FaultBanner)),
            (Cause::WatchdogReset, IncidentKind::Watchdog),
            (Cause::GuestExit, IncidentKind::Exit(3)),
            (Cause::CoreFault, IncidentKind::Exit(0)),
        ] {
            let incidents = vec![incident(what)];
            assert_eq!(judge(&Observation { incidents, ..seen() }).cause, cause);
        }
        // An earlier boot's report is judged by itself.
        let heard = EarlierReport { output: green().output, report: green().report };
        let earlier = Observation { earlier: vec![heard], ..seen() };
        assert_eq!(judge(&earlier).cause, Cause::CoreFault);
    }

    #[test]
    fn a_complete_green_report_passes() {
        let verdict = judge(&green());
        assert_eq!((verdict.kind, verdict.cause), (VerdictKind::Pass, Cause::Passed));
        assert_eq!(verdict.tests.cases.len(), 2);
    }

    /// Each of these takes one thing away from a green observation: none may pass.
    #[test]
    fn nothing_that_is_missing_or_wrong_passes() {
        type Spoil = fn(&mut Observation);
        let table: &[(Cause, Spoil)] = &[
            (Cause::Cancelled, |o| o.cancelled = true),
            (Cause::EmulatorKilled, |o| {
                o.incidents.push(incident(IncidentKind::Lost(Cause::EmulatorKilled)));
            }),
            (Cause::FaultBanner, |o| {
                o.incidents.push(incident(IncidentKind::Recognised(Cause::FaultBanner)));
            }),
            (Cause::Hang, |o| {
                o.incidents.push(incident(IncidentKind::Recognised(Cause::Hang)));
            }),
            (Cause::Lockup, |o| o.incidents.push(incident(IncidentKind::Lockup))),
            (Cause::CoreFault, |o| o.post_mortem = Some(finding(Cause::CoreFault))),
            (Cause::Lockup, |o| o.post_mortem = Some(finding(Cause::Lockup))),
            (Cause::TargetAborted, |o| o.incidents.push(incident(IncidentKind::Aborted))),
            (Cause::GuestPanic, |o| o.incidents.push(incident(IncidentKind::GuestPanic))),
            (Cause::WatchdogReset, |o| o.incidents.push(incident(IncidentKind::Watchdog))),
            (Cause::BootLoop, |o| {
                o.incidents.push(incident(IncidentKind::Recognised(Cause::BootLoop)));
            }),
            (Cause::OutputFlood, |o| {
                o.incidents.push(incident(IncidentKind::Recognised(Cause::OutputFlood)));
            }),
            (Cause::UnexpectedReset, |o| o.incidents.push(incident(IncidentKind::Reset))),
            (Cause::GuestExit, |o| o.incidents.push(incident(IncidentKind::Exit(1)))),
            (Cause::TestFailed, |o| o.report.cases.push(case("c", CaseStatus::Fail))),
            (Cause::SummaryFailed, |o| o.report.claimed_failures = Some(1)),
            (Cause::NoOutput, |o| o.output.end = o.output.start),
            (Cause::OutputLost, |o| {
                o.gaps.push(Gap { range: ByteRange::default(), lost: Some(3) });
            }),
            (Cause::NoResults, |o| o.report = TestReport::default()),
            (Cause::NoTests, |o| {
                o.report.cases.clear();
                o.report.planned = Some(0);
            }),
            (Cause::ReportIncomplete, |o| o.report.ended = false),
            (Cause::PlanMismatch, |o| o.report.planned = Some(3)),
            (Cause::PlanMismatch, |o| o.report.cases.push(case("c", CaseStatus::Unfinished))),
            (Cause::PlanMismatch, |o| o.report.remarks.push("twice".into())),
            (Cause::Flaky, |o| o.restarts = 1),
            (Cause::IdentityMissing, |o| {
                o.identity = ImageIdentity {
                    deployed: Some("ab".into()),
                    announces: true,
                    ..ImageIdentity::default()
                };
            }),
            (Cause::WrongImage, |o| {
                o.identity.read_back =
                    Some(ReadBack { found: "ab".into(), deployed: "abcd".into() });
            }),
            (Cause::WrongImage, |o| {
                let printed = PrintedId { hex: "cd".into(), range: ByteRange::default() };
                o.identity = ImageIdentity {
                    deployed: Some("ab".into()),
                    announces: true,
                    printed: Some(printed),
                    read_back: None,
                };
            }),
            (Cause::Hang, |o| {
                o.failure = Some(ActionFailure::new(Cause::Hang, ""));
            }),
        ];
        for (cause, spoil) in table {
            let mut seen = green();
            spoil(&mut seen);
            let verdict = judge(&seen);
            assert_eq!(verdict.cause, *cause);
            assert_ne!(verdict.kind, VerdictKind::Pass, "{cause}");
        }
    }

    #[test]
    fn the_rig_is_asked_before_the_firmware() {
        let mut seen = green();
        seen.report.cases.push(case("c", CaseStatus::Fail));
        seen.incidents.push(incident(IncidentKind::Recognised(Cause::FaultBanner)));
        seen.incidents.push(incident(IncidentKind::Lost(Cause::EmulatorStuck)));
        assert_eq!(judge(&seen).kind, VerdictKind::EnvError);
    }

    #[test]
    fn what_explains_a_loss_comes_before_it_whatever_was_noticed_first() {
        let lost = |cause| incident(IncidentKind::Lost(cause));
        let order = [Cause::EmulatorKilled, Cause::StorageFailed, Cause::ConsoleLost];
        for (first, second) in [(0, 1), (0, 2), (1, 2)] {
            for (early, late) in [(first, second), (second, first)] {
                let mut seen = green();
                seen.incidents = vec![lost(order[early]), lost(order[late])];
                assert_eq!(judge(&seen).cause, order[first]);
            }
        }
    }

    #[test]
    fn the_first_crash_in_a_log_and_the_deeper_loop_decide_whatever_was_noticed_first() {
        let shown = |cause, file: &str, start| Incident {
            kind: IncidentKind::Recognised(cause),
            range: ByteRange { file: file.into(), start, ..ByteRange::default() },
        };
        for turn in [false, true] {
            for (first, second) in [
                (shown(Cause::GuestPanic, "a", 7), shown(Cause::FaultBanner, "a", 9)),
                (shown(Cause::FaultBanner, "a", 7), shown(Cause::GuestPanic, "b", 3)),
                (shown(Cause::BootLoop, "b", 7), shown(Cause::OutputFlood, "a", 0)),
            ] {
                let mut seen = green();
                seen.incidents = vec![first.clone(), second];
                if turn {
                    seen.incidents.reverse();
                }
                assert_eq!(IncidentKind::Recognised(judge(&seen).cause), first.kind);
            }
        }
    }

    #[test]
    fn a_reset_that_has_two_witnesses_is_one_reset() {
        let recognised = IncidentKind::Recognised(Cause::UnexpectedReset);
        for (resets, witnesses, times) in
            [(1, 0, "once"), (0, 1, "once"), (1, 1, "once"), (2, 0, "2 times"), (2, 1, "2 times")]
        {
            let mut seen = green();
            let kinds = std::iter::repeat_n(IncidentKind::Reset, resets)
                .chain(std::iter::repeat_n(recognised.clone(), witnesses));
            seen.incidents = kinds.map(incident).collect();
            let verdict = judge(&seen);
            assert_eq!(verdict.cause, Cause::UnexpectedReset);
            assert_eq!(verdict.summary, format!("the target reset itself {times}, unasked"));
        }
    }

    #[test]
    fn garbage_puts_in_doubt_what_is_missing_and_nothing_else() {
        let garbage = Some(ByteRange { start: 3, end: 5, ..ByteRange::default() });
        let seen = || Observation { garbage: garbage.clone(), ..green() };
        assert_eq!(judge(&seen()).cause, Cause::Passed);
        let mut failed = seen();
        failed.report.cases.push(case("c", CaseStatus::Fail));
        assert_eq!(judge(&failed).cause, Cause::TestFailed);
        let crashed = vec![incident(IncidentKind::Recognised(Cause::FaultBanner))];
        let crashed = Observation { incidents: crashed, ..seen() };
        assert_eq!(judge(&crashed).cause, Cause::FaultBanner);
        let mut cut = seen();
        cut.report.ended = false;
        let verdict = judge(&cut);
        assert_eq!((verdict.cause, verdict.evidence[0].start), (Cause::OutputLost, 3));
        assert_eq!(verdict.tests.cases.len(), 2);
        let mut claimed = seen();
        claimed.report.claimed_failures = Some(1);
        assert_eq!(judge(&claimed).cause, Cause::OutputLost);
        let late = Some(ActionFailure::new(Cause::ExpectMissed, ""));
        assert_eq!(judge(&Observation { failure: late, ..seen() }).cause, Cause::OutputLost);
    }

    #[test]
    fn a_standstill_puts_failures_in_doubt_and_no_pass_and_names_the_rig() {
        let ms = Duration::from_millis;
        let stopped = |time| Standstill { stopped: time, ..Standstill::default() };
        let frozen = |time| Standstill { latest: time, ..Standstill::default() };
        for (standstill, cause) in [
            (stopped(STOPPED - ms(1)), None),
            (stopped(STOPPED), Some(Cause::EmulatorStuck)),
            (frozen(FROZEN - ms(1)), None),
            (frozen(FROZEN), Some(Cause::RigUnhealthy)),
        ] {
            let seen = || Observation { standstill, ..green() };
            assert_eq!(judge(&seen()).cause, Cause::Passed);
            let lost = vec![incident(IncidentKind::Lost(Cause::ConsoleLost))];
            assert_eq!(judge(&Observation { incidents: lost, ..seen() }).cause, Cause::ConsoleLost);
            let watchdog = vec![incident(IncidentKind::Watchdog)];
            let bitten = judge(&Observation { incidents: watchdog, ..seen() });
            assert_eq!(bitten.cause, cause.unwrap_or(Cause::WatchdogReset));
            let mut failed = seen();
            failed.report.cases.push(case("c", CaseStatus::Fail));
            let failed = judge(&failed);
            assert_eq!(failed.cause, cause.unwrap_or(Cause::TestFailed));
            assert_eq!(failed.tests.cases.len(), 3);
        }
    }

    #[test]
    fn a_shortened_build_id_is_accepted_but_not_another_one() {
        let mut seen = green();
        let printed = |hex: &str| PrintedId { hex: hex.into(), range: ByteRange::default() };
        seen.identity = ImageIdentity {
            deployed: Some("abcdef".into()),
            announces: true,
            printed: Some(printed("abcd")),
            read_back: Some(ReadBack { found: "cd".into(), deployed: "cd".into() }),
        };
        assert_eq!(judge(&seen).cause, Cause::Passed);
        seen.identity.printed = Some(printed("abce"));
        assert_eq!(judge(&seen).cause, Cause::WrongImage);
    }

    #[test]
    fn tests_of_an_image_that_nobody_knows_are_not_blamed_on_the_one_that_was_deployed() {
        let mut seen = green();
        seen.report.cases.push(case("c", CaseStatus::Fail));
        let deployed = Some("ab".to_owned());
        seen.identity = ImageIdentity { deployed, announces: true, ..ImageIdentity::default() };
        assert_eq!(judge(&seen).cause, Cause::IdentityMissing);
        let bytes = || "cd".to_owned();
        seen.identity.read_back = Some(ReadBack { found: bytes(), deployed: bytes() });
        assert_eq!(judge(&seen).cause, Cause::TestFailed);
        let crashed = vec![incident(IncidentKind::Recognised(Cause::FaultBanner))];
        let unread = ImageIdentity { read_back: None, ..seen.identity.clone() };
        let crashed = Observation { incidents: crashed, identity: unread, ..seen };
        assert_eq!(judge(&crashed).cause, Cause::FaultBanner);
    }

    #[test]
    fn running_out_of_time_before_any_result_is_no_proof_against_the_target() {
        let mut seen = green();
        seen.report = TestReport::default();
        seen.failure = Some(ActionFailure::new(Cause::Hang, ""));
        assert_eq!(judge(&seen).cause, Cause::NoResults);
    }
}
