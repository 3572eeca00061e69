//! Transcripts in the shape the real frameworks print, and the reports they must give.

use super::frameworks;

/// Complete reports of which everything passed or was skipped.
pub(super) const ALL_GREEN: &[(&str, &str)] = &[
    ("unity", UNITY),
    ("unity fixture", UNITY_FIXTURE),
    ("ztest", ZTEST),
    ("tap", TAP),
    ("tap nested", TAP_NESTED),
    ("ktap", KTAP),
    ("gtest", GTEST),
    ("libtest", LIBTEST),
    ("cpputest", frameworks::CPPUTEST),
    ("cpputest verbose", frameworks::CPPUTEST_VERBOSE),
    ("cmocka", frameworks::CMOCKA),
    ("embunit", frameworks::EMBUNIT),
    ("check", frameworks::CHECK),
    ("doctest", frameworks::DOCTEST),
    ("catch2", frameworks::CATCH2),
    ("greentea", frameworks::GREENTEA),
    ("aunit", frameworks::AUNIT),
    ("nuttx", frameworks::NUTTX),
    ("pytest", frameworks::PYTEST),
    ("pytest quiet", frameworks::PYTEST_QUIET),
    ("go", frameworks::GO),
    ("teamcity", super::teamcity::CPPUTEST),
    ("defmt-test", frameworks::DEFMT_TEST),
    ("defmt-test decoded", frameworks::DEFMT_TEST_DECODED),
];

const UNITY: &str = "\
Starting up
test_gpio.c:12:test_pin_high:PASS
test_gpio.c:19:test_pin_low:PASS
test_gpio.c:30:test_pin_float:IGNORE: no pull resistor

-----------------------
3 Tests 0 Failures 1 Ignored
OK
";

const UNITY_FIXTURE: &str = "\
Unity test run 1 of 1
TEST(Led, starts_off) PASS
TEST(Led, turns_on)hello
 PASS
IGNORE_TEST(Led, blinks)

-----------------------
3 Tests 0 Failures 1 Ignored
OK
";

const ZTEST: &str = "\
*** Booting Zephyr OS build v3.7.0 ***
Running TESTSUITE framework_tests
===================================================================
START - test_assert_mem_equal
 PASS - test_assert_mem_equal in 0.001 seconds
===================================================================
START - test_skipped
 SKIP - test_skipped in 0.001 seconds
===================================================================
TESTSUITE framework_tests succeeded
Running TESTSUITE other
===================================================================
START - test_assert_mem_equal
 PASS - test_assert_mem_equal in 0.010 seconds
===================================================================
TESTSUITE other succeeded

------ TESTSUITE SUMMARY START ------

SUITE PASS - 100.00% [framework_tests]: pass = 1, fail = 0, skip = 1, total = 2 duration = 0.002 seconds
 - PASS - [framework_tests.test_assert_mem_equal] duration = 0.001 seconds
 - SKIP - [framework_tests.test_skipped] duration = 0.001 seconds

SUITE PASS - 100.00% [other]: pass = 1, fail = 0, skip = 0, total = 1 duration = 0.010 seconds
 - PASS - [other.test_assert_mem_equal] duration = 0.010 seconds

------ TESTSUITE SUMMARY END ------

===================================================================
RunID: 0324e7b2f1c0
PROJECT EXECUTION SUCCESSFUL
";

const TAP: &str = "\
TAP version 13
1..4
ok 1 - boots
ok 2 reads the clock
  ---
  message: fine
  ok 9 - inside yaml
  ...
ok 3 - sensor # SKIP not fitted
not ok 4 - drift # TODO needs trim
";

const TAP_NESTED: &str = "\
TAP version 14
# Subtest: adc
    # Subtest: low range
        ok 1 - zero
        ok 2 - one
        1..2
    ok 1 - low range
    ok 2 - reference
    1..2
ok 1 - adc
ok 2 - dac
1..2
";

