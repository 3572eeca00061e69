#include <board.h>

FIXTURE_MAIN
{
    print("TAP version 13\n");
    print("1..3\n");
    print("ok 1 - ring starts empty\n");
    print("ok 2 - ring keeps order\n");
    print("  ---\n  duration_ms: 2\n  ...\n");
    print("ok 3 - ring refuses when full\n");
}
