//! TeamCity's messages as CppUTest, Catch2 and pytest print them.

use super::{brief, could_be_green, read};

/// What `-oteamcity` prints. A test that is ignored is told from one that passes by a line of its own.
pub(super) const CPPUTEST: &str = "\
##teamcity[testSuiteStarted name='Led']
##teamcity[testStarted name='on']
##teamcity[testFinished name='on' duration='0']
##teamcity[testStarted name='dim']
##teamcity[testFinished name='dim' duration='0']
##teamcity[testSuiteFinished name='Led']
##teamcity[testSuiteStarted name='Ring']
##teamcity[testStarted name='push']
hello##teamcity[testFinished name='push' duration='3']
##teamcity[testSuiteFinished name='Ring']

OK (3 tests, 3 ran, 5 checks, 0 ignored, 0 filtered out, 3 ms)

";

const CPPUTEST_RED: &str = "\
##teamcity[testSuiteStarted name='Led']
##teamcity[testStarted name='on']
##teamcity[testFailed name='on' message='led_test.cpp:44' details='expected <1>|n|tbut was  <0>']
##teamcity[testFinished name='on' duration='0']
##teamcity[testSuiteFinished name='Led']

Errors (1 failures, 1 tests, 1 ran, 5 checks, 0 ignored, 0 filtered out, 3 ms)

";

const CATCH2: &str = "\
##teamcity[testSuiteStarted name='ring']
##teamcity[testStarted name='push']
##teamcity[testFinished name='push' duration='1']
##teamcity[testStarted name='pop']
##teamcity[testFailed name='pop' message='ring.cpp:12|n....|n  CHECK( a == b )']
##teamcity[testFailed name='pop' message='ring.cpp:13|n....|n  CHECK( a == c )']
##teamcity[testFinished name='pop' duration='1']
##teamcity[testSuiteFinished name='ring']
";

const PYTEST: &str = "\
============================= test session starts ==============================
platform linux -- Python 3.11.2, pytest-7.2.1, pluggy-1.0.0
collected 2 items
##teamcity[testCount timestamp='2024-01-01T00:00:00.000' count='2']

test_ring.py
##teamcity[testStarted timestamp='2024-01-01T00:00:00.000' captureStandardOutput='false' flowId='test_ring.test_push' name='test_ring.test_push']
.
##teamcity[testFinished timestamp='2024-01-01T00:00:00.000' duration='1' flowId='test_ring.test_push' name='test_ring.test_push']

##teamcity[testStarted timestamp='2024-01-01T00:00:00.000' flowId='test_ring.test_pop' name='test_ring.test_pop']
.
##teamcity[testFinished timestamp='2024-01-01T00:00:00.000' duration='1' flowId='test_ring.test_pop' name='test_ring.test_pop']
                                                           [100%]

============================== 2 passed in 0.02s ===============================
";

