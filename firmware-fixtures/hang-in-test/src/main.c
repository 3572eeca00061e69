#include <board.h>

#define LINE "===================================================================\n"

FIXTURE_MAIN
{
    print("*** Booting Zephyr OS build v3.7.0 ***\n");
    print("Running TESTSUITE ring\n" LINE);
    print("START - test_starts_empty\n PASS - test_starts_empty in 0.001 seconds\n" LINE);
    print("START - test_keeps_order\n");
}
