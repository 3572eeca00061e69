#include <board.h>

FIXTURE_MAIN
{
    print("KTAP version 1\n");
    print("1..1\n");
    print("    KTAP version 1\n");
    print("    # Subtest: ring\n");
    print("    1..2\n");
    print("    ok 1 ring_starts_empty\n");
    print("    ok 2 ring_keeps_order\n");
    print("# ring: pass:2 fail:0 skip:0 total:2\n");
    print("# Totals: pass:2 fail:0 skip:0 total:2\n");
    print("ok 1 ring\n");
}
