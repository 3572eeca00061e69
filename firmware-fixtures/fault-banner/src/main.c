#include <board.h>

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    UNDEFINED_INSTRUCTION();
}
