#include <board.h>

__attribute__((used)) static void safe_mode(void)
{
    print("low power\n");
    for (;;)
        ;
}

/* Returns from the exception to the safe mode; RISC-V clears what tells of the fault. */
#if defined(__riscv)
__attribute__((naked, aligned(4))) static void leave(void)
{
    __asm volatile("csrw mcause, zero\n"
                   "la t0, safe_mode\n"
                   "csrw mepc, t0\n"
                   "mret\n");
}
#else
void fault_entry(void);

__attribute__((naked)) void fault_entry(void)
{
    __asm volatile("ldr r0, =safe_mode\n"
                   "str r0, [sp, #24]\n"
                   "bx lr\n");
}
#endif

FIXTURE_MAIN
{
#if defined(__riscv)
    __asm volatile("csrw mtvec, %0" ::"r"(leave));
#endif
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    UNDEFINED_INSTRUCTION();
}
