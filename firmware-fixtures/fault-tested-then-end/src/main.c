#include <board.h>

/* Goes on behind the faulting instruction, which has four bytes. */
__attribute__((naked, aligned(4))) static void step_over(void)
{
    __asm volatile("csrw mscratch, t0\n"
                   "csrr t0, mepc\n"
                   "addi t0, t0, 4\n"
                   "csrw mepc, t0\n"
                   "csrr t0, mscratch\n"
                   "mret\n");
}

FIXTURE_MAIN
{
    __asm volatile("csrw mtvec, %0" ::"r"(step_over));
    __asm volatile(".word 0xffffffff");
    print("test/test_trap.c:12:test_is_stepped_over:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    semihosting_exit(0);
}
