//! JSON, JUnit, TAP, the summary and the exit code always say the same.

use jig_model::result::{CaseStatus, TestCase, TestReport};
use jig_model::{Cause, Verdict, VerdictKind};
use proptest::prelude::*;
use quick_junit::{NonSuccessKind, Report, TestCaseStatus};

use super::*;

fn case(name: &str, status: CaseStatus, message: Option<&str>) -> TestCase {
    TestCase {
        name: name.to_owned(),
        status,
        message: message.map(str::to_owned),
        duration_ms: Some(12),
        start: 0,
        end: 9,
    }
}

/// Every subset of the four statuses, so also none.
fn test_reports() -> Vec<TestReport> {
    let statuses = [CaseStatus::Pass, CaseStatus::Fail, CaseStatus::Skip, CaseStatus::Unfinished];
    (0..16_usize)
        .map(|set| {
            let chosen = statuses.iter().enumerate().filter(|(bit, _)| set >> bit & 1 == 1);
            let cases = chosen.map(|(n, &status)| case(&format!("suite::c{n}"), status, None));
            TestReport { cases: cases.collect(), ..TestReport::default() }
        })
        .collect()
}

/// What a reader of the XML concludes from the elements alone.
fn colour_of_junit(xml: &str) -> (VerdictKindGuess, Report) {
    let report = Report::deserialize_from_str(xml).unwrap();
    let (mut failures, mut errors, mut flaky) = (0, 0, 0);
    for case in report.test_suites.iter().flat_map(|suite| &suite.test_cases) {
        match &case.status {
            TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure, .. } => failures += 1,
            TestCaseStatus::NonSuccess { kind: NonSuccessKind::Error, .. } => errors += 1,
            TestCaseStatus::Success { flaky_runs } => flaky += usize::from(!flaky_runs.is_empty()),
            TestCaseStatus::Skipped { .. } => {}
        }
    }
    assert_eq!((report.failures, report.errors), (failures, errors));
    let guess = match (failures, errors, flaky) {
        (0, 0, 0) => VerdictKindGuess::Green,
        (0, 0, _) => VerdictKindGuess::Flaky,
        (_, 0, 0) => VerdictKindGuess::Target,
        (0, _, 0) => VerdictKindGuess::NotProven,
        mixed => panic!("one run cannot be all of {mixed:?}"),
    };
    (guess, report)
}

#[derive(Debug, PartialEq, Eq)]
enum VerdictKindGuess {
    Green,
    Target,
    Flaky,
    NotProven,
}

fn guess_of(kind: VerdictKind) -> VerdictKindGuess {
    match kind {
        VerdictKind::Pass => VerdictKindGuess::Green,
        VerdictKind::Fail => VerdictKindGuess::Target,
        VerdictKind::Flaky => VerdictKindGuess::Flaky,
        VerdictKind::EnvError | VerdictKind::Inconclusive | VerdictKind::Cancelled => {
            VerdictKindGuess::NotProven
        }
    }
}

fn property<'a>(report: &'a Report, name: &str) -> &'a str {
    let mut all = report.test_suites.iter().flat_map(|suite| &suite.properties);
    all.find(|property| property.name.as_str() == name).unwrap().value.as_str()
}

/// Renders everything, parses it back and holds it against each other.
fn agree(report: &RunReport) {
    let xml = junit(report).unwrap();
    let (guess, parsed) = colour_of_junit(&xml);
    let document = VerdictDocument::parse(&json(report).unwrap()).unwrap();
    let code = report.exit_code();

    assert_eq!(document.exit_code, code);
    assert_eq!(jig_model::exit::of_verdict(document.verdict.kind), code);
    assert_eq!(document.verdict, *report.verdict());
    assert_eq!(document.fault.is_none(), code == 0);
    assert_eq!(guess, guess_of(document.verdict.kind), "{xml}");
    assert_eq!(property(&parsed, "jig.verdict"), document.verdict.kind.as_str());
    assert_eq!(property(&parsed, "jig.cause"), document.verdict.cause.as_str());
    assert_eq!(property(&parsed, "jig.exit_code"), code.to_string());

    let tap = tap(report);
    let results: Vec<&str> =
        tap.lines().filter(|l| l.starts_with("ok ") || l.starts_with("not ok ")).collect();
    assert!(tap.lines().nth(1).unwrap() == format!("1..{}", results.len()), "{tap}");
    let all_ok = results.iter().all(|line| line.starts_with("ok "));
    assert_eq!(all_ok, code == 0, "{tap}");
    let bails = tap.lines().any(|line| line.starts_with("Bail out!"));
    assert_eq!(bails, document.verdict.kind == VerdictKind::EnvError, "{tap}");
    for line in tap.lines() {
        let known = ["TAP version 14", "1..", "# ", "ok ", "not ok ", "  ", "Bail out!"];
        assert!(known.iter().any(|start| line.starts_with(start)), "{line:?}");
    }

    let summary = summary(report);
    let bad = ["**failed**", "**error**", "**flaky**"];
    assert_eq!(bad.iter().any(|word| summary.contains(word)), code != 0, "{summary}");
    assert_eq!(annotations(report).is_empty(), code == 0);
}

