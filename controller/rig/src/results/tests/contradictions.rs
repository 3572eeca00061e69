//! Reports that contradict themselves, and those that only seem to.

use jig_model::result::ResultFormat;

use super::{ResultParser, brief, could_be_green, read};

/// What a program prints, each line as its framework prints it, that must not be a pass: a failing
/// assertion above a pass, a count that the lines contradict, a part without an end.
const DOUBTFUL: &[(&str, &str)] = &[
    (
        "gtest, failing assertion",
        "[==========] Running 1 test from 1 test suite.\n[ RUN      ] A.B\na.cc:3: Failure\nExpected: 1\n[       OK ] A.B (0 ms)\n[==========] 1 test from 1 test suite ran. (0 ms total)\n[  PASSED  ] 1 test.\n",
    ),
    (
        "gtest, failing assertion of a compiler's form",
        "[==========] Running 1 test from 1 test suite.\n[ RUN      ] A.B\na.cc(3): error: Expected: 1\n[       OK ] A.B (0 ms)\n[==========] 1 test from 1 test suite ran. (0 ms total)\n[  PASSED  ] 1 test.\n",
    ),
    (
        "gtest, tear-down of all tests",
        "[==========] Running 1 test from 1 test suite.\n[ RUN      ] A.B\n[       OK ] A.B (0 ms)\nenv.cc:3: Failure\nFailed\n[==========] 1 test from 1 test suite ran. (0 ms total)\n[  PASSED  ] 1 test.\n",
    ),
    (
        "gtest, another number of skips",
        "[==========] Running 1 test from 1 test suite.\n[ RUN      ] A.B\n[       OK ] A.B (0 ms)\n[==========] 1 test from 1 test suite ran. (0 ms total)\n[  PASSED  ] 1 test.\n[  SKIPPED ] 1 test, listed below:\n",
    ),
    (
        "cmocka, failing assertion",
        "[==========] Running 1 test(s).\n[ RUN      ] a\n[  ERROR   ] --- 1 != 2\n[   LINE   ] --- t.c:9: error: Failure!\n[       OK ] a\n[==========] 1 test(s) run.\n[  PASSED  ] 1 test(s).\n",
    ),
    (
        "cmocka, another number of runs",
        "[==========] Running 1 test(s).\n[ RUN      ] a\n[       OK ] a\n[==========] 2 test(s) run.\n[  PASSED  ] 1 test(s).\n",
    ),
    (
        "cmocka, fewer runs than cases",
        "[==========] x: Running 1 test(s).\n[ RUN      ] a\n[       OK ] a\n[==========] x: 0 test(s) run.\n[  PASSED  ] 1 test(s).\n",
    ),
    (
        "cmocka, a failure in the list",
        "[==========] Running 1 test(s).\n[ RUN      ] a\n[       OK ] a\n[==========] 1 test(s) run.\n[  PASSED  ] 1 test(s).\n[  FAILED  ] 1 test(s), listed below:\n",
    ),
    (
        "ztest, failing assertion",
        "Running TESTSUITE x\nSTART - t\n    Assertion failed at main.c:3: t: (a == b is false)\n PASS - t in 0.001 seconds\nTESTSUITE x succeeded\nPROJECT EXECUTION SUCCESSFUL\n",
    ),
    (
        "ztest, failing expectation",
        "Running TESTSUITE x\nSTART - t\n    Expectation failed at main.c:3: t: (a == b is false)\n PASS - t in 0.001 seconds\nTESTSUITE x succeeded\nPROJECT EXECUTION SUCCESSFUL\n",
    ),
    (
        "ztest, failing assertion of the test's function and of another one",
        "Running TESTSUITE x\nSTART - t\n    Assertion failed at main.c:3: check: (a is false)\n    Assertion failed at main.c:9: x_t: (b is false)\n PASS - t in 0.001 seconds\nTESTSUITE x succeeded\nPROJECT EXECUTION SUCCESSFUL\n",
    ),
    (
        "ztest, failing assertion without a function",
        "Running TESTSUITE x\nSTART - t\n    Assertion failed at main.c:3\n PASS - t in 0.001 seconds\nTESTSUITE x succeeded\nPROJECT EXECUTION SUCCESSFUL\n",
    ),
    (
        "ztest, failing assertion of another test",
        "Running TESTSUITE x\nSTART - t\n    Assertion failed at main.c:3: x_u: (a is false)\n PASS - t in 0.001 seconds\nTESTSUITE x succeeded\nPROJECT EXECUTION SUCCESSFUL\n",
    ),
    (
        "ztest, failing assertion of a test that is skipped",
        "Running TESTSUITE x\nSTART - t\n    Assertion failed at main.c:3: x_t: (a is false)\n SKIP - t in 0.001 seconds\nSTART - u\n PASS - u in 0.001 seconds\nTESTSUITE x succeeded\nPROJECT EXECUTION SUCCESSFUL\n",
    ),
    (
        "ztest, failing assertion in front of the start of its test",
        "Running TESTSUITE x\n    Assertion failed at main.c:3: x_t: (a is false)\nSTART - t\n PASS - t in 0.001 seconds\nTESTSUITE x succeeded\nPROJECT EXECUTION SUCCESSFUL\n",
    ),
    (
        "ztest, failing assumption of another function",
        "Running TESTSUITE x\nSTART - t\n    Assumption failed at main.c:3: check: (a is false)\n PASS - t in 0.001 seconds\nTESTSUITE x succeeded\nPROJECT EXECUTION SUCCESSFUL\n",
    ),
    (
        "KTAP, suite that ran nothing",
        "KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: r\n    1..0\nok 1 r\n",
    ),
    (
        "KTAP, case that faulted",
        "KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: r\n    1..1\n    # a: try faulted: last line seen r.c:31\n    ok 1 a\nok 1 r\n",
    ),
    (
        "KTAP, case that timed out",
        "KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: r\n    1..1\n    # a: try timed out\n    ok 1 a\nok 1 r\n",
    ),
    (
        "ztest, suite without an end",
        "Running TESTSUITE x\nSTART - t\n PASS - t in 0.001 seconds\nPROJECT EXECUTION SUCCESSFUL\n",
    ),
    (
        "ztest, suite without an end in front of another",
        "Running TESTSUITE x\nSTART - t\n PASS - t in 0.001 seconds\nRunning TESTSUITE y\nSTART - t\n PASS - t in 0.001 seconds\nTESTSUITE y succeeded\nPROJECT EXECUTION SUCCESSFUL\n",
    ),
    (
        "ztest, passes of a suite",
        "Running TESTSUITE x\nSTART - t\n PASS - t in 0.001 seconds\nTESTSUITE x succeeded\nSUITE PASS - 100.00% [x]: pass = 0, fail = 0, skip = 1, total = 1 duration = 0.001 seconds\n - PASS - [x.t] duration = 0.001 seconds\nPROJECT EXECUTION SUCCESSFUL\n",
    ),
    (
        "ztest, total of a suite",
        "Running TESTSUITE x\nSTART - t\n PASS - t in 0.001 seconds\nTESTSUITE x succeeded\nSUITE PASS - 100.00% [x]: pass = 1, fail = 0, skip = 0, total = 2 duration = 0.001 seconds\n - PASS - [x.t] duration = 0.001 seconds\nPROJECT EXECUTION SUCCESSFUL\n",
    ),
    (
        "kunit, failing expectation",
        "KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: bits\n    1..1\n    # set: EXPECTATION FAILED at lib/bits_test.c:12\n    Expected a == b, but\n    ok 1 set\nok 1 bits\n",
    ),
    (
        "kunit, failing assertion",
        "KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: bits\n    1..1\n    # set: ASSERTION FAILED at lib/bits_test.c:12\n    ok 1 set\nok 1 bits\n",
    ),
    (
        "kunit, totals of a suite",
        "KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: bits\n    1..1\n    ok 1 set\n# bits: pass:2 fail:0 skip:0 total:2\nok 1 bits\n",
    ),
    (
        "kunit, skipped of a suite",
        "KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: bits\n    1..1\n    ok 1 set\n# bits: pass:1 fail:0 skip:1 total:1\nok 1 bits\n",
    ),
    (
        "kunit, totals of all cases",
        "KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: bits\n    1..1\n    ok 1 set\n# Totals: pass:1 fail:0 skip:2 total:3\nok 1 bits\n",
    ),
    (
        "tap, diagnostic of a failure",
        "1..2\nok 1 - a\n#   Failed test 'a'\n#   at t.c line 3.\nok 2 - b\n",
    ),
    (
        "tap, diagnostic at the end",
        "1..2\nok 1 - a\nok 2 - b\n# Looks like you failed 1 test of 2.\n",
    ),
    ("tap, failing trailer", "1..2\nok 1 - a\nok 2 - b\n# tests 2\n# pass  1\n# fail  1\n"),
    ("tap, another number of tests", "1..2\nok 1 - a\nok 2 - b\n# tests 3\n# pass 2\n"),
    ("tap, another number of passes", "1..2\nok 1 - a\nok 2 - b\n# tests 2\n# pass 3\n# fail 0\n"),
    ("tap, another number of skips", "1..2\nok 1 - a\nok 2 - b\n# tests 2\n# pass 2\n# skip 1\n"),
    ("tap, cancelled", "1..1\nok 1 - a\n# tests 1\n# pass 1\n# fail 0\n# cancelled 1\n"),
    (
        "kselftest, quoted verdict",
        "TAP version 13\n1..1\n# selftests: x86: a\n# [RUN]\tcheck\n# [FAIL]\tSS was 0x2b\n# [OK]\tback\nok 1 selftests: x86: a\n",
    ),
    (
        "kselftest, quoted verdict at the end of its line",
        "TAP version 13\n1..1\n#     TEST: IPv4        [ OK ]\n#     TEST: IPv6        [FAIL]\nok 1 selftests: net: a\n",
    ),
    (
        "kselftest, quoted count",
        "TAP version 13\n1..1\n# Tests passed:  11\n# Tests failed:   1\nok 1 selftests: net: a\n",
    ),
    ("tap, quoted result", "TAP version 13\n1..1\n# RESULT: flash test FAILED\nok 1 - a\n"),
    ("tap, quoted verdict behind the end", "TAP version 13\n1..1\nok 1 - a\n# [FAIL]\n"),
    (
        "tap, block without an end",
        "1..2\nok 1 - a\nok 2 - b\n  ---\n  message: x\n  not ok 3 - c\n",
    ),
    ("tap, block that an outer point ends", "1..2\nok 1 - a\n  ---\n  not ok 2 - b\nok 2 - c\n"),
    ("tap, brace that hides a failure", "1..1\nok 1 - x {\n    not ok 1 - a\n    1..1\n}\n"),
    ("tap, failing brace", "1..1\nnot ok 1 - x {\n    ok 1 - a\n    1..1\n}\n"),
    ("tap, failing brace without an end", "1..1\nnot ok 1 - x {\n    ok 1 - a\n"),
    (
        "libtest, another number of passes",
        "running 2 tests\ntest a ... ok\ntest b ... ignored\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
    ),
    (
        "libtest, second word behind a result",
        "running 1 test\ntest a ... hello\nok\nFAILED\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
    ),
    (
        "libtest, two words",
        "running 1 test\ntest a ... hello\nok FAILED\nok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
    ),
    (
        "libtest, list of failures",
        "running 1 test\ntest a ... ok\n\nfailures:\n\n---- a stdout ----\nboom\n\nfailures:\n    a\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
    ),
    (
        "check, detail in front of the totals",
        "Running suite(s): Ring\nt.c:14:F:Core:test_push:0: Assertion 'a == b' failed\n100%: Checks: 2, Failures: 0, Errors: 0\n",
    ),
    (
        "check, detail in front of the totals without a head",
        "t.c:14:E:Core:test_push:0: (after this point) Received signal 11\n100%: Checks: 2, Failures: 0, Errors: 0\n",
    ),
    (
        "arduinounit, failing case in front of the summary",
        "Test pop failed.\nTest push passed.\nTest summary: 2 passed, 0 failed, and 0 skipped, out of 2 test(s).\n",
    ),
    (
        "arduinounit, failing assertion",
        "Assertion failed: (a=1) == (b=2), file ring.ino, line 12.\nTest push passed.\nTest summary: 1 passed, 0 failed, and 0 skipped, out of 1 test(s).\n",
    ),
    (
        "aunit, failing assertion",
        "TestRunner started on 1 test(s).\nring.ino:12: Assertion failed: (1) == (2).\nTest push passed.\nTestRunner summary: 1 passed, 0 failed, 0 skipped, 0 timed out, out of 1 test(s).\n",
    ),
    (
        "nuttx, error in lower case",
        "user_main: mutex test\nmutex_test: error: pthread_mutex_lock returned 22\nuser_main: Exiting\nostest_main: Exiting with status 0\n",
    ),
    (
        "nuttx, errors of a table",
        "user_main: mutex test\nErrors\t0\t3\nuser_main: Exiting\nostest_main: Exiting with status 0\n",
    ),
    (
        "cpputest, leak outside of the tests",
        "..\nMemoryLeakWarningPlugin.cpp:12: error: Failure in TEST(Memory leak detector)\n\tMemory leak(s) found.\n\nOK (2 tests, 2 ran, 2 checks, 0 ignored, 0 filtered out, 1 ms)\n",
    ),
    (
        "cpputest, another number of runs",
        "TEST(Led, on) - 0 ms\nIGNORE_TEST(Led, dim) - 0 ms\nOK (2 tests, 2 ran, 1 checks, 0 ignored, 0 filtered out, 1 ms)\n",
    ),
    (
        "cpputest, another number of ignored marks",
        ".!\nOK (2 tests, 2 ran, 2 checks, 0 ignored, 0 filtered out, 1 ms)\n",
    ),
    (
        "tap, failed check in front of a point",
        "1..2\nok 1 - a\n# CHECK failed at ring.c:31: expected 3, got 4\nok 2 - b\n",
    ),
    (
        "tap, crash in front of a point",
        "1..1\n# kobj: refcount_t: underflow; use-after-free.\nok 1 - a\n",
    ),
    (
        "tap, report of a sanitizer",
        "1..1\n# BUG: KASAN: use-after-free in ring_put+0x12/0x40\nok 1 - a\n",
    ),
    ("embunit, failing line", "1) OK push\n2) NG pop (t.c 45) exp 1 was 0\n\nOK (2 tests)\n"),
    ("embunit, another number of lines", "1) OK push\n\nOK (2 tests)\n"),
    (
        "doctest, failure that nothing excuses",
        "[doctest] doctest version is \"2.4.11\"\nTEST CASE:  pop\n\nr.cpp:14: ERROR: CHECK( a == b ) is NOT correct!\n\n[doctest] test cases: 1 | 1 passed | 0 failed | 0 skipped\n[doctest] assertions: 2 | 1 passed | 1 failed |\n[doctest] Status: SUCCESS!\n",
    ),
    (
        "doctest, message without a text",
        "[doctest] doctest version is \"2.4.11\"\nTEST CASE:  pop\n\nr.cpp:14: FATAL ERROR: \n\n[doctest] test cases: 1 | 1 passed | 0 failed | 0 skipped\n[doctest] assertions: 1 | 1 passed | 0 failed |\n[doctest] Status: SUCCESS!\n",
    ),
    (
        "doctest, assertions that do not add up",
        "[doctest] test cases: 1 | 1 passed | 0 failed | 0 skipped\n[doctest] assertions: 4 | 3 passed | 0 failed |\n[doctest] Status: SUCCESS!\n",
    ),
    (
        "doctest, more failing assertions than were excused",
        "[doctest] doctest version is \"2.4.11\"\nTEST CASE:  pop\n\nr.cpp:14: ERROR: CHECK( a ) is NOT correct!\n\nAllowed to fail so marking it as not failed\n[doctest] test cases: 1 | 1 passed | 0 failed | 0 skipped\n[doctest] assertions: 3 | 1 passed | 2 failed |\n[doctest] Status: SUCCESS!\n",
    ),
    (
        "catch2, more failing assertions than were expected",
        "t.cpp:12: FAILED:\n  CHECK( a )\n\nt.cpp:13: FAILED:\n  CHECK( b )\n\n===\ntest cases: 2 | 1 passed | 1 failed as expected\nassertions: 2 | 1 passed | 1 failed as expected\n",
    ),
    (
        "catch2, an assertion that failed in no case that did",
        "test cases: 4 | 3 passed | 1 failed as expected\nassertions: 12 | 11 passed | 1 failed\n",
    ),
    (
        "catch2, assertions that do not add up",
        "test cases: 2 | 1 passed | 1 skipped\nassertions: 4 | 3 passed\n",
    ),
    (
        "greentea, failing assertion",
        "{{__testcase_start;push}}\n:12::FAIL: Expected 1 Was 2\n{{__testcase_finish;push;1;0}}\n{{__testcase_summary;1;0}}\n{{end;success}}\n",
    ),
    (
        "greentea, reason of a failure",
        "{{__testcase_start;push}}\n>>> failure with reason 'Assertion Failed' during 'Case Setup Handler'\n{{__testcase_finish;push;1;0}}\n{{__testcase_summary;1;0}}\n{{end;success}}\n",
    ),
    (
        "unity, announced test without a result",
        "Running push...\na.c:1:push:PASS\nRunning pop...\n1 Tests 0 Failures 0 Ignored\nOK\n",
    ),
    (
        "pytest, character of a failure",
        "=== test session starts ===\ncollected 3 items\n\ntest_x.py ..F   [100%]\n\n=== 3 passed in 0.12s ===\n",
    ),
    (
        "pytest, character of an error without a percentage",
        "=== test session starts ===\ncollected 2 items\n\n..E\n\n=== 2 passed in 0.12s ===\n",
    ),
    (
        "pytest, section of failures",
        "=== test session starts ===\ncollected 1 item\n\ntest_x.py .   [100%]\n\n=== FAILURES ===\n___ test_b ___\nE   assert 1 == 2\n=== 1 passed in 0.12s ===\n",
    ),
    (
        "pytest, another number of passes",
        "=== test session starts ===\ncollected 2 items\ntest_x.py::a PASSED [ 50%]\ntest_x.py::b SKIPPED [100%]\n=== 2 passed in 0.12s ===\n",
    ),
    (
        "pytest, failing line of xdist",
        "=== test session starts ===\n2 workers [2 items]\n[gw0] [ 50%] PASSED test_x.py::a \n[gw1] [100%] FAILED test_x.py::b \n=== 2 passed in 0.12s ===\n",
    ),
    (
        "pytest, failing sub-test",
        "=== test session starts ===\ncollected 1 item\ntest_x.py::a SUBFAILED(i=1) [100%]\ntest_x.py::a PASSED [100%]\n=== 1 passed in 0.12s ===\n",
    ),
    (
        "go, failing assertion of testify",
        "=== RUN   TestA\n    a_test.go:9: \n        \tError Trace:\ta_test.go:9\n        \tError:      \tNot equal\n--- PASS: TestA (0.00s)\nPASS\n",
    ),
    (
        "kselftest, quoted totals with a failure",
        "TAP version 13\n1..1\n# TAP version 13\n# 1..1\n# # Totals: pass:0 fail:1 xfail:0 xpass:0 skip:0 error:0\nok 1 selftests: net: udp\n",
    ),
    (
        "tap, diagnostic of a missing point",
        "1..2\nok 1 - a\nok 2 - b\n# Looks like you planned 3 tests but ran 2.\n",
    ),
    (
        "tap, failing command of bats",
        "1..1\nok 1 a\n# (in test file ring.bats, line 3)\n#   `false' failed\n",
    ),
    (
        "pytest, quiet xdist with a failing character",
        "=== test session starts ===\ngw0 [2] / gw1 [2]\n\n.F   [100%]\n=== 2 passed in 0.12s ===\n",
    ),
    (
        "doctest, case that should have failed",
        "[doctest] doctest version is \"2.4.11\"\nTEST CASE:  pop\n\nShould have failed but didn't! Marking it as failed!\n[doctest] test cases: 1 | 0 passed | 1 failed | 0 skipped\n[doctest] assertions: 1 | 1 passed | 0 failed |\n[doctest] Status: FAILURE!\n",
    ),
    (
        "catch2, expected failure that passed",
        "t.cpp:12: FAILED:\n  CHECK( a )\n\n===\ntest cases: 2 | 1 passed | 1 failed\nassertions: 2 | 1 passed | 1 failed\n",
    ),
    (
        "libtest, the same binary again",
        "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\nrunning 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n",
    ),
    (
        "libtest, later binary without an end",
        "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\nrunning 2 tests\ntest b ... ok\n",
    ),
    (
        "libtest, later binary with another number of tests",
        "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\nrunning 2 tests\ntest b ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n",
    ),
    (
        "libtest, binary without an end in front of another",
        "running 1 test\ntest a ... ok\nrunning 1 test\ntest b ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n",
    ),
];

