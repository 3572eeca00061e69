#include <board.h>

/* The second boot reports a complete pass. It must not hide what the first one reported. */
FIXTURE_MAIN
{
    int first = count_boot() == 1;

    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print(first ? "test/test_ring.c:29:test_keeps_order:FAIL: Expected 3 Was 4\n"
                : "test/test_ring.c:29:test_keeps_order:PASS\n");
    print("\n-----------------------\n");
    print(first ? "2 Tests 1 Failures 0 Ignored \nFAIL\n" : "2 Tests 0 Failures 0 Ignored \nOK\n");
    if (first)
        reset_board();
}
