#include <board.h>

FIXTURE_MAIN
{
    static volatile uint32_t words[2] = {1, 2};
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    trap_unaligned();
    volatile uint32_t *odd = (volatile uint32_t *)((uintptr_t)words + 1);
    print_hex(*odd);
}
