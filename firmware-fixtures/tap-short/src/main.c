#include <board.h>

FIXTURE_MAIN
{
    print("TAP version 13\n");
    print("1..5\n");
    print("ok 1 - ring starts empty\n");
    print("ok 2 - ring keeps order\n");
    print("ok 3 - ring refuses when full\n");
    semihosting_exit(0);
}