/// What must be a pass: failures that are expected, reasons of skips, forms that few producers use.
const CLEAN: &[(&str, &str)] = &[
    (
        "gtest, what gtest-spi catches",
        "[==========] Running 1 test from 1 test suite.\n[ RUN      ] A.B\na.cc:3: Non-fatal failure:\nExpected: 1\n[       OK ] A.B (0 ms)\n[==========] 1 test from 1 test suite ran. (0 ms total)\n[  PASSED  ] 1 test.\n",
    ),
    (
        "gtest, parameters in another language",
        "[==========] Running 1 test from 1 test suite.\n[ RUN      ] Größe/Parst.Namen/grün\n[       OK ] Größe/Parst.Namen/grün (0 ms)\n[==========] 1 test from 1 test suite ran. (0 ms total)\n[  PASSED  ] 1 test.\n",
    ),
    (
        "gtest of pigweed with its log",
        "INF  [==========] Running all tests.\nINF  [ RUN      ] Status.Default\nINF  [       OK ] Status.Default\nINF  [==========] Done running all tests.\nINF  [  PASSED  ] 1 test(s).\n",
    ),
    (
        "ztest, failures and skips that are expected",
        "Running TESTSUITE my_suite\n===================================================================\nSTART - test_fail\n\n    Assertion failed at WEST_TOPDIR/app/src/main.c:12: my_suite_test_fail: (false is false)\n\n PASS - test_fail in 0.002 seconds\n===================================================================\nSTART - test_expect\n\n    Expectation failed at WEST_TOPDIR/app/src/main.c:20: my_suite_test_expect: a not equal to b\nvalue: 3\n\n    Expectation failed at WEST_TOPDIR/app/src/main.c:21: my_suite_test_expect: a not equal to c\n\n PASS - test_expect in 0.002 seconds\n===================================================================\nSTART - test_mock\nTest test_mock failed: Unused mock parameter values\n PASS - test_mock in 0.001 seconds\n===================================================================\nSTART - test_skip\n\n    Assumption failed at WEST_TOPDIR/app/src/main.c:31: my_suite_test_skip: (false is false)\n\n PASS - test_skip in 0.001 seconds\n===================================================================\nTESTSUITE my_suite succeeded\n\n------ TESTSUITE SUMMARY START ------\n\nSUITE PASS - 100.00% [my_suite]: pass = 4, fail = 0, skip = 0, total = 4 duration = 0.006 seconds\n - PASS - [my_suite.test_expect] duration = 0.002 seconds\n - PASS - [my_suite.test_fail] duration = 0.002 seconds\n - PASS - [my_suite.test_mock] duration = 0.001 seconds\n - PASS - [my_suite.test_skip] duration = 0.001 seconds\n\n------ TESTSUITE SUMMARY END ------\n\n===================================================================\nPROJECT EXECUTION SUCCESSFUL\n",
    ),
    (
        "ztest, skip with a reason",
        "Running TESTSUITE x\nSTART - s\n    Assumption failed at main.c:3: s: (has_sensor is false)\n SKIP - s in 0.001 seconds\nSTART - t\n PASS - t in 0.001 seconds\nTESTSUITE x succeeded\nPROJECT EXECUTION SUCCESSFUL\n",
    ),
    (
        "cmocka, skip with a place",
        "[==========] x: Running 2 test(s).\n[ RUN      ] a\n[       OK ] a\n[ RUN      ] b\n[   LINE   ] --- t.c:9: Skipped!\n[  SKIPPED ] b\n[==========] x: 2 test(s) run.\n[  PASSED  ] 1 test(s).\n[  SKIPPED ] x: 1 test(s), listed below:\n[  SKIPPED ] b\n\n 1 SKIPPED TEST(S)\n",
    ),
    (
        "kselftest, known failure",
        "TAP version 13\n1..3\nok 1 a\nok 2 # XFAIL b\nok 3 # SKIP c\n# Totals: pass:1 fail:0 xfail:1 xpass:0 skip:1 error:0\n",
    ),
    (
        "kunit, totals with parameters",
        "KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: bits\n    1..2\n    ok 1 get\n        KTAP version 1\n        # Subtest: set\n        ok 1 low\n        ok 2 high\n    # set: pass:2 fail:0 skip:0 total:2\n    ok 2 set\n# bits: pass:2 fail:0 skip:0 total:2\n# Totals: pass:3 fail:0 skip:0 total:3\nok 1 bits\n",
    ),
    (
        "tap, diagnostics of a failure that is to be done",
        "1..2\nok 1 - a\nnot ok 2 - b # TODO later\n#   Failed (TODO) test 'b'\n#   Failed test 'b'\n",
    ),
    ("tap, trailers", "1..2\nok 1 - a\nok 2 - b\n\n# tests 2\n# pass  2\n\n# ok\n"),
    (
        "tap, trailers of node",
        "TAP version 13\n# Subtest: ring\n    # Subtest: push\n    ok 1 - push\n    1..1\nok 1 - ring\n1..1\n# tests 2\n# suites 0\n# pass 2\n# fail 0\n# cancelled 0\n# skipped 0\n# todo 0\n# duration_ms 12.3\n",
    ),
    (
        "tap, sub-tests in braces",
        "TAP version 14\nok 1 - ring # time=1ms {\n    ok 1 - push\n    ok 2 - wrap {\n        ok 1 - once\n        1..1\n    }\n    1..2\n}\n\nok 2 - led\n1..2\n",
    ),
    ("tap, a name that ends in a brace", "1..2\nok 1 - parses {\nok 2 - parses }\n"),
    (
        "libtest, output that looks like a result",
        "running 2 tests\ntest a ... hello\nok\nok\ntest b - should panic ... thread 'b' panicked at src/lib.rs:5:9:\nboom\nok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
    ),
    (
        "libtest, output of passing tests",
        "running 1 test\ntest a ... ok\n\nsuccesses:\n\n---- a stdout ----\nhello\n\nsuccesses:\n    a\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
    ),
    (
        "embunit, text outputter",
        "- Ring tests\n- push\n1) OK push\n- pop\n2) OK pop\n\nOK (2 tests)\n",
    ),
    (
        "doctest, expected failures",
        "[doctest] doctest version is \"2.4.11\"\n===\nr.cpp:8:\nTEST CASE:  may fail\n\nr.cpp:8: FATAL ERROR: \n\nAllowed to fail so marking it as not failed\n===\nr.cpp:11:\nTEST CASE:  fails twice\n\nr.cpp:12: ERROR: CHECK( a ) is NOT correct!\n  values: CHECK( false )\n\nr.cpp:13: ERROR: CHECK( b ) is NOT correct!\n\nFailed exactly 2 times as expected so marking it as not failed!\n===\n[doctest] test cases: 3 | 3 passed | 0 failed | 0 skipped\n[doctest] assertions: 5 | 2 passed | 3 failed |\n[doctest] Status: SUCCESS!\n",
    ),
    (
        "catch2, expected failures",
        "t.cpp:12: FAILED:\n  CHECK( a )\n\n===\ntest cases: 2 | 1 passed | 1 failed as expected\nassertions: 2 | 1 passed | 1 failed as expected\n",
    ),
    ("catch2, no assertions", "test cases: 1 | 1 passed\nassertions: - none -\n"),
    ("catch2, no assertions and no line end", "test cases: 1 | 1 passed\nassertions: - none -"),
    (
        "arduinounit",
        "Test push passed.\nTest wrap skipped.\nTest summary: 1 passed, 0 failed, and 1 skipped, out of 2 test(s).\n",
    ),
    ("arduinounit, quiet", "Test summary: 1 passed, 0 failed, and 1 skipped, out of 2 test(s).\n"),
    (
        "nuttx, table without errors",
        "user_main: mutex test\n\tLoops\t32\t32\n\tErrors\t0\t0\nuser_main: Exiting\nostest_main: Exiting with status 0\n",
    ),
    (
        "unity, words about what runs",
        "Running self test...\na.c:1:push:PASS\nRunning clean-up...\n1 Tests 0 Failures 0 Ignored\nOK\n",
    ),
    (
        "greentea, ignored failure",
        "{{__testcase_start;push}}\n>>> failure with reason 'Ignored: Assertion Failed'\n{{__testcase_finish;push;1;0}}\n{{__testcase_summary;1;0}}\n{{end;success}}\n",
    ),
    (
        "pytest, sub-tests",
        "=== test session starts ===\ncollected 1 item\n\ntest_x.py::a SUBPASSED(i=0)   [100%]\ntest_x.py::a SUBPASSED(i=1)   [100%]\ntest_x.py::a PASSED   [100%]\n\n=== 1 passed, 2 subtests passed in 0.12s ===\n",
    ),
    (
        "pytest, quiet sub-tests",
        "=== test session starts ===\ncollected 1 item\n\ntest_x.py ,,.   [100%]\n\n=== 1 passed, 2 subtests passed in 0.12s ===\n",
    ),
    (
        "pytest, xdist",
        "=== test session starts ===\ncreated: 2/2 workers\n2 workers [2 items]\n\nscheduling tests via LoadScheduling\n\ntest_x.py::a \ntest_x.py::b \n[gw0] [ 50%] PASSED test_x.py::a \n[gw1] [100%] PASSED test_x.py::b \n\n=== 2 passed in 0.12s ===\n",
    ),
    (
        "pytest, expected failures",
        "=== test session starts ===\ncollected 2 items\n\ntest_x.py .x   [100%]\n\n=== XFAILURES ===\n___ b ___\nE   assert 1 == 2\n=== 1 passed, 1 xfailed in 0.12s ===\n",
    ),
    (
        "kselftest, quoted output of nested tests",
        "TAP version 13\n1..1\n# selftests: net: udp\n# TAP version 13\n# 1..3\n# ok 1 a\n# ok 2 b\n# # Totals: pass:3 fail:0 xfail:0 xpass:0 skip:0 error:0\nok 1 selftests: net: udp\n",
    ),
    (
        "kselftest, quoted verdicts without a failure",
        "TAP version 13\n1..2\n# [OK]\tback\n#     TEST: IPv6        [ OK ]\n#     TEST: IPv4        [XFAIL]\n# Tests passed:  12\n# Tests failed:   0\n# RESULT: flash test PASSED\nok 1 selftests: net: a\n# [FAIL]\tnot supported\nok 2 selftests: net: b # SKIP\n",
    ),
    (
        "tap, comments that only resemble diagnostics",
        "1..1\n# Looks like you run on battery\n# pass 7\n# failed reads are retried\nok 1 - a\n# tests 1\n# pass 1\n",
    ),
    (
        "libtest-mimic, padded names",
        "running 2 tests\ntest a          ... ok\ntest longer::b  ... ok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
    ),
    (
        "pytest, quiet xdist of old",
        "=== test session starts ===\ngw0 [2] / gw1 [2]\n\n..   [100%]\n=== 2 passed in 0.12s ===\n",
    ),
    (
        "libtest, several binaries",
        "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\nrunning 1 test\ntest b ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n",
    ),
    (
        "libtest, several binaries that cargo announces",
        "     Running unittests src/lib.rs (target/debug/deps/ring-1)\n\nrunning 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n     Running tests/a.rs (target/debug/deps/a-1)\n\nrunning 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n   Doc-tests ring\n\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n",
    ),
    (
        "libtest, first binary without tests",
        "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\nrunning 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n",
    ),
];

