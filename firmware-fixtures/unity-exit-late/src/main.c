#include <board.h>

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("test/test_ring.c:29:test_keeps_order:PASS\n");
    print("test/test_ring.c:41:test_refuses_when_full:PASS\n");
    print("\n-----------------------\n");
    print("3 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    sleep_ms(50);
    semihosting_exit(0);
}
