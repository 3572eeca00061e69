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
fn repeated_tests_are_cases_of_their_run() {
    let iteration =
        |n: u32, text: &str| format!("\nRepeating all tests (iteration {n}) . . .\n\n{text}");
    let red = "[==========] Running 1 test from 1 test suite.\n[ RUN      ] A.B\na.cc:1: Failure\n[  FAILED  ] A.B (0 ms)\n[==========] 1 test from 1 test suite ran. (0 ms total)\n[  PASSED  ] 0 tests.\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.B\n\n 1 FAILED TEST\n";
    let cut = &GTEST[..GTEST.find("[==========] 1 test").unwrap()];
    let run = |n: u32, text: &str| format!("Test run {n} of 2\n{text}");
    let verbose = "TEST(Led, on) - 0 ms\n\nOK (1 tests, 1 ran, 1 checks, 0 ignored, 0 filtered out, 0 ms)\n\n";
    let unity = |n: u32, text: &str| format!("Unity test run {n} of 2\n{text}");
    for (text, expected) in [
        (
            iteration(1, GTEST) + &iteration(2, GTEST) + &iteration(3, GTEST),
            "gtest +A::B +A::B_(iteration_2) +A::B_(iteration_3) planned=3 end",
        ),
        (
            iteration(1, GTEST) + &iteration(2, red),
            "gtest +A::B -A::B_(iteration_2) planned=2 claimed=1 end",
        ),
        (
            iteration(1, red) + &iteration(2, red),
            "gtest -A::B -A::B_(iteration_2) planned=2 claimed=2 end",
        ),
        (
            iteration(1, red) + &iteration(2, GTEST),
            "gtest -A::B +A::B_(iteration_2) planned=2 claimed=1 end",
        ),
        // Not whole: an iteration without an end, one that is lost, and a start over.
        (iteration(1, GTEST) + &iteration(2, ""), "gtest +A::B planned=1"),
        (
            iteration(1, cut) + &iteration(2, GTEST),
            "gtest +A::B +A::B_(iteration_2) planned=2 end | iteration 2 begins before the end of the last",
        ),
        (
            iteration(1, GTEST) + &iteration(3, GTEST),
            "gtest +A::B +A::B_(iteration_3) planned=2 end | iteration 3 follows iteration 1",
        ),
        (
            iteration(1, GTEST) + &iteration(1, GTEST),
            "gtest +A::B planned=1 end | results go on after the report ended | the report begins again | case A::B started again | case A::B reported twice",
        ),
        (
            run(1, CPPUTEST) + &run(2, CPPUTEST),
            "cpputest +case_1 +case_2 +case_3_(run_2) +case_4_(run_2) planned=4 claimed=0 end",
        ),
        (
            run(1, verbose) + &run(2, verbose),
            "cpputest +Led::on +Led::on_(run_2) planned=2 claimed=0 end",
        ),
        (
            run(1, "TEST(Led, on) - 0 ms\n") + &run(2, verbose),
            "cpputest +Led::on +Led::on_(run_2) planned=1 claimed=0 end | run 2 begins before the end of the last | 1 cases announced, 2 seen",
        ),
        (
            unity(1, FIXTURE) + &unity(2, FIXTURE),
            "unity +Ring::push +Ring::push_(run_2) planned=2 claimed=0 end",
        ),
        (
            unity(1, FIXTURE) + &unity(2, &FIXTURE.replace("PASS", "PASS\nTEST(Ring, pop) PASS")),
            "unity +Ring::push +Ring::push_(run_2) +Ring::pop_(run_2) planned=2 claimed=0 end | 2 cases announced, 3 seen",
        ),
        (
            unity(1, "TEST(Ring, push) PASS\n") + &unity(2, FIXTURE),
            "unity +Ring::push +Ring::push_(run_2) planned=1 claimed=0 end | run 2 begins before the end of the last | 1 cases announced, 2 seen",
        ),
    ] {
        assert_eq!(brief(&read(&text)), expected, "{text}");
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
