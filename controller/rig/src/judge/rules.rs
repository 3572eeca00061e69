//! The rules, in the order in which they decide.

use std::time::Duration;

use jig_model::VerdictKind::{Fail, Flaky, Inconclusive, Pass};
use jig_model::result::{CaseStatus, ResultFormat, TestReport};
use jig_model::{Cause, Evidence, Note, Verdict};

use super::observation::{
    AskedOfTarget, BootSign, CoreFinding, DoubtfulText, ExpectedCrash, ImageIdentity, Incident,
    IncidentKind, Observation, OutputBehind, Standstill,
};
use super::other_console::{complete_report, console_advice, on_other_console};
use super::target_exit::{but_ended, ended_with};
use crate::console::{AwaitedDoubt, tells_fallback};

pub(super) type Rule = fn(&Observation) -> Option<Verdict>;

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
    ("core-unknown", core_unknown),
    ("failed-result", failed_result),
    ("doubtful-text", doubtful_text),
    ("unaccounted", unaccounted),
    ("suspicious-output", suspicious_output),
    ("alarm", alarm),
    ("fault-behind", fault_behind),
    ("begun-again", begun_again),
    ("nothing-expected", nothing_expected),
    ("restarted", restarted),
];

/// Judges one attempt.
///
/// Each awaited report of an earlier boot is judged like the last one. A proven failure in any of
/// them decides; else the last boot, unless it passes and an earlier one is inconclusive.
pub fn judge(seen: &Observation) -> Verdict {
    let mut verdict = judge_boots(seen);
    if let Some(contradicted) = super::elsewhere::contradicted(seen, &verdict) {
        verdict = contradicted;
    }
    if let Some(doubt) = garbled(seen, &verdict) {
        verdict = doubt;
    }
    explain(seen, &mut verdict);
    if let Some(doubt) = stood_still(seen, &verdict) {
        verdict = doubt;
    }
    verdict.notes.clone_from(&seen.notes);
    if let Some(listened) = seen.listened.filter(|listened| listened.printing) {
        verdict.notes.push(Note::StillPrinting { ms: listened.had.as_millis() as u64 });
    }
    if let Some(OutputBehind { lines, first }) = seen.output_behind.as_ref()
        && verdict.kind == Pass
    {
        verdict.notes.push(Note::OutputBehind { lines: *lines, first: first.text.clone() });
    }
    verdict.image_seen = seen.identity.seen();
    verdict.listened_ms = seen.listened.map(|listened| listened.had.as_millis() as u64);
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
    seen.cancelled.then(|| Verdict::of(Cause::Cancelled, "a stop was requested"))
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
    // A core that stands in a fault does so however little time it had.
    if failure.cause == Cause::RigUnhealthy && core_fault(seen).is_some() {
        return None;
    }
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
        let place = on_other_console(seen, &incident.range);
        let summary = format!("{place}{}: {}", cause_text(cause), incident.range.text.trim());
        return Some(by_incident(incident, cause, summary));
    }
    if let Some(lockup) = incident(seen, |kind| *kind == IncidentKind::Lockup) {
        let line = lockup.range.text.lines().next().unwrap_or_default();
        let summary = format!("the processor locked up: {line}");
        let nothing = lockup.range.start == lockup.range.end;
        let range = if nothing { &seen.output } else { &lockup.range };
        let evidence = Evidence { note: lockup.range.evidence().note, ..range.evidence() };
        return Some(verdict(Cause::Lockup, summary, vec![evidence]));
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

pub(super) fn executed(report: &TestReport) -> usize {
    report.cases.len() - report.count(CaseStatus::Unfinished)
}

/// Checks the build id before results count: if an image promises to print its build id and a boot
/// reports tests without it, another image may have run. A successful read-back proves the image,
/// too. Faults of the boot come before this rule.
fn unidentified_report(seen: &Observation) -> Option<Verdict> {
    let reports = !seen.report.cases.is_empty() && seen.identity.read_back.is_none();
    if reports { identity_missing(seen) } else { None }
}

pub(super) fn failed_case(seen: &Observation) -> Option<Verdict> {
    let failed = seen.report.count(CaseStatus::Fail);
    let first = cases(seen, CaseStatus::Fail).next()?;
    let all = executed(&seen.report);
    let reason = first.message.as_deref().map(|m| format!(": {m}")).unwrap_or_default();
    let summary = format!("{failed} of {all} tests failed, first {}{reason}", first.name);
    Some(verdict(Cause::TestFailed, summary, case_evidence(seen, CaseStatus::Fail)))
}

pub(super) fn claimed_failures(seen: &Observation) -> Option<Verdict> {
    let claimed = seen.report.claimed_failures.filter(|&n| n > 0)?;
    let bailed = seen.report.remarks.iter().find(|remark| remark.contains("bailed out"));
    let summary = bailed.cloned().unwrap_or_else(|| {
        format!("the target's own summary claims {claimed} failed, though no case says so")
    });
    Some(on_output(seen, Cause::SummaryFailed, summary))
}

fn bad_exit(seen: &Observation) -> Option<Verdict> {
    seen.incidents.iter().find_map(|incident| match incident.kind {
        IncidentKind::Exit(code) if code != 0 => {
            Some(by_incident(incident, Cause::GuestExit, ended_with(code)))
        }
        _ => None,
    })
}

/// A core that is halted in a fault has failed, whether or not a console reports it. Faults on a
/// console, and the way in which a target ended, come before: they name the failure more closely.
fn core_fault(seen: &Observation) -> Option<Verdict> {
    let finding = seen.post_mortem.as_ref().filter(|found| excused(seen, found) == Some(false))?;
    let is_proof =
        |cause: &Cause| matches!(cause, Cause::CoreFault | Cause::Lockup | Cause::GuestPanic);
    let proven = finding.proves.filter(is_proof)?;
    let text = &finding.range.text;
    let summary = match &seen.failure {
        Some(failure) if failure.cause == proven => failure.detail.clone(),
        Some(_) => text.clone(),
        None if proven == Cause::GuestPanic => {
            format!("in the end the system waits after a fatal error: {text}")
        }
        // Else it would look as if the target had printed something wrong.
        None => format!("in the end the processor stands in a fault: {text}{}", remedy(seen)),
    };
    Some(verdict(proven, summary, vec![finding.range.evidence()]))
}

/// Names what makes a crash an expected one, where the plan ends with a text that it expects: the handler
/// may have printed that text.
fn remedy(seen: &Observation) -> &'static str {
    if seen.results_wanted || seen.expected_crash != ExpectedCrash::None {
        return "";
    }
    " (if the plan expects the text of this crash: a `[[fault]]` of the board profile whose `line` \
     matches it makes the crash an expected one)"
}

