#include <board.h>

#pragma GCC diagnostic ignored "-Winfinite-recursion"

static volatile uint32_t deepest;

__attribute__((noinline)) static uint32_t depth(uint32_t level)
{
    volatile uint32_t local[16];

    local[level & 15] = level;
    uint32_t below = depth(level + 1) + local[3];
    deepest = below;
    return below;
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    depth(1);
}
