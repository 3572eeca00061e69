//! Transcripts of host and vendor test frameworks, and the reports they must give.

pub(super) const CPPUTEST: &str = "\
..!
OK (3 tests, 2 ran, 5 checks, 1 ignored, 0 filtered out, 2 ms)

";

pub(super) const CPPUTEST_VERBOSE: &str = "\
TEST(Led, on) - 0 ms
TEST(Led, off)hello
 - 1 ms
IGNORE_TEST(Led, dim) - 0 ms

OK (4 tests, 2 ran, 5 checks, 1 ignored, 1 filtered out, 2 ms)

";

pub(super) const CMOCKA: &str = "\
[==========] ring: Running 2 test(s).
[ RUN      ] test_push
[       OK ] test_push
[ RUN      ] test_pop
[  SKIPPED ] test_pop
[==========] ring: 2 test(s) run.
[  PASSED  ] 1 test(s).
";

pub(super) const EMBUNIT: &str = "\
main(): This is RIOT! (Version: 2024.10)
...
OK (3 tests)
";

pub(super) const ESP_IDF: &str = "\
Press ENTER to see the list of tests.

Here's the test menu, pick your combo:
(1)\t\"push\" [ring]
(2)\t\"pop\" [ring]

Enter test for running.
Running push...
./main/test_ring.c:12:push:PASS
Test ran in 3ms

-----------------------
1 Tests 0 Failures 0 Ignored
OK
Enter next test, or 'enter' to see menu
Running pop...
./main/test_ring.c:20:pop:PASS
Test ran in 3ms

-----------------------
1 Tests 0 Failures 0 Ignored
OK
Enter next test, or 'enter' to see menu
";

pub(super) const CHECK: &str = "\
Running suite(s): Ring
100%: Checks: 2, Failures: 0, Errors: 0
";

pub(super) const DOCTEST: &str = "\
[doctest] doctest version is \"2.4.11\"
[doctest] run with \"--help\" for options
===============================================================================
[doctest] test cases:  2 |  2 passed | 0 failed | 7 skipped
[doctest] assertions: 12 | 12 passed | 0 failed |
[doctest] Status: SUCCESS!
";

pub(super) const CATCH2: &str = "\
Randomness seeded to: 12
===============================================================================
All tests passed (4 assertions in 2 test cases)

";

pub(super) const GREENTEA: &str = "\
{{__version;1.3.0}}
{{__timeout;40}}
{{__host_test_name;default_auto}}
{{__testcase_count;2}}
>>> Running 2 test cases...
{{__testcase_name;push}}
{{__testcase_name;pop all}}

>>> Running case #1: 'push'...
{{__testcase_start;push}}
{{__testcase_finish;push;1;0}}
>>> 'push': 1 passed, 0 failed

{{__testcase_start;pop all}}
{{__testcase_finish;pop all;1;0}}
{{__testcase_summary;2;0}}
{{max_heap_usage;0}}
{{end;success}}
{{__exit;0}}
";

pub(super) const AUNIT: &str = "\
TestRunner started on 3 test(s).
Test push passed.
Test pop passed.
Test wrap skipped.
TestRunner duration: 0.012 seconds.
TestRunner summary: 2 passed, 0 failed, 1 skipped, 0 timed out, out of 3 test(s).
";

pub(super) const DEFMT_TEST: &str = "\
clock: 64 MHz
(1/3) running `push`...
(2/3) running `pop`...
(3/3) ignoring `wrap`...
all tests passed!
";

pub(super) const DEFMT_TEST_DECODED: &str = "\
(1/2) running `push`... (tests/ring.rs:12)
INFO  depth 3 (tests/ring.rs:14)
(2/2) running `pop`... (tests/ring.rs:20)
all tests passed! (tests/ring.rs:4)
";

pub(super) const NUTTX: &str = "\
stdio_test: write fd=1
ostest_main: putenv(Variable1=BadValue3)
ostest_main: Started user_main at PID=4
user_main: Begin argument test
user_main: mutex test
Initializing mutex
user_main: Exiting
ostest_main: Exiting with status 0
";

pub(super) const PYTEST: &str = "\
============================= test session starts ==============================
platform linux -- Python 3.11.2, pytest-7.2.1, pluggy-1.0.0
rootdir: /root
collected 3 items