/// Tells whether the fault in which the core stands is the crash that the plan expected.
fn excused(seen: &Observation, finding: &CoreFinding) -> Option<bool> {
    seen.expected_crash.excuses(finding.taken)
}

/// Any other failure that a fault signature stands for, such as a hang that a kernel reports.
fn recognised(seen: &Observation) -> Option<Verdict> {
    let found = seen.incidents.iter().filter_map(|incident| match incident.kind {
        IncidentKind::Recognised(cause) => Some((incident, cause)),
        _ => None,
    });
    let (first, cause) = found.min_by_key(|(i, _)| (&i.range.file, i.range.start))?;
    let text = first.range.text.trim();
    let rejected = if cause == Cause::AssertFailed { "this output is rejected: " } else { "" };
    Some(by_incident(first, cause, format!("{rejected}{text}")))
}

fn silent(seen: &Observation) -> Option<Verdict> {
    let wanted = seen.results_wanted || seen.failure.is_some();
    // What a command showed by its status is no silence.
    let told = seen.failure.as_ref().is_some_and(|failure| tells_of_shell(failure.cause));
    (wanted && !told && !seen.printed()).then(|| {
        let summary = "the target printed nothing in this boot";
        on_output(seen, Cause::NoOutput, summary)
    })
}

/// Tells whether a cause is what the shell of a target has answered.
fn tells_of_shell(cause: Cause) -> bool {
    use Cause::{CommandFailed, RebootFailed, ShellLost, TransferFailed, UnexpectedReset};
    matches!(cause, CommandFailed | TransferFailed | RebootFailed | ShellLost | UnexpectedReset)
}

fn failed_action(seen: &Observation) -> Option<Verdict> {
    let failure = seen.failure.as_ref()?;
    let mut decided = verdict(failure.cause, failure.detail.clone(), failure.evidence.clone());
    // A wait for results that ran out while none had begun proves nothing against the target.
    if failure.cause == Cause::Hang && seen.results_wanted && seen.report.format.is_none() {
        return no_results(seen);
    }
    if failure.cause == Cause::Hang
        && seen.results_wanted
        && let Some(missing) = missing_end(&seen.report)
    {
        decided.summary = format!("{}; {missing}", decided.summary);
    }
    if decided.evidence.is_empty() {
        decided.evidence.push(seen.output.evidence());
    }
    Some(decided)
}

