#include <board.h>

FIXTURE_MAIN
{
    print("TAP version 13\n");
    print("1..3\n");
    print("ok 1 - ring starts empty\n");
    print("Bail out! flash does not answer\n");
}