const KTAP: &str = "\
KTAP version 1
1..2
    KTAP version 1
    # Subtest: example
    1..2
    # example_simple_test: initializing
    ok 1 example_simple_test
        KTAP version 1
        # Subtest: example_params_test
        ok 1 example value 2
        ok 2 example value 0 # SKIP unsupported param value
        1..2
    # example_params_test: pass:1 fail:0 skip:1 total:2
    ok 2 example_params_test
# example: pass:2 fail:0 skip:0 total:2
# Totals: pass:2 fail:0 skip:1 total:3
ok 1 example
  KTAP version 1
  1..1
  ok 1 leaf
ok 2 two_spaces
";

const GTEST: &str = "\
Running main() from gtest_main.cc
[==========] Running 3 tests from 2 test suites.
[----------] Global test environment set-up.
[----------] 2 tests from Math
[ RUN      ] Math.Adds
[       OK ] Math.Adds (0 ms)
[ RUN      ] Math.Divides
math.cc:9: Skipped
no divider
[  SKIPPED ] Math.Divides (1 ms)
[----------] 2 tests from Math (1 ms total)

[----------] 1 test from All/Ranges
[ RUN      ] All/Ranges.Fits/0
[       OK ] All/Ranges.Fits/0 (3 ms)
[----------] 1 test from All/Ranges (3 ms total)

[----------] Global test environment tear-down
[==========] 3 tests from 2 test suites ran. (5 ms total)
[  PASSED  ] 2 tests.
";

const LIBTEST: &str = "\
running 4 tests
test math::adds ... ok
test math::panics - should panic ... ok
test math::noisy ... hello
ok
test math::slow ... ignored, takes an hour

test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s
";

