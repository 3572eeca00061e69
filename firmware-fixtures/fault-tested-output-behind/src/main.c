#include <board.h>

/* Goes on behind the faulting instruction of two bytes, as an emulation of it would. */
#if defined(__riscv)
__attribute__((naked, aligned(4))) static void step_over(void)
{
    __asm volatile("csrw mscratch, t0\n"
                   "csrr t0, mepc\n"
                   "addi t0, t0, 2\n"
                   "csrw mepc, t0\n"
                   "csrr t0, mscratch\n"
                   "mret\n");
}
#else
void fault_entry(void);

__attribute__((naked)) void fault_entry(void)
{
    __asm volatile("ldr r0, [sp, #24]\n"
                   "add r0, #2\n"
                   "str r0, [sp, #24]\n"
                   "bx lr\n");
}
#endif

FIXTURE_MAIN
{
#if defined(__riscv)
    __asm volatile("csrw mtvec, %0" ::"r"(step_over));
#endif
    print("test/test_trap.c:12:test_starts:PASS\n");
    UNDEFINED_INSTRUCTION();
    /* Dots as those that begin lines of the emulator. */
    print("test trap ... ok\n");
    print("test/test_trap.c:19:test_is_stepped_over:PASS\n");
    print("\n-----------------------\n");
    print("2 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    print("idle...done, and waiting for the next command\n");
}
