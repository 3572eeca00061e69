#include <board.h>

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("test/test_ring.c:29:test_keeps_order:PASS\n");
    print("\n-----------------------\n");
    print("2 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    for (;;) {
        sleep_ms(10);
        print("tick\n");
    }
}