#[test]
fn all_forms_agree_for_every_cause_and_every_mix_of_cases() {
    for &cause in Cause::ALL {
        for tests in test_reports() {
            let verdict = Verdict { tests, ..Verdict::of(cause, "what was seen") };
            let report = RunReport::new("plan", verdict.clone()).with_attempt(AttemptReport {
                attempt: 1,
                verdict: verdict.clone(),
                replaced: false,
                duration_ms: 5,
            });
            agree(&report);
            let settled = report.verdict().kind;
            let contradicts = verdict.kind == VerdictKind::Pass
                && verdict
                    .tests
                    .cases
                    .iter()
                    .any(|c| matches!(c.status, CaseStatus::Fail | CaseStatus::Unfinished));
            assert_eq!(settled == verdict.kind, !contradicts, "{cause}");
        }
    }
}

#[test]
fn a_bad_run_without_a_bad_case_is_shown_by_its_plan() {
    let mut verdict = Verdict::of(Cause::EmulatorKilled, "killed by signal 9 after 2 s");
    verdict.tests.cases.push(case("a", CaseStatus::Pass, None));
    let rows = RunReport::new("boot-plan", verdict).rows();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1].name, "boot-plan");
    assert_eq!(rows[1].outcome, RowOutcome::Error);
    let message = rows[1].message.as_deref();
    assert_eq!(message, Some("emulator_killed: killed by signal 9 after 2 s"));
}

#[test]
fn each_status_is_shown_as_tabled() {
    use RowOutcome::{Error, Failure, Flaky, Pass, Skip};
    let table = [
        (Cause::TestFailed, Failure),
        (Cause::Hang, Failure),
        (Cause::Flaky, Flaky),
        (Cause::EmulatorKilled, Error),
        (Cause::ReportIncomplete, Error),
        (Cause::Cancelled, Error),
    ];
    for (cause, bad) in table {
        let statuses =
            [CaseStatus::Pass, CaseStatus::Skip, CaseStatus::Fail, CaseStatus::Unfinished];
        let cases = statuses.iter().map(|&status| case("c", status, Some("own words"))).collect();
        let tests = TestReport { cases, ..TestReport::default() };
        let rows = RunReport::new("plan", Verdict { tests, ..Verdict::of(cause, "s") }).rows();
        let seen: Vec<RowOutcome> = rows.iter().map(|row| row.outcome).collect();
        assert_eq!(seen, [Pass, Skip, bad, bad], "{cause}");
        let told = |row: &ReportRow| row.message.clone().unwrap();
        assert!(told(&rows[2]).ends_with("own words"), "{cause}");
        assert!(told(&rows[3]).contains("never ended"), "{cause}");
        assert!(rows.iter().all(|row| !row.whole_plan));
    }
}

#[test]
fn a_fault_beside_a_failed_case_is_told_in_every_form() {
    let tests = TestReport {
        cases: vec![case("c", CaseStatus::Fail, Some("own words"))],
        ..TestReport::default()
    };
    let words = "the processor locked up; HardFault in uart_tx (uart.c:41)";
    let report = RunReport::new("plan", Verdict { tests, ..Verdict::of(Cause::Lockup, words) });
    for text in [junit(&report).unwrap(), json(&report).unwrap(), tap(&report), summary(&report)] {
        // Markdown escapes the rest.
        assert!(text.contains("HardFault in uart"), "{text}");
    }
    let rows = report.rows();
    assert_eq!(rows[0].message.as_deref(), Some(&*format!("own words\nthe run: lockup: {words}")));
    let (_, parsed) = colour_of_junit(&junit(&report).unwrap());
    let status = &parsed.test_suites[0].test_cases[0].status;
    let TestCaseStatus::NonSuccess { description, .. } = status else { panic!("{status:?}") };
    assert!(description.as_ref().unwrap().as_str().contains(words));
}

#[test]
fn a_flaky_run_shows_cases_of_all_counted_attempts() {
    let attempt = |n, cause: Cause, cases: Vec<TestCase>, replaced| AttemptReport {
        attempt: n,
        verdict: Verdict {
            tests: TestReport { cases, ..TestReport::default() },
            ..Verdict::of(cause, "s")
        },
        replaced,
        duration_ms: 1,
    };
    let attempts = [
        attempt(1, Cause::TestFailed, vec![case("a", CaseStatus::Fail, Some("boom"))], false),
        attempt(2, Cause::DeployFailed, vec![case("z", CaseStatus::Fail, None)], true),
        attempt(3, Cause::Passed, vec![case("a", CaseStatus::Pass, None)], false),
        attempt(4, Cause::TestFailed, vec![case("b", CaseStatus::Fail, None)], false),
    ];
    let counted: Vec<Verdict> =
        attempts.iter().filter(|a| !a.replaced).map(|a| a.verdict.clone()).collect();
    let report = RunReport::new("plan", combine(&counted));
    let report = attempts.into_iter().fold(report, RunReport::with_attempt);
    agree(&report);
    let rows: Vec<_> = report.rows().into_iter().map(|row| (row.name, row.outcome)).collect();
    assert_eq!(rows, [("a".into(), RowOutcome::Flaky), ("b".into(), RowOutcome::Flaky)]);
    assert!(junit(&report).unwrap().contains("<flakyFailure message=\"boom\""));
}

