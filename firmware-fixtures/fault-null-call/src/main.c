#include <board.h>

static void (*volatile callback)(void) = NULL;

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    callback();
}
