#include <board.h>

FIXTURE_MAIN
{
    print("TAP version 13\n");
    print("1..3\n");
    print("ok 1 - ring starts empty\n");
    print("not ok 2 - ring keeps order\n");
    print("  ---\n  message: 'got 2, wanted 1'\n  severity: fail\n  ...\n");
    print("ok 3 - ring refuses when full\n");
}
