#include <board.h>

/* The reset comes from the plan, which waits for a text behind the first report. */
FIXTURE_MAIN
{
    bool first = count_boot() == 1;

    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    if (first)
        print("test/test_ring.c:29:test_keeps_order:FAIL: Expected 3 Was 2\n");
    else
        print("test/test_ring.c:29:test_keeps_order:PASS\n");
    print("\n-----------------------\n");
    if (first)
        print("2 Tests 1 Failures 0 Ignored \nFAIL\n");
    else
        print("2 Tests 0 Failures 0 Ignored \nOK\n");
    print("ready\n");
}
