#include <board.h>

#define LINE "===================================================================\n"

FIXTURE_MAIN
{
    print("*** Booting Zephyr OS build v3.7.0 ***\n");
    print("Running TESTSUITE ring\n" LINE);
    print("START - test_keeps_order\n\n");
    print("    Assertion failed at WEST_TOPDIR/app/tests/ring/src/main.c:31: "
          "ring_test_keeps_order: (ring_get(&r) not equal to 1)\n\n");
    print(" FAIL - test_keeps_order in 0.003 seconds\n" LINE);
    print("START - test_starts_empty\n PASS - test_starts_empty in 0.001 seconds\n" LINE);
    print("TESTSUITE ring failed.\n");
    print("\n------ TESTSUITE SUMMARY START ------\n\n");
    print("SUITE FAIL -  50.00% [ring]: pass = 1, fail = 1, skip = 0, total = 2 "
          "duration = 0.004 seconds\n");
    print(" - FAIL - [ring.test_keeps_order] duration = 0.003 seconds\n");
    print(" - PASS - [ring.test_starts_empty] duration = 0.001 seconds\n\n");
    print("------ TESTSUITE SUMMARY END ------\n\n");
    print(LINE "PROJECT EXECUTION FAILED\n");
}