/// What ends a report of each format.
const ENDS: &[(ResultFormat, &str)] = &[
    (ResultFormat::Unity, "`OK` or `FAIL` alone on the line below `N Tests N Failures N Ignored`"),
    (ResultFormat::Ztest, "`PROJECT EXECUTION SUCCESSFUL` or `PROJECT EXECUTION FAILED`"),
    (ResultFormat::Tap, "as many points as the plan `1..N` says"),
    (ResultFormat::Ktap, "as many points as the plan `1..N` says"),
    (ResultFormat::Gtest, "`[  PASSED  ] N tests.` below `N tests ran`"),
    (ResultFormat::Libtest, "`test result: ...`"),
    (ResultFormat::Cmocka, "`[  PASSED  ] N test(s).` below `N test(s) run.`"),
    (ResultFormat::Cpputest, "`OK (...)` or `Errors (...)` with the counts"),
    (ResultFormat::Embunit, "`OK (N tests)` or `run N failures N`"),
    (ResultFormat::Check, "`N%: Checks: N, Failures: N, Errors: N`"),
    (ResultFormat::Doctest, "`[doctest] Status: SUCCESS!` or `FAILURE!`"),
    (
        ResultFormat::Catch2,
        "`All tests passed (...)`, or `assertions: ...` below `test cases: ...`",
    ),
    (ResultFormat::Greentea, "`{{end;success}}` or `{{end;failure}}`"),
    (ResultFormat::Aunit, "`TestRunner summary: ...` or `Test summary: ...`"),
    (ResultFormat::Nuttx, "`ostest_main: Exiting with status N` and `user_main: Exiting`"),
    (ResultFormat::Pytest, "`N passed in N.NNs` between two rows of `=`"),
    (ResultFormat::Go, "`PASS`, `FAIL` or `ok <package>`"),
    (ResultFormat::Teamcity, "the end of the last suite, or as many tests as `testCount` says"),
    (ResultFormat::DefmtTest, "`all tests passed!`"),
    (ResultFormat::Markers, "the plan's end marker"),
];

/// Says what was read of a report without an end, and which line would have been its end.
fn missing_end(report: &TestReport) -> Option<String> {
    let format = report.format.filter(|_| !report.ended)?;
    let read = executed(report);
    let s = if read == 1 { "" } else { "s" };
    let end = ENDS.iter().find(|(known, _)| *known == format).map_or("its summary", |(_, end)| end);
    Some(format!("{read} result{s} of format {} were read, and its end is {end}", format.as_str()))
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
        let none = "the target printed, but no known result format was found";
        if let Some(other) = complete_report(seen) {
            let (name, advice) = (&other.console, console_advice(&other.console));
            let none = "no known result format was found on the awaited console";
            let summary = format!("{none}; a report stands on console {name}: {advice}");
            let mut found = on_output(seen, Cause::NoResults, summary);
            found.evidence.insert(0, other.output.evidence());
            return found;
        }
        let Some(like) = &seen.result_like else {
            let summary = format!("{none} (wait for a text instead: --until REGEX)");
            return on_output(seen, Cause::NoResults, summary);
        };
        let advice = match &like.until {
            Some(until) => format!("to wait for that line: --until {until}"),
            None => "name the line of a pass: --until REGEX".to_owned(),
        };
        let summary =
            format!("{none}; most like a result is {:?} ({advice})", like.range.text.as_str());
        let mut found = on_output(seen, Cause::NoResults, summary);
        found.evidence.insert(0, like.range.evidence());
        found
    })
}

pub(super) fn unfinished_case(seen: &Observation) -> Option<Verdict> {
    let first = cases(seen, CaseStatus::Unfinished).next()?;
    let summary = format!("test {} began and has no result", first.name);
    Some(verdict(Cause::PlanMismatch, summary, case_evidence(seen, CaseStatus::Unfinished)))
}

fn no_tests(seen: &Observation) -> Option<Verdict> {
    (seen.results_wanted && seen.report.ended && seen.report.cases.is_empty()).then(|| {
        let format = seen.report.format.map_or("", ResultFormat::as_str);
        let summary = match (seen.report.planned, seen.report.remarks.first()) {
            (Some(0), Some(remark)) => format!("the {format} report plans no test: {remark}"),
            (Some(0), None) => format!("the {format} report plans no test"),
            _ => format!(
                "the {format} report ended, and none of its lines could be read as the result of a \
                 test"
            ),
        };
        on_output(seen, Cause::NoTests, summary)
    })
}

