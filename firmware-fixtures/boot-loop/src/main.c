#include <board.h>

FIXTURE_MAIN
{
    print("starting services\n");
    sleep_ms(20);
    reset_board();
}
