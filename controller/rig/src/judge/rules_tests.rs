//! Which rule decides, and what it says.

use super::*;
use crate::judge::{
    ByteRange, CoreFinding, EarlierReport, ExpectedCrash, Gap, PrintedId, ReadBack, ResultLike,
};
use crate::workflow::ActionFailure;
use jig_model::protocol::HIDDEN_EXIT_CODE;
use jig_model::result::TestCase;
use jig_model::{ImageSeen, VerdictKind};

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
            ..TestReport::default()
        },
        ..Observation::default()
    }
}

fn incident(kind: IncidentKind) -> Incident {
    Incident { kind, range: ByteRange::default() }
}

fn finding(proves: Cause) -> CoreFinding {
    CoreFinding { proves: Some(proves), range: ByteRange::default(), taken: None }
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
fn a_core_in_a_fault_had_time_enough_on_a_busy_host() {
    let starved = || Some(ActionFailure::new(Cause::RigUnhealthy, "too little time"));
    for (proves, cause) in [
        (Some(Cause::CoreFault), Cause::CoreFault),
        (Some(Cause::Lockup), Cause::Lockup),
        (Some(Cause::Unconfirmed), Cause::RigUnhealthy),
        (None, Cause::RigUnhealthy),
    ] {
        let post_mortem = proves.map(finding);
        let seen = Observation { failure: starved(), post_mortem, ..green() };
        assert_eq!(judge(&seen).cause, cause, "{proves:?}");
    }
    let lost = Some(ActionFailure::new(Cause::ProbeLost, "lost"));
    let post_mortem = Some(finding(Cause::CoreFault));
    let seen = Observation { failure: lost, post_mortem, ..green() };
    assert_eq!(judge(&seen).cause, Cause::ProbeLost);
}

#[test]
fn a_pass_behind_a_fallback_of_a_loader_says_which() {
    let text = "image not valid, booting previous".to_owned();
    let failed_result = Some(ByteRange { text, ..ByteRange::default() });
    let found = judge(&Observation { failed_result, ..green() });
    assert_eq!(found.cause, Cause::SuspiciousOutput);
    assert!(found.summary.contains("another image may run"), "{}", found.summary);
}

#[test]
fn a_system_that_waits_after_a_fatal_error_has_failed() {
    let seen = Observation { post_mortem: Some(finding(Cause::GuestPanic)), ..green() };
    let found = judge(&seen);
    assert_eq!((found.kind, found.cause), (VerdictKind::Fail, Cause::GuestPanic));
    assert!(found.summary.contains("waits after a fatal error"), "{}", found.summary);
    let expected = Observation { expected_crash: ExpectedCrash::Last, ..seen };
    assert_eq!(judge(&expected).kind, VerdictKind::Pass);
}

#[test]
fn a_lock_up_without_bytes_points_at_what_the_boot_printed() {
    let seen = Observation { incidents: vec![incident(IncidentKind::Lockup)], ..green() };
    assert_eq!(judge(&seen).evidence[0].end, green().output.end);
}

#[test]
fn an_exit_that_may_be_a_call_of_the_host_is_told_as_either() {
    let incidents = vec![incident(IncidentKind::Exit(HIDDEN_EXIT_CODE))];
    let verdict = judge(&Observation { incidents, ..green() });
    assert_eq!(verdict.cause, Cause::GuestExit);
    assert!(verdict.summary.contains("multiple of 256, or called its host for a program"));
    let incidents = vec![incident(IncidentKind::Exit(7))];
    let verdict = judge(&Observation { incidents, ..green() });
    assert_eq!(verdict.summary, "the firmware ended with exit code 7");
}

#[test]
fn an_end_within_a_report_is_told_with_what_is_missing() {
    for (report, cause) in [
        (TestReport { planned: Some(3), ..green().report }, Cause::PlanMismatch),
        (TestReport { ended: false, ..green().report }, Cause::ReportIncomplete),
    ] {
        let verdict = judge(&Observation { report: report.clone(), ..green() });
        assert!(verdict.cause == cause && !verdict.summary.contains("exit code"), "{verdict:?}");
        let incidents = vec![incident(IncidentKind::Exit(0))];
        let verdict = judge(&Observation { report, incidents, ..green() });
        assert_eq!(verdict.cause, cause);
        assert!(verdict.summary.ends_with("; the firmware ended with exit code 0"), "{verdict:?}");
    }
}

#[test]
fn a_complete_green_report_passes() {
    let verdict = judge(&green());
    assert_eq!((verdict.kind, verdict.cause), (VerdictKind::Pass, Cause::Passed));
    assert_eq!(verdict.tests.cases.len(), 2);
}

#[test]
fn a_report_that_has_begun_takes_the_pass_of_an_expected_text() {
    use CaseStatus::{Fail, Pass};
    let remark = vec!["a result behind the end".to_owned()];
    for (statuses, planned, ended, remarks, cause) in [
        (&[][..], None, false, vec![], Cause::ExpectationsMet),
        // A line that merely resembles an opening: `1..5`, `running 2 tests`.
        (&[], Some(5), false, remark.clone(), Cause::ExpectationsMet),
        (&[Pass], Some(1), true, vec![], Cause::ExpectationsMet),
        (&[Pass], Some(3), false, vec![], Cause::PlanMismatch),
        (&[Pass], None, false, vec![], Cause::ReportIncomplete),
        (&[Pass], Some(1), true, remark, Cause::PlanMismatch),
        (&[Pass, Fail], Some(3), false, vec![], Cause::TestFailed),
    ] {
        let cases = statuses.iter().map(|&status| case("a", status)).collect();
        let format = Some(ResultFormat::Tap);
        let may_be_log = statuses.is_empty();
        let report = TestReport {
            format,
            cases,
            planned,
            ended,
            remarks,
            may_be_log,
            ..TestReport::default()
        };
        let what = format!("{report:?}");
        let verdict = judge(&Observation { results_wanted: false, report, ..green() });
        assert_eq!(verdict.cause, cause, "{what}");
        if cause == Cause::ReportIncomplete {
            let said = "the expected text came, but a report did not end: 1 result of format tap";
            assert!(verdict.summary.starts_with(said), "{}", verdict.summary);
        }
    }
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
            o.identity.read_back = Some(ReadBack { found: "ab".into(), deployed: "abcd".into() });
        }),
        (Cause::WrongImage, |o| {
            let printed = PrintedId { hex: "cd".into(), range: ByteRange::default() };
            o.identity = ImageIdentity {
                deployed: Some("ab".into()),
                announces: true,
                printed: Some(printed),
                ..ImageIdentity::default()
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
fn a_crash_on_another_console_is_told_with_its_name() {
    for (file, summary) in [
        ("consoles/1/uart0.raw", "fault: halted"),
        ("consoles/1/semihosting.raw", "on console semihosting: fault: halted"),
    ] {
        let mut seen = green();
        seen.output.file = "consoles/1/uart0.raw".into();
        let range = ByteRange { file: file.into(), text: "halted".into(), ..ByteRange::default() };
        seen.incidents =
            vec![Incident { kind: IncidentKind::Recognised(Cause::FaultBanner), range }];
        assert_eq!(judge(&seen).summary, summary);
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
fn suspicious_output_takes_a_pass_and_nothing_else() {
    let line = || Some(ByteRange { text: "panic: x".to_owned(), ..ByteRange::default() });
    let behind = Observation { suspicious: line(), ..green() };
    let among = Observation { alarm: line(), ..green() };
    for (seen, told) in [(behind, "behind the end"), (among, "before the end")] {
        let verdict = judge(&seen);
        assert_eq!(verdict.cause, Cause::SuspiciousOutput);
        assert!(verdict.summary.contains(told), "{}", verdict.summary);
        let report = TestReport { claimed_failures: Some(1), ..seen.report.clone() };
        assert_eq!(judge(&Observation { report, ..seen }).cause, Cause::SummaryFailed);
    }
}

#[test]
fn a_fault_behind_the_end_that_was_left_takes_a_pass_and_nothing_else() {
    let fault_behind = Some(ByteRange::default());
    let seen = Observation { fault_behind, ..green() };
    let verdict = judge(&seen);
    assert_eq!(verdict.cause, Cause::Unconfirmed);
    assert!(verdict.summary.contains("took a fault"), "{}", verdict.summary);
    let report = TestReport { claimed_failures: Some(1), ..seen.report.clone() };
    assert_eq!(judge(&Observation { report, ..seen }).cause, Cause::SummaryFailed);
}

#[test]
fn a_boot_that_begins_again_takes_a_pass_and_nothing_else() {
    let line = ByteRange { text: "app 1.2".to_owned(), ..ByteRange::default() };
    let by = |sign| Observation { begun_again: Some(sign), ..green() };
    let banner = judge(&by(BootSign::Banner(line.clone())));
    assert_eq!(banner.cause, Cause::SuspiciousOutput);
    assert!(banner.summary.contains("the banner of a boot: app 1.2"), "{}", banner.summary);
    let seen = by(BootSign::FirstLine(line));
    let verdict = judge(&seen);
    assert_eq!(verdict.cause, Cause::SuspiciousOutput);
    assert!(verdict.summary.contains("once more: app 1.2"), "{}", verdict.summary);
    let report = TestReport { claimed_failures: Some(1), ..seen.report.clone() };
    assert_eq!(judge(&Observation { report, ..seen }).cause, Cause::SummaryFailed);
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
        ..ImageIdentity::default()
    };
    assert_eq!(judge(&seen).cause, Cause::Passed);
    seen.identity.printed = Some(printed("abce"));
    assert_eq!(judge(&seen).cause, Cause::WrongImage);
}

#[test]
fn what_shows_the_image_is_told_and_nothing_where_nothing_does() {
    let printed = |hex: &str| Some(PrintedId { hex: hex.into(), range: ByteRange::default() });
    let read_back = |found: &str| Some(ReadBack { found: found.into(), deployed: "cd".into() });
    let plain = || ImageIdentity { deployed: Some("abcdef".into()), ..ImageIdentity::default() };
    for (identity, shown) in [
        (plain(), None),
        (ImageIdentity { announces: true, ..plain() }, None),
        (ImageIdentity { printed: printed("abcd"), ..plain() }, Some(ImageSeen::BuildId)),
        (ImageIdentity { printed: printed("cd"), ..plain() }, None),
        (ImageIdentity { read_back: read_back("cd"), ..plain() }, Some(ImageSeen::ReadBack)),
        (ImageIdentity { read_back: read_back("ce"), ..plain() }, None),
        (ImageIdentity { loaded: true, ..plain() }, Some(ImageSeen::Loaded)),
    ] {
        let mut seen = green();
        seen.identity = identity;
        assert_eq!(judge(&seen).image_seen, shown, "{:?}", seen.identity);
    }
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

#[test]
fn an_unknown_format_comes_with_the_line_most_like_a_result() {
    let text = "All good".to_owned();
    let range = ByteRange { file: "a.raw".to_owned(), start: 4, end: 12, text };
    for (until, advice) in [
        (Some("'^All good$'".to_owned()), "--until '^All good$'"),
        (None, "name the line of a pass: --until REGEX"),
    ] {
        let mut seen = green();
        seen.report = TestReport::default();
        seen.result_like = Some(ResultLike { range: range.clone(), until });
        let verdict = judge(&seen);
        assert_eq!(verdict.cause, Cause::NoResults);
        let summary = &verdict.summary;
        assert!(summary.contains("All good") && summary.contains(advice), "{summary}");
        assert_eq!((verdict.evidence[0].start, verdict.evidence[0].end), (4, 12));
    }
}

#[test]
fn a_report_without_an_end_says_what_its_end_is() {
    let mut seen = green();
    seen.report.format = Some(ResultFormat::Unity);
    seen.report.ended = false;
    seen.failure = Some(ActionFailure::new(Cause::Hang, "no end within 2s"));
    let verdict = judge(&seen);
    assert_eq!(verdict.cause, Cause::Hang);
    for words in ["no end within 2s", "format unity were read", "`OK` or `FAIL` alone"] {
        assert!(verdict.summary.contains(words), "{}", verdict.summary);
    }
}

#[test]
fn a_report_without_a_test_names_its_format() {
    let mut seen = green();
    seen.report.format = Some(ResultFormat::Ztest);
    (seen.report.cases, seen.report.planned) = (Vec::new(), None);
    let verdict = judge(&seen);
    assert_eq!(verdict.cause, Cause::NoTests);
    assert!(verdict.summary.contains("the ztest report ended"), "{}", verdict.summary);
}