/// Tells whether there has to be a whole report: the plan waits for one, or one has begun. A
/// line that resembles an opening may be part of the log.
fn needs_report(seen: &Observation) -> bool {
    seen.results_wanted || executed(&seen.report) > 0 || seen.report.has_begun()
}

pub(super) fn report_incomplete(seen: &Observation) -> Option<Verdict> {
    (needs_report(seen) && !seen.report.ended).then(|| {
        let missing = missing_end(&seen.report).filter(|_| !seen.results_wanted);
        let summary = match missing {
            Some(missing) => format!("the expected text came, but a report did not end: {missing}"),
            None => {
                let all = executed(&seen.report);
                format!("the report has no end marker (tests that ran: {all}){}", but_ended(seen))
            }
        };
        on_output(seen, Cause::ReportIncomplete, summary)
    })
}

pub(super) fn plan_mismatch(seen: &Observation) -> Option<Verdict> {
    let planned = seen.report.planned?;
    let all = executed(&seen.report) as u64;
    (needs_report(seen) && planned != all).then(|| {
        let ended = but_ended(seen);
        let summary = format!("tests announced: {planned}, tests with a result: {all}{ended}");
        on_output(seen, Cause::PlanMismatch, summary)
    })
}

/// A report that contradicts itself proves nothing, even where each line is green.
pub(super) fn contradiction(seen: &Observation) -> Option<Verdict> {
    let remark = seen.report.remarks.first()?;
    needs_report(seen).then(|| on_output(seen, Cause::PlanMismatch, remark.clone()))
}

/// A failed result that no format knows is no proof of one, but nothing passes with it, wherever it
/// stands.
fn failed_result(seen: &Observation) -> Option<Verdict> {
    let line = seen.failed_result.as_ref()?;
    if tells_fallback(&line.text) {
        let summary = format!(
            "a loader or the firmware says that another image may run than the one that was put on the \
             board, so its pass proves nothing: {} (if it is harmless: --allow REGEX, or \
             `allow_output` of profile or plan)",
            line.text
        );
        return Some(verdict(Cause::SuspiciousOutput, summary, vec![line.evidence()]));
    }
    let summary = format!(
        "the target printed what looks like a failed test or a crash and is part of no known \
         report: {} \
         (if it is harmless: --allow REGEX, or `allow_output` of profile or plan)",
        line.text
    );
    Some(verdict(Cause::SuspiciousOutput, summary, vec![line.evidence()]))
}

/// A strict run says what may be printed.
fn unaccounted(seen: &Observation) -> Option<Verdict> {
    let line = seen.unaccounted.as_ref()?;
    let summary = format!(
        "the run is strict (by the plan, the place or an option), and this line is part of no report, not expected and not allowed: {} \
         (if it is harmless: --allow REGEX, or `allow_output` of profile or plan; patterns for all such \
         lines: jig runs allow)",
        line.text
    );
    Some(verdict(Cause::SuspiciousOutput, summary, vec![line.evidence()]))
}

/// A text that proves nothing where it stands is no reason of a pass.
fn doubtful_text(seen: &Observation) -> Option<Verdict> {
    let DoubtfulText { line, text, doubt, pattern } = seen.doubtful_text.as_ref()?;
    let why = match doubt {
        AwaitedDoubt::PartOfWord => "is a part of another word or number",
        AwaitedDoubt::Denied => "is denied by the words in front of it",
        AwaitedDoubt::Restricted => "is restricted by the words behind it",
        AwaitedDoubt::FailingValue => "has the value of a failure behind it",
        AwaitedDoubt::TakenBack => "is taken back by a later line",
    };
    let remedy = match pattern.as_str() {
        "" => String::new(),
        pattern => format!("a pattern that tells them apart: {pattern}; "),
    };
    let summary = format!(
        "the expected text `{text}` {why}: {} ({remedy}if the line is harmless: --allow REGEX, or \
         `allow_output` of profile or plan)",
        line.text
    );
    Some(verdict(Cause::SuspiciousOutput, summary, vec![line.evidence()]))
}

