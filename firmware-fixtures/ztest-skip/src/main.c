#include <board.h>

#define LINE "===================================================================\n"

FIXTURE_MAIN
{
    print("*** Booting Zephyr OS build v3.7.0 ***\n");
    print("Running TESTSUITE ring\n" LINE);
    print("START - test_dma\n SKIP - test_dma in 0.001 seconds\n" LINE);
    print("START - test_starts_empty\n PASS - test_starts_empty in 0.001 seconds\n" LINE);
    print("TESTSUITE ring succeeded\n");
    print("\n------ TESTSUITE SUMMARY START ------\n\n");
    print("SUITE PASS - 100.00% [ring]: pass = 1, fail = 0, skip = 1, total = 2 "
          "duration = 0.002 seconds\n");
    print(" - SKIP - [ring.test_dma] duration = 0.001 seconds\n");
    print(" - PASS - [ring.test_starts_empty] duration = 0.001 seconds\n\n");
    print("------ TESTSUITE SUMMARY END ------\n\n");
    print(LINE "PROJECT EXECUTION SUCCESSFUL\n");
}
