#include <board.h>

/* Volatile, so that neither the buffer nor the recursion is optimised away. */
static volatile uint32_t always = 1;

__attribute__((noinline)) static uint32_t descend(uint32_t depth)
{
    volatile uint32_t frame[8];
    frame[depth & 7] = depth;
    return always ? descend(depth + 1) + frame[depth & 7] : 0;
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print_dec(descend(0));
}
