#include <board.h>

FIXTURE_MAIN
{
    for (;;)
        print("[ring] warning: buffer is full, dropping\n");
}
