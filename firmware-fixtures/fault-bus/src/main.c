#include <board.h>

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    volatile uint32_t *nothing = (volatile uint32_t *)0x60000000u;
    *nothing = 1;
}
