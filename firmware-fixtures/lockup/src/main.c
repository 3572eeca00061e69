#include <board.h>

void on_fault(void)
{
    UNDEFINED_INSTRUCTION();
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    UNDEFINED_INSTRUCTION();
}
