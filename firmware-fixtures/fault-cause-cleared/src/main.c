#include <board.h>

void trap_entry(void);

__attribute__((naked, aligned(4))) void trap_entry(void)
{
    __asm volatile("csrw mcause, zero\n"
                   "csrw mepc, zero\n"
                   "csrw mtval, zero\n"
                   "1: j 1b\n");
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    UNDEFINED_INSTRUCTION();
}
