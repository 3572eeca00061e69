//! Several formats in one boot: lines that only resemble an opening, and real second reports.

use jig_model::result::{CaseStatus, ResultFormat, TestReport};
use proptest::prelude::*;

use super::transcripts::ALL_GREEN;
use super::{ResultEvent, ResultParser, brief, could_be_green, read, read_chunks, stream};

/// Log lines that resemble the opening of a report, with the family that they open.
const STRAYS: &[(&str, &str)] = &[
    ("1..5\n", "tap"),
    ("ok 1 - sensor found\n", "tap"),
    ("START - motor\n", "ztest"),
    ("Running TESTSUITE rail\n", "ztest"),
    ("running 2 tests\n", "libtest"),
    ("[ RUN      ] boot.stage2\n", "gtest"),
    ("[==========] Running 2 tests from 1 test suite.\n", "gtest"),
    ("TEST(Led, blinks)\n", "unity"),
];

/// Complete reports in which something failed.
const RED: &[(&str, &str)] = &[
    ("unity", "a.c:1:one:PASS\na.c:2:two:FAIL: no\n2 Tests 1 Failures 0 Ignored\nFAIL\n"),
    ("tap", "TAP version 13\n1..2\nok 1 - a\nnot ok 2 - b\n"),
    (
        "ztest",
        "Running TESTSUITE x\nSTART - a\n FAIL - a in 0.001 seconds\nTESTSUITE x failed.\nPROJECT EXECUTION FAILED\n",
    ),
    (
        "gtest",
        "[==========] Running 1 test from 1 test suite.\n[ RUN      ] A.B\n[  FAILED  ] A.B (0 ms)\n[==========] 1 test from 1 test suite ran. (0 ms total)\n[  PASSED  ] 0 tests.\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.B\n\n 1 FAILED TEST\n",
    ),
    (
        "libtest",
        "running 1 test\ntest a ... FAILED\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
    ),
];

fn family(name: &str) -> &str {
    let name = name.split(' ').next().unwrap();
    if name == "ktap" { "tap" } else { name }
}

fn failed(report: &TestReport) -> bool {
    report.count(CaseStatus::Fail) > 0 || report.claimed_failures > Some(0)
}

/// A failed result behind output of another thread or a prefix that is not known.
#[test]
fn failure_in_a_line_that_is_no_result_is_not_green() {
    for (name, head, lines, tail) in [
        (
            "unity",
            "a.c:1:one:PASS\n",
            &[
                "[I/TEST] a.c:2:two:FAIL: no\n",
                "adc is a.c:2:two:FAIL: no\n",
                "a.c:2: two:FAIL: no\n",
                "5:two:FAIL: no\n",
            ][..],
            "\n1 Tests 0 Failures 0 Ignored\nOK\n",
        ),
        (
            "tap",
            "TAP version 13\n1..2\nok 1 - a\n",
            &["[I/TEST] not ok 2 - b\n", "adc=1 not  ok 2 - b\n", "Not ok 2\n", "bail out!\n"],
            "ok 2 - b\n",
        ),
        (
            "ztest",
            "Running TESTSUITE x\nSTART - a\n PASS - a in 0.001 seconds\n",
            &["uart:~$  FAIL - b in 0.001 seconds\n", "ERROR: Test suite 'y' did not run.\n"],
            "TESTSUITE x succeeded\nPROJECT EXECUTION SUCCESSFUL\n",
        ),
    ] {
        assert!(could_be_green(&read(&format!("{head}{tail}"))), "{name}");
        for line in lines {
            let report = read(&format!("{head}{line}{tail}"));
            assert!(!could_be_green(&report), "{name}: {line:?}");
        }
    }
}

#[test]
fn stray_openings_in_front_change_nothing() {
    for (name, transcript) in ALL_GREEN {
        let plain = brief(&read(transcript));
        for (stray, opens) in STRAYS {
            if *opens != family(name) {
                let text = format!("{stray}{transcript}");
                assert_eq!(brief(&read(&text)), plain, "{stray:?} in front of {name}");
            }
        }
    }
}

#[test]
fn stray_openings_of_all_formats_hide_no_report() {
    for (name, transcript) in ALL_GREEN {
        let strays = STRAYS.iter().filter(|(_, opens)| *opens != family(name));
        let strays: String = strays.map(|(stray, _)| *stray).collect();
        let got = read(&format!("{strays}{transcript}"));
        assert_eq!(brief(&got).split(' ').next(), Some(name.split(' ').next().unwrap()), "{name}");
    }
}