/// A target has not passed while it is not known whether its core is in a fault for good.
fn core_unknown(seen: &Observation) -> Option<Verdict> {
    let finding = seen.post_mortem.as_ref()?;
    let text = &finding.range.text;
    let proves = finding.proves?;
    if excused(seen, finding).is_none() {
        let summary = format!(
            "in the end the processor stands in a fault, and whether it is the crash that the plan \
             expects is not known, because the plan expects a text behind that: {text}"
        );
        return Some(on_output(seen, Cause::Unconfirmed, summary));
    }
    if proves != Cause::Unconfirmed || excused(seen, finding) == Some(true) {
        return None;
    }
    let summary = format!(
        "in the end the processor may have stood in a fault, or halted for good, and whether it did is \
         not certain: {text}"
    );
    Some(on_output(seen, Cause::Unconfirmed, summary))
}

/// Behind the end, output that looks like a crash is no proof of one, but nothing passes with it.
fn suspicious_output(seen: &Observation) -> Option<Verdict> {
    let line = seen.suspicious.as_ref()?;
    let end = what_ended(seen);
    let summary = format!(
        "behind {end} the target printed what looks like a failure or a crash: {} \
         (if it is harmless: --allow REGEX, or `allow_output` of profile or plan)",
        line.text
    );
    Some(verdict(Cause::SuspiciousOutput, summary, vec![line.evidence()]))
}

/// Among the results, or in front of an awaited text, firmware may print such a line on purpose, and then the plan
/// or the profile knows it.
fn alarm(seen: &Observation) -> Option<Verdict> {
    let line = seen.alarm.as_ref()?;
    let summary = format!(
        "before the end the target printed what looks like a crash: {} \
         (if it does so on purpose: --allow REGEX, or `allow_output` of profile or plan)",
        line.text
    );
    Some(verdict(Cause::SuspiciousOutput, summary, vec![line.evidence()]))
}

/// A fault behind the end is provoked by no test. Whether the target got over it, a handler that has
/// returned does not show.
fn fault_behind(seen: &Observation) -> Option<Verdict> {
    let output = seen.fault_behind.as_ref()?;
    let summary = format!(
        "behind {} the processor took a fault; its handler was left, and the target printed on",
        what_ended(seen)
    );
    Some(verdict(Cause::Unconfirmed, summary, vec![output.evidence()]))
}

/// Where nothing tells of a reset, a boot that begins again may be a crash that prints nothing.
fn begun_again(seen: &Observation) -> Option<Verdict> {
    let (line, shown) = match seen.begun_again.as_ref()? {
        BootSign::FirstLine(line) => (line, "its first line came once more"),
        BootSign::Banner(line) => (line, "it printed the banner of a boot"),
    };
    let summary = format!(
        "behind {} the target seems to have started again: {shown}: {} \
         (if it is harmless: --allow REGEX, or `allow_output` of profile or plan)",
        what_ended(seen),
        line.text
    );
    Some(verdict(Cause::SuspiciousOutput, summary, vec![line.evidence()]))
}

fn what_ended(seen: &Observation) -> &'static str {
    if seen.results_wanted { "the end of the report" } else { "the expected text" }
}

/// Where a plan expects nothing of its target, whatever the target does would pass. Where it expects
/// only that something is not printed, a target that does not run would pass.
fn nothing_expected(seen: &Observation) -> Option<Verdict> {
    match seen.asked {
        AskedOfTarget::Nothing => {
            let summary = "the plan expects nothing of the target, so its end proves nothing (add a \
                 step: `{ expect = 'REGEX' }` or `{ wait_for_results = true }`)";
            Some(on_output(seen, Cause::NothingExpected, summary))
        }
        AskedOfTarget::Absence if !seen.printed() => {
            let summary = "the target printed nothing, and the plan expects only that some text is \
                 not printed (add a step: `{ expect = 'REGEX' }`)";
            Some(on_output(seen, Cause::NoOutput, summary))
        }
        AskedOfTarget::Absence | AskedOfTarget::Presence => None,
    }
}

/// A step that needed several starts did not simply work, even if the plan allows them.
fn restarted(seen: &Observation) -> Option<Verdict> {
    (seen.restarts > 0).then(|| {
        let n = seen.restarts;
        let s = if n == 1 { "" } else { "s" };
        let summary = format!("everything worked in the end, after {n} restart{s}");
        let mut found = on_output(seen, Cause::Flaky, summary);
        if let Some(before) = &seen.restarted_after {
            found.summary = format!("{}; {}", found.summary, before.detail);
            found.evidence.splice(0..0, before.evidence.iter().cloned());
        }
        found
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
    let nothing = if count == 0 { ": nothing was tested" } else { "" };
    on_output(seen, Cause::Passed, format!("{count} test{s} passed{skips}{nothing}"))
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