test_ring.py::test_push PASSED                                           [ 33%]
test_ring.py::test_pop[a b] PASSED                                       [ 66%]
test_ring.py::test_wrap SKIPPED (no sensor)                              [100%]

========================= 2 passed, 1 skipped in 0.12s =========================
";

pub(super) const PYTEST_QUIET: &str = "\
============================= test session starts ==============================
collected 3 items

test_ring.py ..s                                                         [100%]

========================= 2 passed, 1 skipped in 0.12s =========================
";

pub(super) const GO: &str = "\
=== RUN   TestPush
--- PASS: TestPush (0.00s)
=== RUN   TestPop
=== RUN   TestPop/empty
    ring_test.go:12: waiting
--- PASS: TestPop (0.02s)
    --- SKIP: TestPop/empty (0.01s)
PASS
ok  \texample.com/ring\t0.005s
";

/// Name, transcript, and the report in the short form of the tests.
pub(super) const TABLE: &[(&str, &str, &str)] = &[
    ("cpputest", CPPUTEST, "cpputest +case_1 +case_2 ~case_3 planned=3 claimed=0 end"),
    (
        "cpputest, verbose",
        CPPUTEST_VERBOSE,
        "cpputest +Led::on +Led::off ~Led::dim planned=3 claimed=0 end",
    ),
    (
        "cpputest, failing",
        ".\nsrc/led_test.cpp:44: error: Failure in TEST(Led, on)\n\texpected <1>\n\tbut was  <0>\n\n.\nErrors (1 failures, 2 tests, 2 ran, 4 checks, 0 ignored, 0 filtered out, 1 ms)\n\n",
        "cpputest -Led::on +case_2 planned=2 claimed=1 end",
    ),
    (
        "cpputest, failing verbosely",
        "TEST(Led, on)\nsrc/led_test.cpp:44: error: Failure in TEST(Led, on)\n\texpected <1>\n\tbut was  <0>\n\n - 0 ms\nTEST(Led, off) - 1 ms\n\nErrors (1 failures, 2 tests, 2 ran, 4 checks, 0 ignored, 0 filtered out, 1 ms)\n\n",
        "cpputest -Led::on +Led::off planned=2 claimed=1 end",
    ),
    (
        "cpputest, very verbose",
        "TEST(Led, on)\n-- before runAllPreTestAction: \n------ before runTest: \n-- after runAllPostTestAction:  - 0 ms\n\nOK (1 tests, 1 ran, 2 checks, 0 ignored, 0 filtered out, 0 ms)\n\n",
        "cpputest +Led::on planned=1 claimed=0 end",
    ),
    ("cpputest, crashed", "TEST(Led, on) - 0 ms\nTEST(Led, off)", "cpputest +Led::on"),
    (
        "cpputest, a mark is missing",
        ".\nOK (2 tests, 2 ran, 2 checks, 0 ignored, 0 filtered out, 0 ms)\n",
        "cpputest +case_1 +case_2 planned=2 claimed=0 end | the summary counts 2 cases, 1 marks were seen",
    ),
    (
        "cpputest, output between marks",
        ".hello\n.world.\nOK (3 tests, 3 ran, 2 checks, 0 ignored, 0 filtered out, 0 ms)\n",
        "cpputest +case_1 +case_2 +case_3 planned=3 claimed=0 end",
    ),
    (
        "cpputest, none ran",
        "\nErrors (ran nothing, 3 tests, 0 ran, 0 checks, 0 ignored, 3 filtered out, 0 ms)\n",
        "cpputest planned=0 claimed=1 end | the summary claims 1 failures, 0 were seen",
    ),
    (
        "cpputest, totals that lie",
        "..\nOK (3 tests, 2 ran, 2 checks, 0 ignored, 0 filtered out, 0 ms)\n",
        "cpputest +case_1 +case_2 planned=2 claimed=0 end | 3 tests are not 2 ran, 0 ignored and 0 filtered out",
    ),
    ("cpputest, dots of a log", "Erasing\n.....\ndone.\n", "none"),
    ("cmocka", CMOCKA, "cmocka +ring::test_push ~ring::test_pop planned=2 end"),
    (
        "cmocka, failing",
        "[==========] Running 2 test(s).\n[ RUN      ] a\n[  ERROR   ] --- 1 != 2\n[   LINE   ] --- t.c:9: error: Failure!\n[  FAILED  ] a\n[ RUN      ] b\n[       OK ] b\n[==========] 2 test(s) run.\n[  PASSED  ] 1 test(s).\n[  FAILED  ] 1 test(s), listed below:\n[  FAILED  ] a\n\n 1 FAILED TEST(S)\n",
        "cmocka -a +b planned=2 end",
    ),
    (
        "cmocka, two groups",
        "[==========] x: Running 1 test(s).\n[ RUN      ] a\n[       OK ] a\n[==========] x: 1 test(s) run.\n[  PASSED  ] 1 test(s).\n[==========] y: Running 1 test(s).\n[ RUN      ] a\n[       OK ] a\n[==========] y: 1 test(s) run.\n[  PASSED  ] 1 test(s).\n",
        "cmocka +x::a +y::a planned=2 end",
    ),
    (
        "cmocka, a group that fails the second time",
        "[==========] x: Running 1 test(s).\n[ RUN      ] a\n[       OK ] a\n[==========] x: 1 test(s) run.\n[  PASSED  ] 1 test(s).\n[==========] x: Running 1 test(s).\n[ RUN      ] a\n[  FAILED  ] a\n[==========] x: 1 test(s) run.\n[  PASSED  ] 0 test(s).\n[  FAILED  ] x: 1 test(s), listed below:\n[  FAILED  ] a\n\n 1 FAILED TEST(S)\n",
        "cmocka -x::a planned=2 end | results go on after the report ended | the report begins again | case x::a started again | case x::a reported as pass and as fail",
    ),
    (
        "cmocka, one function twice",
        "[==========] x: Running 2 test(s).\n[ RUN      ] a\n[       OK ] a\n[ RUN      ] a\n[  FAILED  ] a\n[==========] x: 2 test(s) run.\n[  PASSED  ] 1 test(s).\n[  FAILED  ] x: 1 test(s), listed below:\n[  FAILED  ] a\n\n 1 FAILED TEST(S)\n",
        "cmocka +x::a -x::a_(2) planned=2 end",
    ),
    (
        "cmocka, crashed",
        "[==========] x: Running 2 test(s).\n[ RUN      ] a\n[       OK ] a\n[ RUN      ] b\n",
        "cmocka +x::a ?x::b planned=2",
    ),
    (
        "cmocka, passes that lie",
        "[==========] x: Running 1 test(s).\n[ RUN      ] a\n[       OK ] a\n[==========] x: 1 test(s) run.\n[  PASSED  ] 2 test(s).\n",
        "cmocka +x::a planned=1 end | the summary counts 2 passes, 1 were seen",
    ),
    (
        "cmocka, failure that no line shows",
        "[==========] x: Running 1 test(s).\n[ RUN      ] a\n[       OK ] a\n[==========] x: 1 test(s) run.\n[  PASSED  ] 1 test(s).\n[  FAILED  ] x: 1 test(s), listed below:\n[  FAILED  ] b\n",
        "cmocka +x::a -x::b planned=1 claimed=1 | case x::b is only in the summary | results go on after the report ended | 1 cases announced, 2 seen",
    ),
    (
        "cmocka, none",
        "[==========] x: Running 0 test(s).\n[==========] x: 0 test(s) run.\n[  PASSED  ] 0 test(s).\n",
        "cmocka planned=0 end",
    ),
    ("embunit", EMBUNIT, "embunit +case_1 +case_2 +case_3 planned=3 claimed=0 end"),
    (
        "embunit, failing",
        "..\nring_tests.test_pop (tests-ring.c 45) exp 1 was 0\n.\nrun 3 failures 1\n",
        "embunit -ring_tests::test_pop +case_2 +case_3 planned=3 claimed=1 end",
    ),
    (
        "embunit, failures that lie",
        "..\nrun 2 failures 1\n",
        "embunit +case_1 -case_2 planned=2 claimed=1 end",
    ),
    (
        "embunit, a dot is missing",
        "..\nOK (3 tests)\n",
        "embunit +case_1 +case_2 +case_3 planned=3 claimed=0 end | the summary counts 3 cases, 2 marks were seen",
    ),
    (
        "embunit, the mark of a failure",
        "..\nF.\nOK (3 tests)\n",
        "embunit +case_1 +case_2 +case_3 planned=3 claimed=0 end | the summary counts 0 failed cases, 1 marks of such (F) were seen",
    ),
    (
        "embunit, marks and messages of failures",
        "..F\nring_tests.test_pop (tests-ring.c 45) exp 1 was 0\n.\nrun 3 failures 1\n",
        "embunit -ring_tests::test_pop +case_2 +case_3 planned=3 claimed=1 end",
    ),
    ("embunit, none", "\nOK (0 tests)\n", "embunit planned=0 claimed=0 end"),
    ("embunit, crashed", "main(): This is RIOT! (Version: 2024.10)\n..", "none"),
    ("embunit, a log line that resembles a failure", "net.rx (uart.c 40) overrun\n", "none"),
    ("embunit, a marker of a driver", "main(): This is RIOT! (Version: 1)\n[SUCCESS]\n", "none"),
    (
        "unity, blanks around the colons of a failure",
        "test/ring.c:24:test_pop : FAIL : Expected 1 Was 2\ntest/ring.c:24:test_pop:PASS\ntest/ring.c:9:test_x : PASS\n1 Tests 0 Failures 0 Ignored\nOK\n",
        "unity -test_pop planned=1 claimed=0 end | case test_pop reported as fail and as pass | the summary claims 0 failures, 1 were seen",
    ),
    (
        "unity, two groups",
        "a.c:1:push:PASS\n1 Tests 0 Failures 0 Ignored\nOK\nb.c:1:push:PASS\nb.c:2:pop:IGNORE\n2 Tests 0 Failures 1 Ignored\nOK\n",
        "unity +push +push ~pop planned=3 claimed=0 end",
    ),
    (
        "unity, two groups, the second one failing",
        "a.c:1:push:PASS\n1 Tests 0 Failures 0 Ignored\nOK\nb.c:1:pop:FAIL: Expected 1\n1 Tests 1 Failures 0 Ignored\nFAIL\n",
        "unity +push -pop planned=2 claimed=1 end",
    ),
    (
        "unity, two groups, the second one without an end",
        "a.c:1:push:PASS\n1 Tests 0 Failures 0 Ignored\nOK\nb.c:1:pop:PASS\n",
        "unity +push +pop planned=1 claimed=0 | 1 cases announced, 2 seen",
    ),
    (
        "unity, a group twice",
        "a.c:1:push:PASS\n1 Tests 0 Failures 0 Ignored\nOK\na.c:1:push:PASS\n1 Tests 0 Failures 0 Ignored\nOK\n",
        "unity +push planned=1 claimed=0 end | results go on after the report ended | case push reported twice",
    ),
    (
        "unity, milliseconds in front of each line",
        "001000 test/t.c:1:push:PASS\n001001 test/t.c:2:pop:PASS\n\n001004 -----\n001005 2 Tests 0 Failures 0 Ignored \n001006 OK\n",
        "unity +push +pop planned=2 claimed=0 end",
    ),
    (
        "unity fixture, quiet",
        "Unity test run 1 of 1\n....\n\n-----\n4 Tests 0 Failures 0 Ignored \nOK\n",
        "unity +case_1 +case_2 +case_3 +case_4 planned=4 claimed=0 end",
    ),
    (
        "unity fixture, quiet, a mark too few",
        "Unity test run 1 of 1\n...\n\n-----\n4 Tests 0 Failures 0 Ignored \nOK\n",
        "unity +case_1 +case_2 +case_3 +case_4 planned=4 claimed=0 end | the summary counts 4 cases, 3 marks were seen",
    ),
    (
        "ktap behind the kernel's levels",
        "<6>[    1.000000] KTAP version 1\n<6>[    1.001311] 1..1\n<6>[    1.002622]     KTAP version 1\n<6>[    1.003933]     # Subtest: a\n<6>[    1.006555]     1..1\n<6>[    1.007866]     ok 1 b\n<6>[    1.013110] ok 1 a\n",
        "ktap +a::b planned=1 end",
    ),
    (
        "unity fixture, two groups",
        "TEST(ring, push) PASS\n\n1 Tests 0 Failures 0 Ignored\nOK\nTEST(led, on) PASS\n\n1 Tests 0 Failures 0 Ignored\nOK\n",
        "unity +ring::push +led::on planned=2 claimed=0 end",
    ),
    ("esp-idf", ESP_IDF, "unity +push +pop planned=2 claimed=0 end"),
    ("esp-idf, menu alone", "Press ENTER to see the list of tests.\n", "none"),
    (
        "esp-idf, failing in the first round",
        "Running pop...\n./main/t.c:20:pop:FAIL: Expected 1 Was 2\n1 Tests 1 Failures 0 Ignored\nFAIL\nEnter next test, or 'enter' to see menu\nRunning push...\n./main/t.c:12:push:PASS\n1 Tests 0 Failures 0 Ignored\nOK\nEnter next test, or 'enter' to see menu\n",
        "unity -pop +push planned=2 claimed=1 end | the summary counts 1 failures, but says OK",
    ),
    (
        "esp-idf, crashed in the second round",
        "Running push...\n./main/t.c:12:push:PASS\n1 Tests 0 Failures 0 Ignored\nOK\nEnter next test, or 'enter' to see menu\n./main/t.c:20:pop:PASS\n",
        "unity +push +pop planned=1 claimed=0 | 1 cases announced, 2 seen",
    ),
    (
        "esp-idf, a choice that names no test",
        "./main/t.c:12:push:PASS\n1 Tests 0 Failures 0 Ignored\nOK\nEnter next test, or 'enter' to see menu\n0 Tests 0 Failures 0 Ignored\nOK\nEnter next test, or 'enter' to see menu\n",
        "unity +push planned=1 claimed=0 end",
    ),
    (
        "esp-idf, totals that lie",
        "./main/t.c:12:push:PASS\n1 Tests 0 Failures 0 Ignored\nOK\nEnter next test, or 'enter' to see menu\n./main/t.c:20:pop:PASS\n2 Tests 0 Failures 0 Ignored\nOK\n",
        "unity +push +pop planned=3 claimed=0 end",
    ),
    ("check", CHECK, "check +case_1 +case_2 planned=2 claimed=0 end"),
    (
        "check, verbose",
        "Running suite(s): Ring\n100%: Checks: 2, Failures: 0, Errors: 0\nt.c:14:P:Core:test_push:0: Passed\nt.c:22:P:Core:test_pop:1: Passed\n",
        "check +Core::test_push +Core::test_pop[1] planned=2 claimed=0 end",
    ),
    (
        "check, failing",
        "Running suite(s): Ring\n66%: Checks: 3, Failures: 1, Errors: 0\nt.c:14:F:Core:test_push:0: Assertion 'a == b' failed: a == 1, b == 2\n",
        "check -Core::test_push +case_2 +case_3 planned=3 claimed=1 end",
    ),
    (
        "check, failing without its line",
        "50%: Checks: 2, Failures: 1, Errors: 0\n",
        "check +case_1 planned=2 claimed=1 end | the summary claims 1 failures, 0 were seen",
    ),
    (
        "check, cut in the list",
        "100%: Checks: 2, Failures: 0, Errors: 0\nt.c:14:P:Core:test_push:0: Passed\n",
        "check +Core::test_push planned=2 claimed=0 end",
    ),
    (
        "check, percentage that lies",
        "100%: Checks: 3, Failures: 1, Errors: 0\nt.c:14:F:Core:test_push:0: x\n",
        "check -Core::test_push +case_2 +case_3 planned=3 claimed=1 end | 100% contradicts 1 of 3 failing",
    ),
    (
        "check, none",
        "Running suite(s): Ring\n100%: Checks: 0, Failures: 0, Errors: 0\n",
        "check planned=0 claimed=0 end",
    ),
    ("check, crashed", "Running suite(s): Ring\n", "check"),
    ("doctest", DOCTEST, "doctest +case_1 +case_2 planned=2 claimed=0 end"),
    (
        "doctest, failing",
        "[doctest] doctest version is \"2.4.11\"\n===============================================================================\nring.cpp:12:\nTEST CASE:  pop\n\nring.cpp:14: ERROR: CHECK( a == b ) is NOT correct!\n  values: CHECK( 1 == 2 )\n\nring.cpp:15: ERROR: CHECK( c ) is NOT correct!\n\n===============================================================================\n[doctest] test cases: 2 | 1 passed | 1 failed | 0 skipped\n[doctest] assertions: 4 | 2 passed | 2 failed |\n[doctest] Status: FAILURE!\n",
        "doctest -pop +case_2 planned=2 claimed=1 end",
    ),
    (
        "doctest, status that lies",
        "[doctest] test cases: 2 | 1 passed | 1 failed | 0 skipped\n[doctest] assertions: 4 | 2 passed | 2 failed |\n[doctest] Status: SUCCESS!\n",
        "doctest +case_1 planned=2 claimed=1 end | the status is SUCCESS, but the counts tell of failures | the summary claims 1 failures, 0 were seen",
    ),
    (
        "doctest, totals that lie",
        "[doctest] test cases: 3 | 2 passed | 0 failed | 0 skipped\n[doctest] assertions: 4 | 4 passed | 0 failed |\n[doctest] Status: SUCCESS!\n",
        "doctest +case_1 +case_2 planned=3 claimed=0 end | 3 cases are not 2 passed and 0 failed",
    ),
    (
        "doctest, none",
        "[doctest] test cases: 0 | 0 passed | 0 failed | 4 skipped\n[doctest] assertions: 0 | 0 passed | 0 failed |\n[doctest] Status: SUCCESS!\n",
        "doctest planned=0 claimed=0 end",
    ),
    ("doctest, crashed", "[doctest] doctest version is \"2.4.11\"\n", "doctest"),
    ("catch2", CATCH2, "catch2 +case_1 +case_2 planned=2 claimed=0 end"),
    (
        "catch2, failing",
        "-------------------------------------------------------------------------------\npop\n-------------------------------------------------------------------------------\nt.cpp:9\n...............................................................................\n\nt.cpp:12: FAILED:\n  CHECK( pop() == 1 )\nwith expansion:\n  0 == 1\n\nt.cpp:13: FAILED:\n  CHECK( false )\n\n===============================================================================\ntest cases: 3 | 2 passed | 1 failed\nassertions: 4 | 2 passed | 2 failed\n",
        "catch2 -t.cpp:12 -t.cpp:13 +case_3 +case_4 planned=4 claimed=2 end",
    ),
    (
        "catch2, skipped",
        "test cases: 3 | 1 passed | 1 skipped | 1 failed as expected\nassertions: 1 | 1 passed\n",
        "catch2 +case_1 +case_2 ~case_3 planned=3 claimed=0 end",
    ),
    (
        "catch2, totals that lie",
        "test cases: 4 | 2 passed | 1 skipped\nassertions: 2 | 2 passed\n",
        "catch2 +case_1 +case_2 ~case_3 planned=4 claimed=0 end | 4 test cases are not 2 passed, 0 failed and 1 skipped",
    ),
    (
        "catch2, only line without end",
        "boot\nAll tests passed (4 assertions in 2 test cases)",
        "catch2 +case_1 +case_2 planned=2 claimed=0 end",
    ),
    ("catch2, crashed", "t.cpp:12: FAILED:\n  CHECK( false )\n", "catch2 -t.cpp:12"),
    (
        "catch2, verdict that lies",
        "t.cpp:12: FAILED:\nAll tests passed (4 assertions in 2 test cases)\n",
        "catch2 -t.cpp:12 +case_2 +case_3 planned=3 claimed=1 end | all tests passed, but an assertion failed",
    ),
    ("greentea", GREENTEA, "greentea +push +pop_all planned=2 claimed=0 end"),
    (
        "greentea, failing",
        "{{__testcase_start;push}}\n:12::FAIL: Expected 1 Was 2\n{{__testcase_finish;push;0;1}}\n{{__testcase_summary;0;1}}\n{{end;failure}}\n{{__exit;1}}\n",
        "greentea -push planned=1 claimed=1 end",
    ),
    (
        "greentea, repeating case",
        "{{__testcase_start;push}}\n{{__testcase_finish;push;1;0}}\n{{__testcase_start;push}}\n{{__testcase_finish;push;2;0}}\n{{__testcase_summary;1;0}}\n{{end;success}}\n{{__exit;0}}\n",
        "greentea +push planned=1 claimed=0 end",
    ),
    (
        "greentea, crashed",
        "{{__testcase_count;2}}\n{{__testcase_start;push}}\n{{__testcase_finish;push;1;0}}\n{{__testcase_start;pop}}\n",
        "greentea +push ?pop planned=2",
    ),
    (
        "greentea, totals that lie",
        "{{__testcase_start;push}}\n{{__testcase_finish;push;1;0}}\n{{__testcase_summary;2;0}}\n{{end;success}}\n",
        "greentea +push planned=2 claimed=0 end | the summary counts 2 passes, 1 were seen",
    ),
    (
        "greentea, exit code against the result",
        "{{__testcase_start;push}}\n{{__testcase_finish;push;1;0}}\n{{__testcase_summary;1;0}}\n{{end;success}}\n{{__exit;1}}\n",
        "greentea +push planned=1 claimed=1 end | the summary claims 1 failures, 0 were seen",
    ),
    ("greentea, none", "{{__version;1.3.0}}\n{{end;success}}\n{{__exit;0}}\n", "greentea end"),
    ("aunit", AUNIT, "aunit +push +pop ~wrap planned=3 claimed=0 end"),
    (
        "aunit, failing",
        "TestRunner started on 3 test(s).\nTest push passed.\nt.ino:12: Assertion failed: (1) == (2).\nTest pop failed.\nTest wait timed out.\nTestRunner duration: 0.012 seconds.\nTestRunner summary: 1 passed, 1 failed, 0 skipped, 1 timed out, out of 3 test(s).\n",
        "aunit +push -pop -wait planned=3 claimed=2 end",
    ),
    (
        "arduinounit",
        "Test push passed.\nTest pop failed.\nTest summary: 1 passed, 1 failed, and 0 skipped, out of 2 test(s).\n",
        "aunit +push -pop planned=2 claimed=1 end",
    ),
    (
        "aunit, totals that lie",
        "TestRunner started on 2 test(s).\nTest push passed.\nTestRunner summary: 2 passed, 0 failed, 0 skipped, 0 timed out, out of 2 test(s).\n",
        "aunit +push planned=2 claimed=0 end | the summary counts 2 passes, 1 were seen",
    ),
    (
        "aunit, crashed",
        "TestRunner started on 2 test(s).\nTest push passed.\n",
        "aunit +push planned=2",
    ),
    (
        "aunit, none",
        "TestRunner started on 0 test(s).\nTestRunner summary: 0 passed, 0 failed, 0 skipped, 0 timed out, out of 0 test(s).\n",
        "aunit planned=0 claimed=0 end",
    ),
    ("defmt-test", DEFMT_TEST, "defmt-test +push +pop ~wrap planned=3 end"),
    ("defmt-test, decoded", DEFMT_TEST_DECODED, "defmt-test +push +pop planned=2 end"),
    (
        "defmt-test, as probe-rs prints it",
        "0.000061 INFO  (1/1) running `push`...\n0.000902 INFO  all tests passed!\n",
        "defmt-test +push planned=1 end",
    ),
    (
        "defmt-test, a count as time stamp, and places on lines of their own",
        "7 (1/2) running `push`...\n└─ fault::tests::__defmt_test_entry @ tests/fault.rs:5\n8 INFO  (2/2) running `pop`...\n9 all tests passed!\n└─ fault::tests::__defmt_test_entry @ tests/fault.rs:5\n",
        "defmt-test +push +pop planned=2 end",
    ),
    (
        "defmt-test, panicked",
        "(1/2) running `push`...\n(2/2) running `pop`...\nERROR panicked at 'left == right'\n",
        "defmt-test +push ?pop planned=2",
    ),
    (
        "defmt-test, a lost line",
        "(1/3) running `push`...\n(3/3) running `wrap`...\nall tests passed!\n",
        "defmt-test +push +wrap planned=3 end | test 3 follows test 1",
    ),
    (
        "defmt-test, its last test is missing",
        "(1/2) running `push`...\nall tests passed!\n",
        "defmt-test +push planned=2 end",
    ),
    (
        "defmt-test, from the second on",
        "(2/2) running `pop`...\nall tests passed!\n",
        "defmt-test +pop planned=2 end | test 2 follows test 0",
    ),
    (
        "defmt-test, started again",
        "(1/2) running `push`...\n(1/2) running `push`...\n(2/2) running `pop`...\nall tests passed!\n",
        "defmt-test +push +pop planned=2 end | the report begins again | case push started again",
    ),
    ("nuttx", NUTTX, "nuttx +ostest end"),
    (
        "nuttx, failing",
        "ostest_main: Started user_main at PID=4\nuser_main: mutex test\nostest_main: Exiting with status 1\n",
        "nuttx -ostest end",
    ),
    (
        "nuttx, not awaited",
        "ostest_main: Started user_main at PID=4\nostest_main: Exiting with status 0\nuser_main: mutex test\n",
        "nuttx ?ostest",
    ),
    (
        "nuttx, an error behind the status",
        "user_main: mutex test\nthread 1: ERROR pthread_mutex_lock failed\nuser_main: Exiting\nostest_main: Exiting with status 0\n",
        "nuttx +ostest end | ostest printed an error: thread 1: ERROR pthread_mutex_lock failed",
    ),
    (
        "pytest",
        PYTEST,
        "pytest +test_ring.py::test_push +test_ring.py::test_pop[a_b] ~test_ring.py::test_wrap planned=3 claimed=0 end",
    ),
    ("pytest, quiet", PYTEST_QUIET, "pytest +case_1 +case_2 ~case_3 planned=3 claimed=0 end"),
    (
        "pytest, failing",
        "=== test session starts ===\ncollected 2 items\n\ntest_x.py .F   [100%]\n\n=== FAILURES ===\n___ test_b ___\n>   assert 1 == 2\nE   assert 1 == 2\n=== short test summary info ===\nFAILED test_x.py::test_b - assert 1 == 2\n=== 1 failed, 1 passed in 0.12s ===\n",
        "pytest -test_x.py::test_b +case_2 planned=2 claimed=1 end",
    ),
    (
        "pytest, error in a set-up",
        "=== test session starts ===\ncollected 1 item\ntest_x.py::test_a ERROR   [100%]\n=== short test summary info ===\nERROR test_x.py::test_a - OSError\n=== 1 error in 0.12s ===\n",
        "pytest -test_x.py::test_a planned=1 claimed=1 end",
    ),
    (
        "pytest, totals that lie",
        "=== test session starts ===\ncollected 3 items / 1 deselected / 2 selected\ntest_x.py .   [100%]\n=== 1 passed, 1 deselected in 0.12s ===\n",
        "pytest +case_1 planned=2 claimed=0 end",
    ),
    (
        "pytest, none",
        "=== test session starts ===\ncollected 0 items\n=== no tests ran in 0.01s ===\n",
        "pytest planned=0 claimed=0 end",
    ),
    (
        "pytest, crashed",
        "=== test session starts ===\ncollected 2 items\ntest_x.py::test_a PASSED   [ 50%]\ntest_x.py::test_b ",
        "pytest +test_x.py::test_a planned=2",
    ),
    ("go", GO, "go +TestPush +TestPop ~TestPop/empty end"),
    (
        "go, failing",
        "=== RUN   TestPop\n    ring_test.go:9: got 1\n--- FAIL: TestPop (0.00s)\nFAIL\nexit status 1\nFAIL\texample.com/ring\t0.005s\n",
        "go -TestPop claimed=1 end",
    ),
    (
        "go, two packages",
        "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\nok  \ta.b/x\t0.1s\n=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\nok  \ta.b/y\t0.1s\n",
        "go +TestA +TestA end",
    ),
    (
        "go, output in front of a result",
        "=== RUN   TestA\nhello--- PASS: TestA (0.00s)\nPASS\n",
        "go +TestA end",
    ),
    (
        "go, crashed",
        "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\npanic: x\n",
        "go +TestA ?TestB | no case failed, but a line tells of a failure: panic: x",
    ),
    (
        "go, verdict that lies",
        "=== RUN   TestA\n--- FAIL: TestA (0.00s)\nPASS\n",
        "go -TestA end | the verdict is PASS, but a test failed",
    ),
    ("go, quiet", "ok  \ta.b/x\t0.1s\nPASS\n", "none"),
];
