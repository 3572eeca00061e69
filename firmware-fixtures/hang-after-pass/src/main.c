#include <board.h>

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("test/test_ring.c:29:test_keeps_order:PASS\n");
    print("test/test_ring.c:41:test_refuses_when_full:PASS\n");
    for (;;)
        __asm volatile(""); /* an empty loop without an effect may be removed */
}