#[test]
fn report_that_contradicts_itself_is_no_pass() {
    for (name, text) in DOUBTFUL {
        let report = read(text);
        assert!(!could_be_green(&report), "{name}: {}", brief(&report));
        assert!(report.format.is_some(), "{name} is not read");
        let prefixed: String =
            text.lines().map(|line| format!("[00:00:01.234,000] <inf> app: {line}\n")).collect();
        let report = read(&prefixed);
        assert!(!could_be_green(&report), "{name} behind a prefix: {}", brief(&report));
    }
}

#[test]
fn own_assumption_and_suite_that_is_skipped_contradict_nothing() {
    for text in [
        // `ZTEST_EXPECT_SKIP`, and a test that its assumption skips.
        "Running TESTSUITE x\nSTART - t\n    Assumption failed at main.c:3: x_t: (a is false)\n PASS - t in 0.001 seconds\nTESTSUITE x succeeded\nPROJECT EXECUTION SUCCESSFUL\n",
        "Running TESTSUITE x\nSTART - t\n    Assumption failed at main.c:3: x_t: (a is false)\n SKIP - t in 0.001 seconds\nSTART - u\n PASS - u in 0.001 seconds\nTESTSUITE x succeeded\nPROJECT EXECUTION SUCCESSFUL\n",
        "KTAP version 1\n1..2\n    KTAP version 1\n    # Subtest: r\n    1..0 # SKIP no device\nok 1 r # SKIP no device\nok 2 s\n",
    ] {
        assert!(could_be_green(&read(text)), "{text}");
    }
}