#[test]
fn openings_behind_the_end_spoil_a_pass() {
    for (name, transcript) in ALL_GREEN {
        for (stray, opens) in STRAYS {
            let report = read(&format!("{transcript}{stray}"));
            // A suite's name or the name of a test alone says that something goes on.
            assert!(*opens == family(name) || !could_be_green(&report), "{name} then {stray:?}");
        }
    }
}

#[test]
fn agreeing_verdict_of_another_format_spoils_nothing() {
    let unity = "a.c:1:one:PASS\n1 Tests 0 Failures 0 Ignored\nOK\n";
    let report = read(&format!("{unity}PROJECT EXECUTION SUCCESSFUL\n"));
    assert_eq!(brief(&report), "unity +one planned=1 claimed=0 end");
    let report = read(&format!("{unity}PROJECT EXECUTION FAILED\n"));
    assert!(failed(&report));
}

#[test]
fn red_report_is_never_hidden_by_a_green_one() {
    for (_, green) in ALL_GREEN {
        for (_, red) in RED {
            for both in [format!("{green}{red}"), format!("{red}{green}")] {
                assert!(failed(&read(&both)), "{both}");
            }
        }
    }
}

#[test]
fn unfinished_second_report_spoils_a_pass() {
    for (name, green) in ALL_GREEN {
        for (other, second) in ALL_GREEN.iter().filter(|(o, _)| family(o) != family(name)) {
            // Half of it: at least one result was read, and there is no end.
            let case = &read(second).cases[0];
            let half = &second[..case.end as usize + 1];
            for both in [format!("{green}{half}"), format!("{half}{green}")] {
                let report = read(&both);
                let weak = half.matches('\n').count() == 1 && family(other) == "tap";
                assert!(weak || !could_be_green(&report), "{name} and {other}: {both}");
            }
        }
    }
}

#[test]
fn events_follow_the_report_that_counts() {
    let text = "[ RUN      ] boot.stage2\na.c:1:one:PASS\n1 Tests 0 Failures 0 Ignored\nOK\n";
    let (events, report) = read_chunks(&[text.as_bytes()]);
    let formats: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            ResultEvent::Format(format) => Some(*format),
            _ => None,
        })
        .collect();
    assert_eq!(formats, [ResultFormat::Gtest, ResultFormat::Unity]);
    let cases: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            ResultEvent::Case(case) => Some(case.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(cases, report.cases);
    assert_eq!(events.iter().filter(|e| **e == ResultEvent::Ended).count(), 1);
}

#[test]
fn end_of_a_report_is_told_although_a_red_line_leads() {
    let mut parser = ResultParser::new(None, None, 0).unwrap();
    let mut ends = 0;
    let text = "not ok 1 - late\na.c:1:one:PASS\n1 Tests 0 Failures 0 Ignored\nOK\n";
    parser.feed(text.as_bytes(), &mut |event| ends += u32::from(event == ResultEvent::Ended));
    assert_eq!((parser.ended(), ends), (true, 1));
    assert!(failed(&parser.finish()));
}

fn lines(bytes: Vec<u8>) -> Vec<u8> {
    [bytes, b"\n".to_vec()].concat()
}

proptest! {
    /// Nothing in front of a red report, or behind it, makes it green.
    #[test]
    fn red_stays_red(head in stream(), tail in stream(), which in prop::sample::select(RED.to_vec())) {
        let bytes = [lines(head), which.1.as_bytes().to_vec(), tail].concat();
        let report = read_chunks(&[&bytes]).1;
        prop_assert!(!could_be_green(&report), "{}", brief(&report));
    }

    /// Whenever the parser says that the report ended, it told so once or more.
    #[test]
    fn every_end_is_told(bytes in stream()) {
        let mut parser = ResultParser::new(None, None, 0).unwrap();
        let mut told = false;
        let mut ended = false;
        for byte in bytes {
            parser.feed(&[byte], &mut |event| told |= event == ResultEvent::Ended);
            if ended && !parser.ended() {
                told = false;
            }
            ended = parser.ended();
            prop_assert!(!ended || told);
        }
    }
}
