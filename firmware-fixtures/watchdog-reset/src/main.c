#include <board.h>

/* The second boot reports a complete pass. It must not hide what ended the first. */
FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    if (count_boot() == 1) {
        watchdog_start(100);
        return; /* hangs, asleep, until the watchdog bites */
    }
    print("test/test_ring.c:29:test_keeps_order:PASS\n");
    print("test/test_ring.c:41:test_refuses_when_full:PASS\n");
    print("\n-----------------------\n");
    print("3 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
}