#[test]
fn what_is_expected_to_fail_contradicts_nothing() {
    for (name, text) in CLEAN {
        let report = read(text);
        assert!(could_be_green(&report), "{name}: {}", brief(&report));
    }
}

#[test]
fn assertion_of_unity_outside_of_a_test_is_a_contradiction_wherever_it_stands() {
    let lines = ["a.c:1:push:PASS\n", "a.c:9:pop:PASS\n", "2 Tests 0 Failures 0 Ignored\n", "OK\n"];
    assert!(could_be_green(&read(&lines.concat())));
    for stray in [
        "main.c:88::FAIL: Expected Non-NULL\n",
        "main.c:88::FAIL\n",
        "src/my main.c:88::FAIL: Expected 1 Was 2. x::y\n",
        ":88::FAIL: Expected Non-NULL\n",
        "[00:00:01.234,000] <inf> app: main.c:88::FAIL: Expected Non-NULL\n",
    ] {
        for at in 0..=lines.len() {
            let text = [&lines[..at], &[stray], &lines[at..]].concat().concat();
            let report = read(&text);
            assert_eq!(report.cases.len(), 2, "{stray} {at}");
            assert!(!could_be_green(&report) && !report.remarks.is_empty(), "{stray} {at}");
        }
        // Alone it is no report.
        assert_eq!(brief(&read(stray)), "none", "{stray}");
    }
    for prose in ["a.c:88::FAILED\n", "std::FAIL: 3\n", "x y:88::FAIL\n"] {
        assert!(could_be_green(&read(&format!("{prose}{}", lines.concat()))), "{prose}");
    }
}

