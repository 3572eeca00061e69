#include <board.h>

#define LINE "===================================================================\n"

FIXTURE_MAIN
{
    print("*** Booting Zephyr OS build v3.7.0 ***\n");
    print("Running TESTSUITE error_hook\n" LINE);
    print("START - test_catch_assert_fail\n");
    print("ASSERTION FAIL [a != ((void *)0)] @ WEST_TOPDIR/app/src/main.c:41\n"
          "\tparameter a should not be NULL!\n"
          "Caught assert failed\n"
          "Assert error expected as part of test case.\n");
    print(" PASS - test_catch_assert_fail in 0.002 seconds\n" LINE);
    print("START - test_catch_fault\n");
    print("E: ***** HARD FAULT *****\n"
          "E:   Fault escalation (see below)\n"
          "E: ***** BUS FAULT *****\n"
          "E:   Precise data bus error\n"
          "E:   BFAR Address: 0x60000000\n"
          "E: r0/a1:  0x00000003  r1/a2:  0x20000f80  r2/a3:  0x60000000\n"
          "E: r3/a4:  0x00000001 r12/ip:  0x00000000 r14/lr:  0x00000c4f\n"
          "E:  xpsr:  0x61000000\n"
          "E: Faulting instruction address (r15/pc): 0x00000c4e\n");
    /* A handler takes its time between two lines, too. */
    sleep_ms(100);
    print("E: >>> ZEPHYR FATAL ERROR 25: Unknown error on CPU 0\n"
          "E: Current thread: 0x20000188 (test_catch_fault)\n"
          "Caught system error -- reason 25 1\n"
          "Fatal error expected as part of test case.\n");
    print(" PASS - test_catch_fault in 0.103 seconds\n" LINE);
    print("START - test_catch_oops\n");
    print("E: r0/a1:  0x00000003  r1/a2:  0x00000000  r2/a3:  0x0000000a\n"
          "E: >>> ZEPHYR FATAL ERROR 3: Kernel oops on CPU 0\n"
          "E: Current thread: 0x20000188 (test_catch_oops)\n"
          "Caught system error -- reason 3\n"
          "System error was expected\n");
    print(" PASS - test_catch_oops in 0.003 seconds\n" LINE);
    print("START - test_marked_as_failing\n");
    print("\n    Assertion failed at WEST_TOPDIR/app/src/main.c:80: "
          "error_hook_test_marked_as_failing: (false is false)\n\n");
    print(" PASS - test_marked_as_failing in 0.001 seconds\n" LINE);
    print("TESTSUITE error_hook succeeded\n");
    print("\n------ TESTSUITE SUMMARY START ------\n\n");
    print("SUITE PASS - 100.00% [error_hook]: pass = 4, fail = 0, skip = 0, total = 4 "
          "duration = 0.109 seconds\n");
    print(" - PASS - [error_hook.test_catch_assert_fail] duration = 0.002 seconds\n");
    print(" - PASS - [error_hook.test_catch_fault] duration = 0.103 seconds\n");
    print(" - PASS - [error_hook.test_catch_oops] duration = 0.003 seconds\n");
    print(" - PASS - [error_hook.test_marked_as_failing] duration = 0.001 seconds\n\n");
    print("------ TESTSUITE SUMMARY END ------\n\n");
    print(LINE "PROJECT EXECUTION SUCCESSFUL\n");
}
