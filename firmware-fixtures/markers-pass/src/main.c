#include <board.h>

FIXTURE_MAIN
{
    print("SELFTEST 3 checks\n");
    print("check ram: begin\ncheck ram: good\n");
    print("check flash: begin\ncheck flash: good\n");
    print("check radio: begin\ncheck radio: left out\n");
    print("SELFTEST done\n");
}
