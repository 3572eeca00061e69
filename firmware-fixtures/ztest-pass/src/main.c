#include <board.h>

#define LINE "===================================================================\n"

FIXTURE_MAIN
{
    print("*** Booting Zephyr OS build v3.7.0 ***\n");
    print("Running TESTSUITE ring\n" LINE);
    print("START - test_keeps_order\n PASS - test_keeps_order in 0.001 seconds\n" LINE);
    print("START - test_starts_empty\n PASS - test_starts_empty in 0.001 seconds\n" LINE);
    print("TESTSUITE ring succeeded\n");
    print("Running TESTSUITE crc\n" LINE);
    print("START - test_known_values\n PASS - test_known_values in 0.002 seconds\n" LINE);
    print("TESTSUITE crc succeeded\n");
    print("\n------ TESTSUITE SUMMARY START ------\n\n");
    print("SUITE PASS - 100.00% [crc]: pass = 1, fail = 0, skip = 0, total = 1 "
          "duration = 0.002 seconds\n");
    print(" - PASS - [crc.test_known_values] duration = 0.002 seconds\n\n");
    print("SUITE PASS - 100.00% [ring]: pass = 2, fail = 0, skip = 0, total = 2 "
          "duration = 0.002 seconds\n");
    print(" - PASS - [ring.test_keeps_order] duration = 0.001 seconds\n");
    print(" - PASS - [ring.test_starts_empty] duration = 0.001 seconds\n\n");
    print("------ TESTSUITE SUMMARY END ------\n\n");
    print(LINE "PROJECT EXECUTION SUCCESSFUL\n");
}