/// Name, transcript, and the report in the short form of the tests.
pub(super) const TABLE: &[(&str, &str, &str)] = &[
    ("unity", UNITY, "unity +test_pin_high +test_pin_low ~test_pin_float planned=3 claimed=0 end"),
    (
        "unity, failing",
        "a.c:1:one:PASS\n../src/a.c:2:two:FAIL: Expected 1 Was 2. Values: a:b\nC:\\fw\\a.c:9:th ree:PASS\n---\n3 Tests 1 Failures 0 Ignored \nFAIL\n",
        "unity +one -two +th_ree planned=3 claimed=1 end",
    ),
    (
        "unity, blanks and colons in the path",
        "/builds/jo doe/fw (new)/test a.c:12:one:PASS\nC:\\My Work\\a.c:9:two:PASS\nmy tests/a.c:3:three:PASS\n/srv/a:b/c.c:4:four:FAIL: x:y\n./main/test_b.cpp:8:five:PASS\n",
        "unity +one +two +three -four +five",
    ),
    (
        "unity, names of esp-idf",
        "/idf/nvs.cpp:33:nvs: can read and write [nvs]:PASS\n./main/a.c:4:rate is 10:1:FAIL: Expected 1 Was 2\n./main/a.c:9:reports :FAIL on crc error:PASS\n./main/a.c:12:skips 12:30:IGNORE: no clock\n",
        "unity +nvs:_can_read_and_write_[nvs] -rate_is_10:1 +reports_:FAIL_on_crc_error ~skips_12:30",
    ),
    (
        "unity, parameters",
        "a.c:7:test_sum(1, \"a:b\"):PASS\n1 Tests 0 Failures 0 Ignored\nOK\n",
        "unity +test_sum(1,_\"a:b\") planned=1 claimed=0 end",
    ),
    ("unity, none", "0 Tests 0 Failures 0 Ignored\nOK\n", "unity planned=0 claimed=0 end"),
    (
        "unity, truncated",
        "a.c:1:one:PASS\n1 Tests 0 Failures 0 Ignored\n",
        "unity +one planned=1 claimed=0",
    ),
    ("unity, cut in a result", "a.c:1:one:PASS\na.c:2:two:PASS", "unity +one"),
    (
        "unity, last line without end",
        "a.c:1:one:PASS\n1 Tests 0 Failures 0 Ignored\nOK",
        "unity +one planned=1 claimed=0 end",
    ),
    (
        "unity, more failures claimed",
        "a.c:1:one:PASS\n1 Tests 1 Failures 0 Ignored\nFAIL\n",
        "unity +one planned=1 claimed=1 end | the summary claims 1 failures, 0 were seen",
    ),
    (
        "unity, fewer tests claimed",
        "a.c:1:one:PASS\na.c:2:two:PASS\n1 Tests 0 Failures 0 Ignored\nOK\n",
        "unity +one +two planned=1 claimed=0 end | 1 cases announced, 2 seen",
    ),
    (
        "unity, verdict against summary",
        "a.c:1:one:PASS\n1 Tests 0 Failures 0 Ignored\nFAIL\n",
        "unity +one planned=1 claimed=1 end | the summary counts no failure, but the verdict is FAIL | the summary claims 1 failures, 0 were seen",
    ),
    (
        "unity, two outcomes",
        "a.c:1:one:FAIL: x\na.c:1:one:PASS\n",
        "unity -one | case one reported as fail and as pass",
    ),
    ("unity, with times", "a.c:1:one:PASS (5 ms)\n", "unity +one"),
    (
        "unity fixture",
        UNITY_FIXTURE,
        "unity +Led::starts_off +Led::turns_on ~Led::blinks planned=3 claimed=0 end",
    ),
    (
        "unity fixture, failing",
        "TEST(Led, on)led.c:4:TEST(Led, on):FAIL: x\nTEST(Led, off)\nled.c:9:TEST(Led, off):FAIL: y\n..!led.c:4:TEST(Led, dim):FAIL: z\nTEST(Led, hangs)\n",
        "unity -Led::on -Led::off -Led::dim ?Led::hangs",
    ),
    (
        "ztest",
        ZTEST,
        "ztest +framework_tests::test_assert_mem_equal ~framework_tests::test_skipped +other::test_assert_mem_equal planned=3 claimed=0 end",
    ),
    (
        "ztest, failing",
        "Running TESTSUITE s\nSTART - test_a\n FAIL - test_a in 0.001 seconds\nTESTSUITE s failed.\nSUITE FAIL -   0.00% [s]: pass = 0, fail = 1, skip = 0, total = 1 duration = 0.001 seconds\n - FAIL - [s.test_a] duration = 0.001 seconds\nPROJECT EXECUTION FAILED\n",
        "ztest -s::test_a planned=1 claimed=1 end",
    ),
    (
        "ztest, old",
        "Running test suite s\nSTART - test_a\n PASS - test_a\nSTART - test_b\n PASS - test_b in 0.1 seconds\nTest suite s succeeded\nPROJECT EXECUTION SUCCESSFUL\n",
        "ztest +s::test_a +s::test_b end",
    ),
    ("ztest, none", "PROJECT EXECUTION SUCCESSFUL\n", "ztest end"),
    (
        "ztest, suite that was not run",
        "Running TESTSUITE x\nSTART - test_a\n PASS - test_a in 0.001 seconds\nTESTSUITE x succeeded\nSUITE PASS - 100.00% [x]: pass = 1, fail = 0, skip = 0, total = 1 duration = 0.001 seconds\n - PASS - [x.test_a] duration = 0.001 seconds\nSUITE SKIP -   0.00% [y]: pass = 0, fail = 0, skip = 1, total = 1 duration = 0.000 seconds\n - SKIP - [y.test_c] duration = 0.000 seconds\nPROJECT EXECUTION SUCCESSFUL\n",
        "ztest +x::test_a ~y::test_c planned=2 claimed=0 end",
    ),
    (
        "ztest, case that only the summary passes",
        "Running TESTSUITE x\nSTART - test_a\n PASS - test_a in 0.001 seconds\n - PASS - [y.test_c] duration = 0.000 seconds\nPROJECT EXECUTION SUCCESSFUL\n",
        "ztest +x::test_a end | case y::test_c is only in the summary | suite x began and did not end",
    ),
    (
        "ztest, log line that resembles a start",
        "START - motor\nRunning TESTSUITE x\nSTART - test_a\n PASS - test_a in 0.001 seconds\nTESTSUITE x succeeded\nPROJECT EXECUTION SUCCESSFUL\n",
        "ztest +x::test_a end",
    ),
    ("ztest, hanging", "Running TESTSUITE s\nSTART - test_a\n", "ztest ?s::test_a"),
    (
        "ztest, failed without a failing case",
        "START - test_a\n PASS - test_a in 0.001 seconds\nPROJECT EXECUTION FAILED\n",
        "ztest +test_a claimed=1 end | the summary claims 1 failures, 0 were seen",
    ),
    (
        "ztest, summary against result",
        "Running TESTSUITE s\nSTART - test_a\n PASS - test_a in 0.001 seconds\n - FAIL - [s.test_a] duration = 0.001 seconds\nPROJECT EXECUTION SUCCESSFUL\n",
        "ztest -s::test_a end | case s::test_a is pass, but the summary says fail | suite s began and did not end",
    ),
    ("tap", TAP, "tap +boots +reads_the_clock ~sensor ~drift planned=4 end"),
    ("tap, failing", "1..2\nok 1 - a\nnot ok 2 - b\n", "tap +a -b planned=2 end"),
    ("tap, plan last", "ok 1 - a\nnot ok 2 - b\n1..2\n", "tap +a -b planned=2 end"),
    (
        "tap, none",
        "TAP version 13\n1..0 # SKIP no hardware\n",
        "tap planned=0 end | all tests are skipped: no hardware",
    ),
    (
        "tap, none and no head",
        "1..0 # skip no hardware\n",
        "tap planned=0 end | all tests are skipped: no hardware",
    ),
    ("tap, bare points", "boot\nok\nnot ok\nok\n1..3\n", "tap +1 -2 +3 planned=3 end"),
    ("tap, bare points, plan without a line end", "ok\nok\n1..2", "tap +1 +2 planned=2 end"),
    ("tap, bare points without a plan", "ok\nok\n", "none"),
    ("tap, bare words in front of a report", "ok\nok\n1..1\nok 1 - a\n", "tap +a planned=1 end"),
    ("tap, bare words as many as the plan", "ok\n1..1\nok 1 - a\n", "tap +a planned=1 end"),
    ("tap, bare words and a head", "ok\nTAP version 13\n1..1\nok 1 - a\n", "tap +a planned=1 end"),
    ("tap, names of digits", "1..2\nok 1 - 100\nok 2 200\n", "tap +100 +200 planned=2 end"),
    (
        "tap, names of digits behind a dash",
        "TAP version 13\nok - 100\nok - 2\n1..2\n",
        "tap +100 +2 planned=2 end",
    ),
    (
        "tap, names of digits alone",
        "TAP version 13\n1..2\nok 100\nok 200\n",
        "tap +100 +200 planned=2 end",
    ),
    ("tap, truncated", "1..3\nok 1 - a\nok 2 - b\nok 2", "tap +a +b planned=3"),
    ("tap, last line without end", "1..2\nok 1 - a\nok 2 - b", "tap +a +b planned=2 end"),
    ("tap, directive not complete", "1..2\nok 1 - a\nok 2 - b # TO", "tap +a planned=2"),
    ("tap, failure without line end", "1..2\nok 1 - a\nnot ok 2 - b", "tap +a -b planned=2 end"),
    ("tap, plan without line end", "ok 1 - a\nok 2 - b\n1..2", "tap +a +b planned=2 end"),
    ("tap, other plan without line end", "ok 1 - a\nok 2 - b\n1..1", "tap +a +b"),
    ("tap, not ok and skip", "1..1\nnot ok 1 - a # SKIP\n", "tap ~a planned=1 end"),
    ("tap, bare points", "1..3\nok\nnot ok\nok\n", "tap +1 -2 +3 planned=3 end"),
    (
        "tap, points without number and dash",
        "TAP version 13\nok boots\nok reads the clock # SKIP none\nnot ok drift\n1..3\n",
        "tap +boots ~reads_the_clock -drift planned=3 end",
    ),
    ("tap, dashes without number", "1..2\nok - a\nok - b\n", "tap +a +b planned=2 end"),
    ("tap, dashes and plan last", "ok - a\nok - b\n1..2\n", "tap +a +b planned=2 end"),
    ("tap, dashes in a log", "ok - sensor found\nok - flash found\n", "none"),
    ("tap, failing dash in a log", "not ok - flash\n", "tap -flash"),
    ("tap, dashes and another plan", "ok - x\n1..2\nok 1 a\nok 2 b\n", "tap +a +b planned=2 end"),
    ("tap, plan last without dash", "ok 1 a\nok 2 b\n1..2\n", "tap +a +b planned=2 end"),
    ("tap, one number is prose", "ok 1 apple\n", "none"),
    (
        "tap, word of a modem",
        "TAP version 13\n1..2\nok 1 - modem answers\nok\nok then\n",
        "tap +modem_answers planned=2",
    ),
    (
        "tap, prose in front of the points",
        "TAP version 13\n1..2\nok then\nok 1 - a\nok 2 - b\n",
        "tap +a +b planned=2 end",
    ),
    (
        "tap, log lines that resemble a point and a plan",
        "ok 1 - sensor found\nTAP version 13\n1..2\nok 1 - a\nok 2 - b\n",
        "tap +a +b planned=2 end",
    ),
    ("tap, stray point then plan", "ok 1 - x\n1..2\nok 1 a\nok 2 b\n", "tap +a +b planned=2 end"),
    ("tap, stray plan", "1..5\nTAP version 13\n1..1\nok 1 - a\n", "tap +a planned=1 end"),
    ("tap, two plans", "1..5\n1..1\nok 1 - a\n", "tap +a planned=1 end"),
    (
        "tap, same plan twice",
        "1..1\n1..1\nok 1 - a\n",
        "tap +a planned=1 end | the report begins again",
    ),
    (
        "tap, stray failure is kept",
        "not ok 1 - x\nTAP version 13\n1..1\nok 1 - a\n",
        "tap -x +a planned=1 end | the report begins again | 1 cases announced, 2 seen",
    ),
    (
        "cmocka's tap",
        "TAP version 13\n1..3\nok 1 - adds\nnot ok 2 # SKIP divides\nok 3 - halves\n# ok - math\n",
        "tap +adds ~2 +halves planned=3 end",
    ),
    (
        "cmocka's tap, group fixture failed",
        "1..1\nok 1 - adds\n# not ok - math\n",
        "tap +adds planned=1 end | the comment at 17 claims a failure that no line shows",
    ),
    ("tap, escaped hash", "1..1\nok 1 - a \\# SKIP\n", "tap +a_\\#_SKIP planned=1 end"),
    (
        "tap, bail out",
        "1..2\nok 1 - a\nok 2 - b\nBail out! too hot\n",
        "tap +a +b planned=2 claimed=1 end | the target bailed out: too hot | the summary claims 1 failures, 0 were seen",
    ),
    (
        "tap, same number twice",
        "1..2\nok 1 - a\nok 1 - b\n",
        "tap +a planned=2 end | case b reported twice",
    ),
    (
        "tap, beyond the plan",
        "1..1\nok 1 - a\nok 2 - b\n",
        "tap +a +b planned=1 end | point 2 is beyond its plan | results go on after the report ended | 1 cases announced, 2 seen",
    ),
    (
        "tap nested",
        TAP_NESTED,
        "tap +adc::low_range::zero +adc::low_range::one +adc::reference +dac planned=4 end",
    ),
    (
        "tap nested, parent fails alone",
        "1..1\n    1..1\n    ok 1 - a\nnot ok 1 - p\n",
        "tap +p::a -p planned=2 end",
    ),
    (
        "tap nested, parent hides a failure",
        "1..1\n    1..1\n    not ok 1 - a\nok 1 - p\n",
        "tap -p::a planned=1 end | sub-test p is ok, but a case in it failed",
    ),
    (
        "tap nested, short sub-test",
        "1..1\n    1..2\n    ok 1 - a\nok 1 - p\n",
        "tap +p::a planned=2 end | sub-test p plans 2 points, 1 seen",
    ),
    (
        "tap nested, cut",
        "1..1\n    1..1\n    ok 1 - a\n",
        "tap +a planned=2 | sub-test 1. has no result of its own",
    ),
    (
        "ktap",
        KTAP,
        "ktap +example::example_simple_test +example::example_params_test::example_value_2 ~example::example_params_test::example_value_0 +two_spaces::leaf planned=4 claimed=0 end",
    ),
    (
        "ktap below a tap head",
        "TAP version 14\nKTAP version 1\n1..1\nok 1 a\n",
        "ktap +a planned=1 end",
    ),
    (
        "ktap, totals against points",
        "KTAP version 1\n1..1\nok 1 a\n# Totals: pass:0 fail:1 xfail:0 xpass:0 skip:0 error:0\n",
        "ktap +a planned=1 claimed=1 end | the summary counts 0 passes, 1 were seen | the summary claims 1 failures, 0 were seen",
    ),
    (
        "ktap, totals with another number of passes",
        "KTAP version 1\n1..1\nok 1 a\n# Totals: pass:0 fail:0 xfail:0 xpass:0 skip:1 error:0\n",
        "ktap +a planned=1 claimed=0 end | the summary counts 0 passes, 1 were seen | the summary counts 1 skipped, 0 were seen",
    ),
    (
        "ktap, inner totals with a failure that no line shows",
        "KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: list\n    1..1\n    ok 1 add\n    # list: pass:0 fail:1 skip:0 total:1\nok 1 list\n",
        "ktap +list::add planned=1 end | totals claim 1 failures that no line shows | the summary counts 0 passes, 1 were seen",
    ),
    (
        "ktap, parameters without a plan",
        "KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: bits\n    1..1\n        KTAP version 1\n        # Subtest: set\n        ok 1 low\n        ok 2 high\n    # set: pass:2 fail:0 skip:0 total:2\n    ok 1 set\n# Totals: pass:2 fail:0 skip:0 total:2\nok 1 bits\n",
        "ktap +bits::set::low +bits::set::high planned=2 claimed=0 end",
    ),
    (
        "tap, a rule between reports opens no block",
        "TAP version 13\n1..2\nok 1 - a\nok 2 - b\n---\nnot ok 3 - c\n",
        "tap +a +b -c planned=2 end | point 3 is beyond its plan | results go on after the report ended | 2 cases announced, 3 seen",
    ),
    (
        "tap, a rule between points",
        "TAP version 13\n1..2\nok 1 - a\n---\nok 2 - b\n",
        "tap +a +b planned=2 end",
    ),
    (
        "tap, failures that cannot be read",
        "TAP version 13\n1..2\nok 1 - a\nnot ok 2: timer drift\nok 2 - b\n",
        "tap +a +b planned=2 end | the line at 29 resembles a failure that cannot be read",
    ),
    (
        "tap, a number that is too large",
        "TAP version 13\n1..2\nok 1 - a\nnot ok 99999999999999999999 - b\nok 2 - c\n",
        "tap +a +c planned=2 end | the line at 29 resembles a failure that cannot be read",
    ),
    (
        "tap, an unfinished control string",
        "TAP version 13\n1..2\nok 1 - a\n\u{1b}]0;title not ok 2 - b\nok 2 - b\n",
        "tap +a +b planned=2 end | an unfinished control string hides text at 29",
    ),
    (
        "gtest, a suite's set-up fails",
        "[==========] Running 1 test from 1 test suite.\n[----------] 1 test from Flash\nflash_test.cc:12: Failure\nFailed\n[ RUN      ] Flash.Erase\n[       OK ] Flash.Erase (0 ms)\n[==========] 1 test from 1 test suite ran. (0 ms total)\n[  PASSED  ] 1 test.\n",
        "gtest +Flash::Erase planned=1 end | case Flash::Erase is pass, but an assertion failed: flash_test.cc:12: Failure",
    ),
    (
        "unity, another number of ignored tests",
        "a.c:1:one:PASS\n\n-----------------------\n1 Tests 0 Failures 1 Ignored \nOK\n",
        "unity +one planned=1 claimed=0 end | the summary counts 1 ignored, 0 were seen",
    ),
    (
        "ktap, directives",
        "KTAP version 1\n1..3\nnot ok 1 a # TIMEOUT 45 seconds\nnot ok 2 b # XFAIL known\nok 3 c # SKIP\n",
        "ktap -a ~b ~c planned=3 end",
    ),
    (
        "gtest, without times",
        "[==========] Running 3 tests from 1 test suite.\n[ RUN      ] A.B\n[       OK ] A.B\n[ RUN      ] A.C\na.cc:3: Failure\n[  FAILED  ] A.C, where GetParam() = 4\n[ RUN      ] A.D\na.cc:9: Skipped\n[  SKIPPED ] A.D\n[==========] 3 tests from 1 test suite ran.\n[  PASSED  ] 1 test.\n[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.D\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.C, where GetParam() = 4\n\n 1 FAILED TEST\n",
        "gtest +A::B -A::C ~A::D planned=3 claimed=1 end",
    ),
    (
        "gtest, log line that resembles a start",
        "[ RUN      ] boot.stage2\n[==========] Running 1 test from 1 test suite.\n[ RUN      ] A.B\n[       OK ] A.B\n[==========] 1 test from 1 test suite ran.\n[  PASSED  ] 1 test.\n",
        "gtest +A::B planned=1 end",
    ),
    (
        "utest.h",
        "[==========] Running 2 test cases.\n[ RUN      ] math.adds\n[       OK ] math.adds (6310ns)\n[ RUN      ] math.divides\n[       OK ] math.divides (12500000ns)\n[==========] 2 test cases ran.\n[  PASSED  ] 2 tests.\n",
        "gtest +math::adds +math::divides planned=2 end",
    ),
    (
        "utest.h, failing",
        "[==========] Running 2 test cases.\n[ RUN      ] math.adds\n[       OK ] math.adds (631ns)\n[ RUN      ] math.divides\na.c:7: Failure\n  Expected : 1\n    Actual : 0\n[  FAILED  ] math.divides (700ns)\n[==========] 2 test cases ran.\n[  PASSED  ] 1 tests.\n[  FAILED  ] 1 tests, listed below:\n[  FAILED  ] math.divides\n",
        "gtest +math::adds -math::divides planned=2 claimed=1 end",
    ),
    (
        "pw_unit_test",
        "[==========] Running all tests.\n[ RUN      ] A.B\n[       OK ] A.B\n[ RUN      ] A.C\n[  SKIPPED ] A.C\n[==========] Done running all tests.\n[  PASSED  ] 1 test(s).\n[  SKIPPED ] 1 test(s).\n",
        "gtest +A::B ~A::C end",
    ),
    (
        "pw_unit_test, failing",
        "[==========] Running all tests.\n[ RUN      ] A.B\n[  FAILED  ] A.B\n[==========] Done running all tests.\n[  PASSED  ] 0 test(s).\n[  FAILED  ] 1 test(s).\n",
        "gtest -A::B claimed=1 end",
    ),
    ("gtest", GTEST, "gtest +Math::Adds ~Math::Divides +All/Ranges::Fits/0 planned=3 end"),
    (
        "gtest, failing",
        "[==========] Running 2 tests from 1 test suite.\n[ RUN      ] A.B\na.cc:3: Failure\n[  FAILED  ] A.B, where GetParam() = (1) (0 ms)\n[ RUN      ] A.C\n[       OK ] A.C (0 ms)\n[==========] 2 tests from 1 test suite ran. (0 ms total)\n[  PASSED  ] 1 test.\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.B, where GetParam() = (1)\n\n 1 FAILED TEST\n  YOU HAVE 1 DISABLED TEST\n",
        "gtest -A::B +A::C planned=2 claimed=1 end",
    ),
    (
        "gtest, brief and failing",
        "a.cc:3: Failure\nValue of: x\n[  FAILED  ] A.B (0 ms)\n[==========] 3 tests from 1 test suite ran. (1 ms total)\n[  PASSED  ] 2 tests.\n",
        "gtest -A::B planned=3 end | the summary counts 2 passes, 0 were seen",
    ),
    (
        "gtest, none",
        "[==========] Running 0 tests from 0 test suites.\n[==========] 0 tests from 0 test suites ran. (0 ms total)\n[  PASSED  ] 0 tests.\n",
        "gtest planned=0 end",
    ),
    (
        "gtest, crashed",
        "[==========] Running 2 tests from 1 test case.\n[ RUN      ] A.B\n[       OK ] A.B (0 ms)\n[ RUN      ] A.C\n",
        "gtest +A::B ?A::C planned=2",
    ),
    (
        "gtest, summary against results",
        "[==========] Running 1 test from 1 test suite.\n[ RUN      ] A.B\n[       OK ] A.B (0 ms)\n[==========] 1 test from 1 test suite ran.\n[  PASSED  ] 0 tests.\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.B\n 1 FAILED TEST\n",
        "gtest -A::B planned=1 claimed=1 end | the summary counts 0 passes, 1 were seen | case A::B is pass, but the summary says fail",
    ),
    (
        "libtest",
        LIBTEST,
        "libtest +math::adds +math::panics +math::noisy ~math::slow planned=4 claimed=0 end",
    ),
    (
        "libtest, failing",
        "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\npanicked\n\nfailures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        "libtest +a -b planned=2 claimed=1 end",
    ),
    (
        "libtest, none",
        "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
        "libtest planned=0 claimed=0 end",
    ),
    (
        "libtest, failure in a later binary",
        "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n   Doc-tests ring\n\nrunning 1 test\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\nboom\n\nfailures:\n    a\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n",
        "libtest +a -a planned=2 claimed=1 end",
    ),
    (
        "libtest, failure in an earlier binary",
        "running 1 test\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\nboom\n\nfailures:\n    a\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\nrunning 1 test\ntest b ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n",
        "libtest -a +b planned=2 claimed=1 end",
    ),
    (
        "libtest, panics that are wanted",
        "running 3 tests\ntest a - should panic ... ok\ntest b - should panic ... thread 'b' panicked at src/lib.rs:5:9:\nboom\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\nok\ntest c - should panic ... FAILED\n\nfailures:\n\n---- c stdout ----\nnote: test did not panic as expected\n\nfailures:\n    c\n\ntest result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out",
        "libtest +a +b -c planned=3 claimed=1 end",
    ),
    ("libtest, hanging", "running 2 tests\ntest a ... ok\ntest b ... ", "libtest +a planned=2"),
    (
        "libtest, test that hangs",
        "running 2 tests\ntest a ... ok\ntest b ...\n",
        "libtest +a ?b planned=2",
    ),
    (
        "libtest, summary against results",
        "running 1 test\ntest a ... ok\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        "libtest +a planned=1 claimed=1 end | the summary counts 0 passes, 1 were seen | the summary claims 1 failures, 0 were seen",
    ),
    (
        "two formats",
        "a.c:1:one:PASS\nTAP version 13\nnot ok 1 - a\n1 Tests 0 Failures 0 Ignored\nOK\n",
        "tap -a | the target also reports in format unity (1 result): name the format that counts in the plan",
    ),
];
