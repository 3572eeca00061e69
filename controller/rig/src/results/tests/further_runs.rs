//! Runs that are announced, or that begin behind a complete report.

use super::{brief, could_be_green, read};

const GTEST: &str = "[==========] Running 1 test from 1 test suite.\n[ RUN      ] A.B\n[       OK ] A.B (0 ms)\n[==========] 1 test from 1 test suite ran. (0 ms total)\n[  PASSED  ] 1 test.\n";
const CPPUTEST: &str = "..\nOK (2 tests, 2 ran, 5 checks, 0 ignored, 0 filtered out, 3 ms)\n\n";
const FIXTURE: &str = "TEST(Ring, push) PASS\n\n-----\n1 Tests 0 Failures 0 Ignored\nOK\n";
const CATCH2: &str = "Randomness seeded to: 1\nAll tests passed (5 assertions in 2 test cases)\n\n";
const EMBUNIT: &str = "..\nOK (2 tests)\n";

#[test]
fn a_run_that_is_announced_or_begins_has_an_end_of_its_own() {
    for (text, ended) in [
        (format!("Unity test run 1 of 1\n{FIXTURE}"), true),
        (format!("Unity test run 1 of 2\n{FIXTURE}"), false),
        (format!("Unity test run 1 of 2\n{FIXTURE}Unity test run 2 of 2\n"), false),
        (format!("{FIXTURE}Unity test run 1 of 1\n"), false),
        (format!("Test run 1 of 1\n{CPPUTEST}"), true),
        (format!("Test run 1 of 3\n{CPPUTEST}"), false),
        (format!("Test run 1 of 2\n{CPPUTEST}Test run 2 of 2\n."), false),
        (format!("{CPPUTEST}Test run 1 of 1\n"), false),
        (format!("Repeating all tests (iteration 1) . . .\n\n{GTEST}"), true),
        (format!("{GTEST}\nRepeating all tests (iteration 2) . . .\n\n"), false),
        (format!("{GTEST}[==========] Running 1 test from 1 test suite.\n"), false),
        (CATCH2.to_owned(), true),
        (format!("{CATCH2}Randomness seeded to: 2\n"), false),
    ] {
        let report = read(&text);
        assert_eq!(report.ended, ended, "{text}");
        assert_eq!(could_be_green(&report), ended, "{text}: {}", brief(&report));
    }
}

#[test]
fn marks_behind_the_end_begin_further_tests() {
    for (text, green) in [
        (EMBUNIT.to_owned(), true),
        (format!("{EMBUNIT}."), false),
        (format!("{EMBUNIT}bye."), true),
        (format!("{CPPUTEST}."), false),
    ] {
        let report = read(&text);
        assert_eq!(could_be_green(&report), green, "{text}: {}", brief(&report));
    }
}

#[test]
fn another_group_of_the_fixture_adds_to_the_report() {
    let other = FIXTURE.replace("push", "pop");
    let report = read(&format!("Unity test run 1 of 1\n{FIXTURE}Unity test run 1 of 1\n{other}"));
    assert!(could_be_green(&report), "{}", brief(&report));
    assert_eq!(report.planned, Some(2));
}

#[test]
fn points_of_a_second_report_are_cases_of_their_own() {
    for (text, expected) in [
        (
            "TAP version 13\n1..2\nok 1 - push\nok 2 - pop\nTAP version 13\n1..2\nok 1 - erase\nnot ok 2 - program\n",
            "tap +push +pop +erase -program planned=4 end | results go on after the report ended | the report begins again",
        ),
        (
            "TAP version 13\n1..2\nok 1 - push\nok 2 - pop\nTAP version 13\n1..1\nnot ok 1 - late\n",
            "tap +push +pop -late planned=3 end | results go on after the report ended | the report begins again",
        ),
        (
            "1..1\nok 1 - push\n1..1\nnot ok 1 - erase\n",
            "tap +push -erase planned=1 end | results go on after the report ended | the report begins again | 1 cases announced, 2 seen",
        ),
    ] {
        let report = brief(&read(text));
        assert!(report.starts_with(expected), "{text}{report}");
    }
}
