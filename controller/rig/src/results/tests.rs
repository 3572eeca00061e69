//! Reports of every format, good, bad and hostile.

use jig_model::pattern::Pattern;
use jig_model::plan::Markers;
use jig_model::result::{CaseStatus, ResultFormat, TestReport};
use proptest::prelude::*;

use super::{MarkerError, ResultEvent, ResultParser};

mod candidates;
mod contradictions;
mod cost;
mod frameworks;
mod further_runs;
mod teamcity;
mod torn;
mod transcripts;

use transcripts::{ALL_GREEN, TABLE};

fn read_chunks(chunks: &[&[u8]]) -> (Vec<ResultEvent>, TestReport) {
    let mut parser = ResultParser::new(None, None, 0).unwrap();
    let mut events = Vec::new();
    for chunk in chunks {
        parser.feed(chunk, &mut |event| events.push(event));
    }
    (events, parser.finish())
}

fn read(text: &str) -> TestReport {
    read_chunks(&[text.as_bytes()]).1
}

/// Writes a report in one line: format, cases, planned, claimed, `end`, remarks.
fn brief(report: &TestReport) -> String {
    let mut words = vec![report.format.map_or("none", ResultFormat::as_str).to_owned()];
    words.extend(report.cases.iter().map(|case| {
        let sign = match case.status {
            CaseStatus::Pass => '+',
            CaseStatus::Fail => '-',
            CaseStatus::Skip => '~',
            CaseStatus::Unfinished => '?',
        };
        format!("{sign}{}", case.name.replace(' ', "_"))
    }));
    words.extend(report.planned.map(|n| format!("planned={n}")));
    words.extend(report.claimed_failures.map(|n| format!("claimed={n}")));
    words.extend(report.ended.then(|| "end".to_owned()));
    words.extend(report.remarks.iter().map(|remark| format!("| {remark}")));
    words.join(" ")
}

/// What no judge may call a pass.
fn could_be_green(report: &TestReport) -> bool {
    let executed = report.cases.iter().filter(|c| c.status != CaseStatus::Unfinished).count();
    report.ended
        && report.remarks.is_empty()
        && report.claimed_failures.unwrap_or(0) == 0
        && executed > 0
        && executed == report.cases.len()
        && report.count(CaseStatus::Fail) == 0
        && report.planned.is_none_or(|planned| planned == executed as u64)
}

