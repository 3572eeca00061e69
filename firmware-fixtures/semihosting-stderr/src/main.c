#include <board.h>

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    uart_flush();
    semihosting_error("assertion \"level <= size\" failed: file \"ring.c\", line 41, function: ring_put\n");
}
