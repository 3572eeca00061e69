#include <board.h>

__attribute__((aligned(4))) static void end(void)
{
    semihosting_exit(0);
}

FIXTURE_MAIN
{
    __asm volatile("csrw mtvec, %0" ::"r"(end));
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    UNDEFINED_INSTRUCTION();
}
