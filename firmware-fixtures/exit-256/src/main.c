#include <board.h>

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    semihosting_exit(256);
}