#[test]
fn transcripts_give_the_expected_reports() {
    let mut wrong = String::new();
    let frameworks = frameworks::TABLE.iter().chain(teamcity::TABLE);
    for (name, transcript, expected) in TABLE.iter().chain(frameworks) {
        let got = brief(&read(transcript));
        if got != *expected {
            wrong += &format!("{name}\n  expected {expected}\n  got      {got}\n");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn colours_line_ends_and_log_prefixes_change_nothing() {
    type Dress = fn(&str) -> String;
    let dressings: [(&str, Dress); 7] = [
        ("crlf", |l| format!("{l}\r\n")),
        ("cr cr lf", |l| format!("{l}\r\r\n")),
        ("cr", |l| format!("{l}\r")),
        ("coloured", |l| format!("\x1b[32m{l}\x1b[0m\x1b[K\n")),
        ("zephyr log", |l| format!("[00:00:01.234,000] <inf> app: {l}\r\n")),
        ("esp log", |l| format!("\x1b[0;32mI (1234) main: {l}\x1b[0m\r\n")),
        ("kernel log", |l| format!("[   12.345678] {l}\n")),
    ];
    for (name, transcript) in ALL_GREEN {
        let plain = brief(&read(transcript));
        for (how, dress) in dressings {
            let dressed: String = transcript.lines().map(dress).collect();
            assert_eq!(brief(&read(&dressed)), plain, "{name}, {how}");
        }
        let indented: String = transcript.lines().map(|l| format!("   {l}\n")).collect();
        if *name != "unity fixture" {
            assert_eq!(brief(&read(&indented)), plain, "{name}, indented");
        }
    }
}

#[test]
fn prose_is_no_result() {
    for line in [
        "we will PASS this on",
        "PASS",
        "PASSED",
        "OK",
        "ok",
        "FAIL",
        "ok then, let us go",
        "ok 3 apples",
        "test passed",
        "All tests passed!",
        "test result: ok",
        "test a::b ... ok",
        "PASS - test_x",
        "PASS - the salt in 3 minutes",
        "START - here.",
        "[  PASSED  ] 3 tests.",
        "[       OK ] A.B (0 ms)",
        "3 tests, 0 failures",
        "..........",
        "Erasing flash .....",
        "OK (3 tests) so far",
        "Test mode passed.",
        "net.rx (uart.c 40) overrun",
        "[SUCCESS]",
        "TEST SUCCEEDED",
        "ok  \tpkg\t0.1s",
        "1 passed in 0.1s",
        "Running suite(s) of tests",
        "66%: Checks are done",
        "TestRunner started",
        "see a.cpp:1: FAILED: really",
        "{{end;success}}",
        "{{name;value}}",
        "=== RUN ===",
        "=== settings in 3s ===",
        "Enter next test, or 'enter' to see menu",
        "3 Tests 0 Failures 0 Ignored, they say",
        "see main.c:12: PASS",
        "see main.c:12:test:PASS",
        "main.c:12:test:PASSED",
        "main.c:test:12:PASS",
        "12:30:05:PASS",
        "http://x.y:80:z:PASS",
        "PROJECT EXECUTION SUCCESSFUL, says the log",
        "running 3 tests now",
        "1..3 are the numbers",
        "TAP version 13 is what we speak",
        "# ok 1 - a",
        "[==========] Running 3 tests",
        "> a.c:1:t:PASS",
        "echo: ok 1 - a",
    ] {
        for end in ["\n", "\r\n", ""] {
            assert_eq!(brief(&read(&format!("boot\n{line}{end}"))), "none", "{line}");
        }
    }
}

#[test]
fn prose_between_results_changes_nothing() {
    const PROSE: &str = "we will PASS this on\nall ok\nnothing FAILED here: 3 Tests OK\n";
    for (name, transcript) in ALL_GREEN {
        let noisy: String = transcript.lines().map(|l| format!("{PROSE}{l}\n")).collect();
        let (mut a, mut b) = (read(transcript), read(&noisy));
        for case in a.cases.iter_mut().chain(&mut b.cases) {
            (case.start, case.end) = (0, 0);
            // The lines below a failed assertion are its message.
            case.message = None;
        }
        assert_eq!(a, b, "{name}");
    }
}

#[test]
fn the_whole_transcripts_could_be_green_and_their_heads_could_not() {
    for (name, transcript) in ALL_GREEN {
        assert!(could_be_green(&read(transcript)), "{name}: {}", brief(&read(transcript)));
        let end = (0..=transcript.len()).find(|&n| read(&transcript[..n]).ended).unwrap();
        for n in 0..end {
            assert!(!could_be_green(&read(&transcript[..n])), "{name} cut at {n}");
        }
    }
}

#[test]
fn a_deleted_case_line_is_noticed() {
    for (name, transcript) in ALL_GREEN {
        let report = read(transcript);
        for case in &report.cases {
            let (start, end) = (case.start as usize, case.end as usize);
            let line = &transcript[start..end];
            let without = format!("{}{}", &transcript[..start], &transcript[end..]);
            assert!(!could_be_green(&read(&without)), "{name} without {line:?}");
        }
    }
}

#[test]
fn a_second_report_never_looks_better() {
    for (name, transcript) in ALL_GREEN {
        let twice = format!("{transcript}{transcript}");
        assert!(!could_be_green(&read(&twice)), "{name}: {}", brief(&read(&twice)));
        // Several groups of Unity make one report.
        let groups = |other: &str| name.starts_with("unity") && other.starts_with("unity");
        for (other, second) in ALL_GREEN.iter().filter(|(other, _)| other != name && !groups(other))
        {
            let both = read(&format!("{transcript}{second}"));
            assert!(!could_be_green(&both), "{name} and {other}: {}", brief(&both));
        }
    }
}

#[test]
fn an_interrupted_line_is_no_result() {
    for (name, transcript) in ALL_GREEN {
        for case in &read(transcript).cases {
            let mut parser = ResultParser::new(None, None, 0).unwrap();
            // The result is all there, but the fault banner came before the line end.
            let (head, tail) = transcript.as_bytes().split_at(case.end as usize);
            parser.feed(head, &mut |_| {});
            parser.interrupt();
            parser.feed(b"*** HARD FAULT ***", &mut |_| {});
            parser.feed(tail, &mut |_| {});
            let report = parser.finish();
            assert!(!could_be_green(&report), "{name} at {}: {}", case.end, brief(&report));
            assert!(
                !report.cases.iter().any(|c| c.name == case.name && c.status == CaseStatus::Pass),
                "{name}: {}",
                case.name
            );
        }
    }
}

#[test]
fn offsets_point_at_the_deciding_line() {
    let text = "noise\r\n[00:00:01.000] a.c:1:t:PASS\r\nb";
    let mut parser = ResultParser::new(None, None, 1000).unwrap();
    parser.feed(text.as_bytes(), &mut |_| {});
    let report = parser.finish();
    let case = &report.cases[0];
    let line = &text[case.start as usize - 1000..case.end as usize - 1000];
    assert_eq!(line, "[00:00:01.000] a.c:1:t:PASS");
}

#[test]
fn messages_and_times_are_kept() {
    let case = |text: &str| {
        let case = read(text).cases.remove(0);
        (case.message.unwrap_or_default(), case.duration_ms)
    };
    let cases = [
        ("a.c:1:t:FAIL: Expected 1 Was 2\n", "Expected 1 Was 2", None),
        ("a.c:1:t:IGNORE\n", "", None),
        (
            "START - t\n    Assertion failed at main.c:3: t: (a == b is false)\n FAIL - t in 0.25 seconds\n",
            "Assertion failed at main.c:3: t: (a == b is false)",
            Some(250),
        ),
        (
            "[ RUN      ] A.b\na.cc:7: Failure\nExpected: 1\n[  FAILED  ] A.b (12 ms)\n",
            "a.cc:7: Failure\nExpected: 1",
            Some(12),
        ),
        ("1..1\nnot ok 1 - x\n  ---\n  message: 'too hot'\n  ...\n", "too hot", None),
        ("1..1\nok 1 - x # SKIP no sensor\n", "no sensor", None),
        ("running 1 test\ntest t ... ignored, slow\n", "slow", None),
        (
            "running 1 test\ntest t ... FAILED\n\nfailures:\n\n---- t stdout ----\npanicked at a.rs:1\n",
            "panicked at a.rs:1",
            None,
        ),
    ];
    for (text, message, time) in cases {
        assert_eq!(case(text), (message.to_owned(), time), "{text}");
    }
}

#[test]
fn unfinished_last_lines_count_only_where_they_are_sure() {
    for (name, transcript) in ALL_GREEN {
        assert!(read(transcript.trim_end()).ended, "{name}");
    }
    for open in
        ["1..2\nok 1 - a", "1..1\nok 1 - a # SK", "1..1\nok", "ok 1 - a\n1..", "1..12\nok 1"]
    {
        assert!(!read(open).ended, "{open}");
    }
}

fn markers() -> Markers {
    let pattern = |text| Pattern::new(text).unwrap();
    Markers {
        start: Some(pattern(r"^BEGIN (?<name>\w+)")),
        pass: pattern(r"^GOOD( (?<name>\w+))?"),
        fail: pattern(r"^BAD( (?<name>\w+))?(: (?<message>.*))?"),
        skip: Some(pattern(r"^LEFT OUT (?<name>\w+)")),
        planned: Some(pattern(r"^COUNT (?<count>\d+)")),
        end: pattern(r"^THE END$"),
    }
}

#[test]
fn markers_of_the_plan_are_read() {
    let markers = markers();
    for (text, expected) in [
        (
            "COUNT 3\nBEGIN a\nGOOD\nBAD b: hot\nLEFT OUT c\r\nTHE END\n",
            "markers +a -b ~c planned=3 end",
        ),
        ("BEGIN a\nTHE END", "markers ?a end"),
        ("GOOD\nGOOD\nTHE END\n", "markers +case_1 +case_2 end"),
        ("GOOD a\nBAD a\n", "markers -a | case a reported as pass and as fail"),
        (
            "GOOD a\na.c:1:t:PASS\n",
            "markers +a | the target also reports in format unity (1 result, without an end): name the format that counts in the plan",
        ),
        (
            "a.c:1:t:PASS\nBAD a\n",
            "markers -a | the target also reports in format unity (1 result, without an end): name the format that counts in the plan",
        ),
        ("not so GOOD a\nthe BAD\n", "none"),
        // Behind what a logger puts in front.
        (
            "[00:00:01.000,000] <inf> app: GOOD a\r\nI (12) app: BAD b: hot\r\n[    2.0] THE END\r\n",
            "markers +a -b end",
        ),
        ("GOOD a\n\x1b[31mE (12) app: BAD b\x1b[0m\nTHE END\n", "markers +a -b end"),
        ("GOOD a\nI (12) BAD: b\nTHE END\n", "markers +a -case_1 end"),
        ("GOOD a\n12:00:01 app[3]: x\n[E] BAD b\nTHE END\n", "markers +a -b end"),
        ("GOOD a\n<err> \u{e9}: x\n<err> app: BAD b\nTHE END\n", "markers +a -b end"),
        ("GOOD a\n<post>    \x1b[31mBAD b\x1b[0m\nTHE END\n", "markers +a -b end"),
        ("GOOD a\n\t BAD b\nTHE END\n", "markers +a -b end"),
        ("GOOD a\nmsh >BAD b\nTHE END\n", "markers +a -b end"),
        ("GOOD a\npost: BAD b\nTHE END\n", "markers +a -b end"),
        ("GOOD a\n - BAD b\nTHE END\n", "markers +a -b end"),
        ("GOOD a\nwhat it prints where it fails: it said: not BAD b\nTHE END\n", "markers +a end"),
        ("GOOD a\nE (12) app: not BAD b\nmodem BAD\nTHE END\n", "markers +a end"),
        // A row of the same form with another verdict; a log line has none.
        ("GOOD a\nROW b ERROR\nTHE END\n", "markers +a end"),
    ] {
        let mut parser = ResultParser::new(None, Some(&markers), 0).unwrap();
        parser.feed(text.as_bytes(), &mut |_| {});
        assert_eq!(brief(&parser.finish()), expected, "{text}");
    }
}

#[test]
fn rows_with_a_verdict_that_the_markers_do_not_know_are_unfinished() {
    let pattern = |text| Pattern::new(text).unwrap();
    let markers = Markers {
        start: None,
        pass: pattern(r"^(?P<name>\S+) +\[?PASS\]?"),
        fail: pattern(r"^(?P<name>\S+) +\[?FAIL\]?"),
        skip: None,
        planned: None,
        end: pattern("^Total "),
    };
    for (text, expected) in [
        ("ram   PASS\nflash ERROR\nTotal 2\n", "markers +ram ?flash end"),
        ("ram   [PASS]\nflash [TIMEOUT]\nTotal 2\n", "markers +ram ?flash end"),
        // One that was tried again.
        ("flash ERROR\nflash PASS\nTotal 1\n", "markers +flash end"),
        ("ram PASS\nram ERROR\nTotal 1\n", "markers +ram end"),
        // In small letters only what a log has rarely in such a place.
        ("ram PASS\nflash CRASHED\nTotal 2\n", "markers +ram ?flash end"),
        ("ram PASS\nflash crashed\nTotal 2\n", "markers +ram end"),
        ("ram PASS\nI2C bus ERROR\nan ERROR of it\nTotal 1\nlink ERROR\n", "markers +ram end"),
    ] {
        let mut parser = ResultParser::new(None, Some(&markers), 0).unwrap();
        parser.feed(text.as_bytes(), &mut |_| {});
        assert_eq!(brief(&parser.finish()), expected, "{text}");
    }
}

#[test]
fn a_pass_that_its_line_takes_back_is_none() {
    let pattern = |text| Pattern::new(text).unwrap();
    let markers = Markers {
        start: None,
        pass: pattern(r"^\[(?P<name>\w+)\] ok"),
        fail: pattern(r"^\[(?P<name>\w+)\] not ok"),
        skip: None,
        planned: None,
        end: pattern("^# end"),
    };
    let doubt = |row: &str| {
        format!("markers +a +b end | the line `{row}` of a pass says something else, too")
    };
    for (row, expected) in [
        ("[b] ok", "markers +a +b end".to_owned()),
        ("[b] ok (12 ms)", "markers +a +b end".to_owned()),
        ("[b] ok (errors: 0)", "markers +a +b end".to_owned()),
        ("[b] not ok", "markers +a -b end".to_owned()),
        ("[b]  not ok", "markers +a ?b end".to_owned()),
        ("[b] NOT OK", "markers +a ?b end".to_owned()),
        ("[b] CRASHED", "markers +a ?b end".to_owned()),
        ("[b] link ok", "markers +a end".to_owned()),
        ("[b] ok (errors: 2)", doubt("[b] ok (errors: 2)")),
        ("[b] ok but slow", doubt("[b] ok but slow")),
        ("[b] okay? no", doubt("[b] okay? no")),
    ] {
        let text = format!("[a] ok\n{row}\n# end\n");
        let mut parser = ResultParser::new(None, Some(&markers), 0).unwrap();
        parser.feed(text.as_bytes(), &mut |_| {});
        assert_eq!(brief(&parser.finish()), expected, "{row}");
    }
}

/// What the end marker's line says beside the end is no part of the report.
#[test]
fn the_line_with_the_end_marker_is_not_read() {
    let markers = markers();
    let mut parser = ResultParser::new(None, Some(&markers), 0).unwrap();
    parser.feed(b"GOOD a\nTHE END\nGOOD b\n", &mut |_| {});
    let (_, lines) = parser.finish_with_lines();
    assert_eq!([0, 7, 15].map(|start| lines.contains(start)), [true, false, true]);
}

#[test]
fn failures_counted_behind_the_end_marker_are_claimed() {
    for (text, green) in [
        ("GOOD a\nTHE END 1 failed\n", false),
        ("GOOD a\nTHE END 0 failed\n", true),
        ("GOOD a\nTHE END in 12 ms\n", true),
    ] {
        let markers = Markers { end: Pattern::new("^THE END").unwrap(), ..markers() };
        let mut parser = ResultParser::new(None, Some(&markers), 0).unwrap();
        parser.feed(text.as_bytes(), &mut |_| {});
        assert_eq!(could_be_green(&parser.finish()), green, "{text}");
    }
}

#[test]
fn markers_in_small_letters_know_other_verdicts_and_their_own_words_behind_the_end() {
    let pattern = |text| Pattern::new(text).unwrap();
    let markers = || Markers {
        start: None,
        pass: pattern(r"^(?P<name>\w+) +ok$"),
        fail: pattern(r"^(?P<name>\w+) +bad(?P<message>.*)$"),
        skip: None,
        planned: None,
        end: pattern("^end of tests"),
    };
    for (text, expected) in [
        ("a  ok\nb  crashed\nend of tests\n", "markers +a ?b end"),
        ("a  ok\nb  hung\nend of tests\n", "markers +a ?b end"),
        ("a  ok\nusb error\nspi timeout\nend of tests\n", "markers +a end"),
        ("a  ok\nthe task crashed\nend of tests\n", "markers +a end"),
        (
            "a  ok\nb  ok\nend of tests, 1 bad\n",
            "markers +a +b claimed=1 end | the summary claims 1 failures, 0 were seen",
        ),
        ("a  ok\nb  ok\nend of tests: 2 ok, 0 bad\n", "markers +a +b end"),
        ("a  ok\nend of tests (bad=0)\n", "markers +a end"),
    ] {
        let mut parser = ResultParser::new(None, Some(&markers()), 0).unwrap();
        parser.feed(text.as_bytes(), &mut |_| {});
        assert_eq!(brief(&parser.finish()), expected, "{text}");
    }
}

#[test]
fn marks_of_a_quiet_run_of_libtest_are_cases() {
    let summary = |passed, failed, ignored| {
        let word = if failed > 0 { "FAILED" } else { "ok" };
        format!(
            "\ntest result: {word}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; \
             0 filtered out; finished in 0.00s\n"
        )
    };
    for (text, green) in [
        (format!("running 2 tests\n..\n{}", summary(2, 0, 0)), true),
        (format!("running 4 tests\n..i.\n{}", summary(3, 0, 1)), true),
        (format!("running 4 tests\n..  2/4\n..\n{}", summary(4, 0, 0)), true),
        (
            format!(
                "running 1 test\n.\n{0}running 2 tests\n..\n{1}",
                summary(1, 0, 0),
                summary(2, 0, 0)
            ),
            true,
        ),
        (format!("running 2 tests\n.F\n{}", summary(1, 1, 0)), false),
        (format!("running 2 tests\n.F\n{}", summary(2, 0, 0)), false),
        (format!("running 3 tests\n..\n{}", summary(3, 0, 0)), false),
        (format!("running 2 tests\n...\n{}", summary(2, 0, 0)), false),
        (format!("running 2 tests\n{}", summary(2, 0, 0)), false),
        (format!("running 2 tests\n..hello\n{}", summary(2, 0, 0)), false),
    ] {
        let report = read(&text);
        assert_eq!(could_be_green(&report), green, "{text}: {}", brief(&report));
    }
}

#[test]
fn markers_read_tables_and_both_spellings_of_groups() {
    let pattern = |text| Pattern::new(text).unwrap();
    let markers = Markers {
        start: None,
        pass: pattern(r"^(?P<name>.+?)\s+\| PASS \|$"),
        fail: pattern(r"^(?P<name>.+?)\s+\| FAIL \|(?P<message>.*)$"),
        skip: Some(pattern(r"^(?<name>.+?)\s+\| SKIP \|$")),
        planned: Some(pattern(r"^(?P<count>\d+) cases$")),
        end: pattern(r"^Output: +\S+$"),
    };
    let text = "3 cases\nPush a       | PASS |\nPop          | FAIL | 1 != 2\nWrap | SKIP |\nOutput:  /tmp/output.xml\n";
    let mut parser = ResultParser::new(None, Some(&markers), 0).unwrap();
    parser.feed(text.as_bytes(), &mut |_| {});
    let report = parser.finish();
    assert_eq!(brief(&report), "markers +Push_a -Pop ~Wrap planned=3 end");
    assert_eq!(report.cases[1].message.as_deref(), Some("1 != 2"));
}

#[test]
fn the_format_a_plan_names_is_the_only_one() {
    let only = Some(ResultFormat::Tap);
    let mut parser = ResultParser::new(only, Some(&markers()), 0).unwrap();
    parser.feed(b"a.c:1:t:PASS\nGOOD a\n1..1\nok 1 - x\na.c:1:t:PASS\n", &mut |_| {});
    assert!(parser.ended());
    assert_eq!(brief(&parser.finish()), "tap +x planned=1 end");
    // Results that another report announces have to come.
    let rows = "a.c:1:t:PASS\n\n-----------------------\n1 Tests 0 Failures 0 Ignored \nOK\n";
    for (text, whole) in [
        (rows.to_owned(), true),
        (format!("1..1\nok 1 - x\n{rows}"), true),
        (format!("1..3\n{rows}"), true),
        (format!("1..2\nok 1 - x\n{rows}"), false),
        (format!("{rows}TAP version 13\n1..2\nok 1 - x\n"), false),
        (format!("{rows}[ RUN      ] Q.Push\n"), false),
    ] {
        let mut parser = ResultParser::new(Some(ResultFormat::Unity), None, 0).unwrap();
        parser.feed(text.as_bytes(), &mut |_| {});
        let report = parser.finish();
        assert_eq!(report.format, Some(ResultFormat::Unity), "{text}");
        assert_eq!(report.remarks.is_empty(), whole, "{text} {:?}", report.remarks);
    }
    let missing = ResultParser::new(Some(ResultFormat::Markers), None, 0);
    assert!(matches!(missing, Err(MarkerError::Missing)));
}

#[test]
fn huge_markers_are_refused() {
    let mut markers = markers();
    markers.start = Some(Pattern::new("((a{100}){100}){100}").unwrap());
    let refused = ResultParser::new(None, Some(&markers), 0);
    assert!(matches!(refused, Err(MarkerError::Expression { which: "start", .. })));
}

#[test]
fn overlong_lines_are_never_results() {
    let long = "x".repeat(5000);
    let report = read(&format!("1..2\nok 1 - {long}\nok 2 - b\n{long}\n"));
    assert_eq!(brief(&report), "tap +b planned=2 | overlong result line at 5 ignored");
    let name = "n".repeat(300);
    assert!(!could_be_green(&read(&format!("1..1\nok 1 - {name}\n"))));
}

#[test]
fn hostile_floods_stay_bounded() {
    let mut parser = ResultParser::new(None, None, 0).unwrap();
    let mut cases = 0_u32;
    parser.feed(b"TAP version 13\n", &mut |_| {});
    for n in 1..=150_000 {
        parser.feed(format!("ok {n} - a\n").as_bytes(), &mut |event| {
            cases += u32::from(matches!(event, ResultEvent::Case(_)));
        });
    }
    let report = parser.finish();
    assert_eq!((cases, report.cases.len()), (100_000, 100_000));
    assert_eq!(report.remarks, ["too many cases: the rest is not listed"]);

    let deep: String = (0..200).map(|n| format!("{}ok 1 - a\n", " ".repeat(n * 2))).collect();
    assert!(!read(&format!("TAP version 14\n{deep}")).remarks.is_empty());
}

/// Pieces of every grammar, so that random streams get past the first check.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let lines: Vec<&'static str> = TABLE
        .iter()
        .chain(frameworks::TABLE)
        .chain(teamcity::TABLE)
        .flat_map(|(_, text, _)| text.split_inclusive('\n'))
        .collect();
    prop_oneof![
        6 => prop::sample::select(lines).prop_map(|line| line.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => prop::sample::select(vec!["\r", "\n", "\x1b[", "\x1b]0;", "ok ", ":PASS", "# ", "    "])
            .prop_map(|text| text.as_bytes().to_vec()),
    ]
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(fragment(), 0..30).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn chunking_changes_nothing(bytes in stream(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.push(bytes.len());
        at.sort_unstable();
        let mut start = 0;
        let chunks: Vec<&[u8]> = at.iter().map(|&end| {
            let chunk = &bytes[start..end];
            start = end;
            chunk
        }).collect();
        let whole = read_chunks(&[&bytes]);
        prop_assert_eq!(&read_chunks(&chunks), &whole);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&read_chunks(&single), &whole);
    }

    #[test]
    fn cases_lie_inside_the_stream_in_order(bytes in stream()) {
        let report = read_chunks(&[&bytes]).1;
        for case in &report.cases {
            prop_assert!(case.start < case.end && case.end <= bytes.len() as u64);
        }
        prop_assert_eq!(report.format.is_none(), report == TestReport::default());
    }

    /// Losing any stretch, also unnoticed, leaves no green report with fewer cases.
    #[test]
    fn lost_bytes_never_hide_a_case(
        which in prop::sample::select(ALL_GREEN.to_vec()),
        from in any::<prop::sample::Index>(),
        len in 1_usize..200,
        noticed in any::<bool>(),
    ) {
        let (name, transcript) = which;
        let from = from.index(transcript.len());
        let to = (from + len).min(transcript.len());
        let mut parser = ResultParser::new(None, None, 0).unwrap();
        parser.feed(&transcript.as_bytes()[..from], &mut |_| {});
        if noticed {
            parser.interrupt();
        }
        parser.feed(&transcript.as_bytes()[to..], &mut |_| {});
        let report = parser.finish();
        let whole = read(transcript).cases.len();
        // A sub-test that vanishes as a whole leaves a point that looks like a plain case, and
        // neither Go nor TeamCity's messages announce a number of tests.
        let blind = !noticed && matches!(name, "tap nested" | "ktap" | "go" | "teamcity");
        prop_assert!(
            blind || !could_be_green(&report) || report.cases.len() == whole,
            "{name}: {}", brief(&report)
        );
    }

    /// A failure anywhere in the stream is never talked away by what follows.
    #[test]
    fn a_failure_stays(tail in stream()) {
        let mut bytes = b"a.c:1:t:FAIL: no\n".to_vec();
        bytes.extend(tail);
        let report = read_chunks(&[&bytes]).1;
        prop_assert!(report.count(CaseStatus::Fail) > 0 || report.claimed_failures > Some(0));
    }
}
