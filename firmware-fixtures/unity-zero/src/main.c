#include <board.h>

FIXTURE_MAIN
{
    print("\n-----------------------\n");
    print("0 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
}
