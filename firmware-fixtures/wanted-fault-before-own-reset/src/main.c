#include <board.h>

/* A handler under test: it tells of the fault and starts again. */
void on_fault(void)
{
    print("*** HardFault: pc=0x00000100 lr=0x00000101\n");
    reset_board();
    for (;;)
        ;
}

FIXTURE_MAIN
{
    print("app 1\nready\n");
    if (count_boot() == 1)
        UNDEFINED_INSTRUCTION();
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \nOK\n");
}