#[test]
fn text_forms_stay_as_they_are() {
    let mut verdict = Verdict::of(Cause::TestFailed, "1 of 3 failed: m::b");
    verdict.tests.cases = vec![
        case("m::a", CaseStatus::Pass, None),
        case("m::b # TODO", CaseStatus::Fail, Some("a.c:7: expected 1\n]]> got \"2\"")),
        case("m::c", CaseStatus::Skip, Some("no radio")),
    ];
    let report = RunReport::new("smoke", verdict).with_property("image.sha256", "00ff");
    assert_eq!(
        tap(&report),
        "TAP version 14\n1..3\n# fail: test_failed: 1 of 3 failed: m::b\nok 1 - m::a\n\
         not ok 2 - m::b \\# TODO\n  ---\n  severity: fail\n  cause: test_failed\n  \
         message: \"a.c:7: expected 1\\n]]> got \\\"2\\\"\"\n  ...\nok 3 - m::c # SKIP no radio\n"
    );
    assert_eq!(
        annotations(&report),
        "::error title=m%3A%3Ab # TODO (fail)::a.c:7: expected 1%0A]]> got \"2\"\n"
    );
    let xml = junit(&report).unwrap();
    assert!(xml.contains("<property name=\"image.sha256\" value=\"00ff\"/>"), "{xml}");
    assert!(xml.contains("<skipped message=\"no radio\"/>"), "{xml}");
    assert!(xml.contains("type=\"test_failed\""), "{xml}");
    assert!(!xml.contains("]]>"), "{xml}");
}

#[test]
fn a_megabyte_is_cut_with_a_note() {
    let mut verdict = Verdict::of(Cause::TestFailed, "x");
    verdict.tests.cases.push(case("a", CaseStatus::Fail, Some(&"é".repeat(500_000))));
    let report = RunReport::new("plan", verdict).with_console_tail(&"y".repeat(1 << 20));
    agree(&report);
    for text in [junit(&report).unwrap(), json(&report).unwrap(), tap(&report)] {
        assert!(text.len() < 300_000, "{}", text.len());
        assert!(text.contains("[cut: 65536 of 1000000 bytes shown]"));
    }
    assert!(junit(&report).unwrap().contains("[cut: last 65536 of 1048576 bytes shown]"));
    assert!(summary(&report).len() < 2000);
}

/// Text as hostile as it gets, more often than chance would make it.
fn hostile() -> impl Strategy<Value = String> {
    let spice = prop::sample::select(vec![
        "]]>",
        "<![CDATA[",
        "&amp;",
        "&#0;",
        "<!--",
        "\u{0}",
        "\u{1b}[31m",
        "\u{1b}]0;",
        "\r\n",
        "\n",
        "Bail out!",
        "not ok 1",
        "  ...\n",
        "# SKIP",
        "::error::",
        "|",
        "\u{ffff}",
        "\u{85}",
        "%0A",
        "\u{2028}",
        "\u{202e}",
        "\"",
        "'",
        "\t",
        " ",
    ]);
    let part = prop_oneof![spice.prop_map(str::to_owned), any::<String>()];
    prop::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn hostile_text_changes_no_reading(
        cause in prop::sample::select(Cause::ALL),
        suite in hostile(),
        texts in prop::collection::vec((hostile(), hostile(), 0..4_usize), 0..5),
        summary in hostile(),
        console in hostile(),
    ) {
        let statuses =
            [CaseStatus::Pass, CaseStatus::Fail, CaseStatus::Skip, CaseStatus::Unfinished];
        let cases = texts.iter().map(|(name, text, n)| case(name, statuses[*n], Some(text)));
        let tests = TestReport { cases: cases.collect(), ..TestReport::default() };
        let verdict = Verdict { tests, ..Verdict::of(cause, summary) };
        let report = RunReport::new(&suite, verdict)
            .with_property(&suite, &console)
            .with_console_tail(&console);
        agree(&report);
        let (_, parsed) = colour_of_junit(&junit(&report).unwrap());
        let names: Vec<String> = parsed.test_suites[0]
            .test_cases
            .iter()
            .map(|case| case.name.as_str().to_owned())
            .collect();
        let expected: Vec<String> = report.rows().into_iter().map(|row| row.name).collect();
        prop_assert_eq!(names, expected);
    }
}
