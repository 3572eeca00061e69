#include <board.h>

FIXTURE_MAIN
{
    print("TAP version 14\n");
    print("1..2\n");
    print("# Subtest: ring\n");
    print("    ok 1 - starts empty\n");
    print("    ok 2 - keeps order\n");
    print("    1..2\n");
    print("ok 1 - ring\n");
    print("ok 2 - crc # time=1ms\n");
}
