#include <board.h>

FIXTURE_MAIN
{
    print("self-test finished, everything PASS and OK\n");
    semihosting_exit(0);
}