#[test]
fn failure_of_greentea_behind_an_unknown_prefix_is_read() {
    let greentea = "{{__testcase_count;1}}\n{{__testcase_start;a}}\n{{__testcase_finish;a;1;0}}\n{{__testcase_summary;1;0}}\n{{end;success}}\n";
    let unity = "a.c:1:push:PASS\n1 Tests 0 Failures 0 Ignored\nOK\n";
    for green in [greentea, unity] {
        assert!(could_be_green(&read(green)), "{green}");
        for red in [
            "[CPU1] {{__testcase_finish;pop;0;1}}\n",
            "M4: {{end;failure}}\n",
            "{{end;failure}}\n",
            "[CPU1] {{__testcase_start;pop}}{{__testcase_finish;pop;0;1}} done\n",
            "@uart1@ {{__testcase_summary;1;1}}\n",
        ] {
            let unfinished = format!("{green}{}", red.trim_end());
            for text in [format!("{red}{green}"), format!("{green}{red}"), unfinished] {
                let report = read(&text);
                assert!(!could_be_green(&report), "{text}: {}", brief(&report));
            }
        }
        // A line that another format knows is its own, and other braces are none of Greentea's.
        for prose in ["a.c:7:braces:IGNORE: {{end;failure}}\n", "cfg {{end}} {{}} {{a;b}} }}{{\n"] {
            let text = format!("{prose}{unity}").replace("1 Tests", "{n} Tests");
            let skips = usize::from(prose.starts_with("a.c"));
            let text = text.replace("{n}", &(1 + skips).to_string());
            let text = text.replace("0 Ignored", &format!("{skips} Ignored"));
            assert!(could_be_green(&read(&text)), "{text}: {}", brief(&read(&text)));
        }
    }
    let prefixed: String = greentea.lines().map(|line| format!("[CPU1] {line}\n")).collect();
    assert_eq!(brief(&read(&prefixed)), "greentea +a planned=1 claimed=0 end");
    // Every core's report is whole: none hides the other.
    let red = prefixed.replace("a;1;0", "a;0;1").replace("summary;1;0", "summary;0;1");
    assert!(!could_be_green(&read(&format!("{red}{unity}"))));
}