pub(super) const TABLE: &[(&str, &str, &str)] = &[
    (
        "teamcity of cpputest",
        CPPUTEST,
        "teamcity +Led::on +Led::dim +Ring::push planned=3 claimed=0 end",
    ),
    (
        "teamcity, ignored",
        "##teamcity[testSuiteStarted name='a']\n##teamcity[testStarted name='b']\n##teamcity[testIgnored name='b']\n##teamcity[testFinished name='b']\n##teamcity[testIgnored name='c' message='no |'DAC|'']\n##teamcity[testSuiteFinished name='a']\nOK (2 tests, 0 ran, 0 checks, 2 ignored, 0 filtered out, 3 ms)\n",
        "teamcity ~a::b ~a::c planned=2 claimed=0 end",
    ),
    ("teamcity of cpputest, failing", CPPUTEST_RED, "teamcity -Led::on planned=1 claimed=1 end"),
    (
        "teamcity, another number in the summary",
        "##teamcity[testSuiteStarted name='a']\n##teamcity[testStarted name='b']\n##teamcity[testFinished name='b']\n##teamcity[testSuiteFinished name='a']\nOK (2 tests, 2 ran, 5 checks, 0 ignored, 0 filtered out, 3 ms)\n",
        "teamcity +a::b planned=2 claimed=0 end | the summary counts 2 tests run, 1 were seen",
    ),
    (
        "teamcity, a summary that fails",
        "##teamcity[testSuiteStarted name='a']\n##teamcity[testStarted name='b']\n##teamcity[testFinished name='b']\n##teamcity[testSuiteFinished name='a']\nErrors (1 failures, 1 tests, 1 ran, 5 checks, 0 ignored, 0 filtered out, 3 ms)\n",
        "teamcity +a::b planned=1 claimed=1 end | the summary claims 1 failures, 0 were seen",
    ),
    ("teamcity of catch2", CATCH2, "teamcity +ring::push -ring::pop end"),
    (
        "teamcity, crashed in a test",
        "##teamcity[testSuiteStarted name='a']\n##teamcity[testStarted name='b']\n",
        "teamcity ?a::b",
    ),
    (
        "teamcity, a test without an end",
        "##teamcity[testSuiteStarted name='a']\n##teamcity[testStarted name='b']\n##teamcity[testSuiteFinished name='a']\n",
        "teamcity ?a::b",
    ),
    (
        "teamcity, a message that is broken by an interrupt",
        "##teamcity[testSuiteStarted name='a']\n##teamcity[testStarted name='b']\n##teamcity[testFai\n[irq]\nled name='b' message='x']\n##teamcity[testFinished name='b']\n##teamcity[testSuiteFinished name='a']\n",
        "teamcity +a::b end | an incomplete message of TeamCity at 71",
    ),
    (
        "teamcity, fewer tests than announced",
        "##teamcity[testCount count='2']\n##teamcity[testStarted name='b']\n##teamcity[testFinished name='b']\n",
        "teamcity +b planned=2",
    ),
    (
        "teamcity, a problem of the build",
        "##teamcity[testCount count='1']\n##teamcity[testStarted name='b']\n##teamcity[testFinished name='b']\n##teamcity[buildProblem description='no board']\n",
        "teamcity +b planned=1 claimed=1 end | the summary claims 1 failures, 0 were seen",
    ),
    (
        "teamcity, a test that did not start",
        "##teamcity[testCount count='1']\n##teamcity[testFinished name='b']\n",
        "teamcity planned=1 | test b is finished, but it did not start",
    ),
    ("teamcity, other messages", "##teamcity[progressMessage 'flashing']\n", "none"),
];

#[test]
fn a_framework_that_prints_both_reports_once() {
    let report = read(PYTEST);
    assert!(could_be_green(&report), "{}", brief(&report));
    assert_eq!(report.cases.len(), 2);
    // Another number, or one report behind the other: which one counts is not known.
    let fewer = PYTEST.replace("2 passed", "1 passed");
    let twice = format!("{PYTEST}{PYTEST}");
    for text in [fewer, twice, CPPUTEST.replace("OK (", "All good (") + "..\nOK (2 tests)\n"] {
        assert!(!could_be_green(&read(&text)), "{text}");
    }
}

#[test]
fn runs_of_cpputest_are_told_apart() {
    let one = "##teamcity[testSuiteStarted name='a']\n##teamcity[testStarted name='b']\n##teamcity[testFinished name='b']\n##teamcity[testSuiteFinished name='a']\n\nOK (1 tests, 1 ran, 5 checks, 0 ignored, 0 filtered out, 3 ms)\n\n";
    let first = format!("Test run 1 of 2\n{one}");
    assert!(!could_be_green(&read(&first)), "{}", brief(&read(&first)));
    let both = format!("{first}Test run 2 of 2\n{one}");
    assert_eq!(brief(&read(&both)), "teamcity +a::b +a::b_(run_2) planned=2 claimed=0 end");
}
