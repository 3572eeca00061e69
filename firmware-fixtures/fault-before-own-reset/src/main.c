#include <board.h>

/* A handler that tells nobody. */
void on_fault(void)
{
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