#[test]
fn assertion_of_aunit_is_a_contradiction_and_no_crash() {
    for line in ["x.ino:12: Assertion failed: (1) == (2).\n", "Assertion failed: (1) == (2).\n"] {
        let text = format!(
            "TestRunner started on 1 test(s).\n{line}Test a passed.\nTestRunner duration: 0.1 seconds.\nTestRunner summary: 1 passed, 0 failed, 0 skipped, 0 timed out, out of 1 test(s).\n"
        );
        let report = read(&text);
        assert!(could_be_green(&read(&text.replace(line, ""))), "{line}");
        assert!(!could_be_green(&report) && !report.remarks.is_empty(), "{}", brief(&report));
    }
}

/// The same failure, told by a result: no remark takes the place of a red verdict.
#[test]
fn assertion_of_a_failing_case_is_no_remark() {
    for text in [
        "[==========] Running 2 tests from 1 test suite.\n[ RUN      ] A.B\na.cc:3: Failure\n[  FAILED  ] A.B (0 ms)\n[ RUN      ] A.C\n[       OK ] A.C (0 ms)\n",
        "Running TESTSUITE x\nSTART - t\n    Assertion failed at main.c:3: t: no\n FAIL - t in 0.001 seconds\nSTART - u\n PASS - u in 0.001 seconds\n",
        "KTAP version 1\n1..2\n# a: EXPECTATION FAILED at t.c:1\nnot ok 1 a\nok 2 b\n",
        "1..2\nnot ok 1 - a\n#   Failed test 'a'\nok 2 - b\n# Looks like you failed 1 test of 2.\n",
        "{{__testcase_start;a}}\n:1::FAIL: no\n{{__testcase_finish;a;0;1}}\n{{__testcase_start;b}}\n{{__testcase_finish;b;1;0}}\n",
    ] {
        let report = read(text);
        assert!(!could_be_green(&report) && report.remarks.is_empty(), "{}", brief(&report));
    }
}

#[test]
fn opening_without_a_case_is_no_report() {
    for text in ["1..5\n", "running 2 tests\n", "boot\n1..5\nready\n", "1..5\nrunning 2 tests\n"] {
        assert_eq!(brief(&read(text)), "none", "{text:?}");
        let mut parser = ResultParser::new(None, None, 0).unwrap();
        parser.feed(text.as_bytes(), &mut |_| {});
        assert!(!parser.ended());
    }
    // A case that was begun makes it one.
    let report = read("running 2 tests\ntest a ... ");
    assert_eq!(report.format, Some(ResultFormat::Libtest));
}
