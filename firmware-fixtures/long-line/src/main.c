#include <board.h>

#define LINE_BYTES (10u * 1000u * 1000u)

FIXTURE_MAIN
{
    for (uint32_t i = 0; i < LINE_BYTES; i++)
        uart_put((uint8_t)('a' + (i & 15)));
    print("\n");
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("test/test_ring.c:29:test_keeps_order:PASS\n");
    print("test/test_ring.c:41:test_refuses_when_full:PASS\n");
    print("\n-----------------------\n");
    print("3 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
}
