#include <board.h>

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("test/test_ring.c:31:test_keeps_order:FAIL: Expected 1 Was 2\n");
    print("test/test_ring.c:41:test_refuses_when_full:PASS\n");
    print("\n-----------------------\n");
    print("3 Tests 1 Failures 0 Ignored \n");
    print("FAIL\n");
}
