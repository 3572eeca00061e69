#include <board.h>

/* Returns two instructions of two bytes in front of the one that has faulted. */
#if defined(__riscv)
__attribute__((naked, aligned(4))) static void go_back(void)
{
    __asm volatile("csrw mscratch, t0\n"
                   "csrr t0, mepc\n"
                   "addi t0, t0, -4\n"
                   "csrw mepc, t0\n"
                   "csrr t0, mscratch\n"
                   "mret\n");
}
#else
void fault_entry(void);

__attribute__((naked)) void fault_entry(void)
{
    __asm volatile("ldr r0, [sp, #24]\n"
                   "sub r0, #4\n"
                   "str r0, [sp, #24]\n"
                   "bx lr\n");
}
#endif

FIXTURE_MAIN
{
#if defined(__riscv)
    __asm volatile("csrw mtvec, %0" ::"r"(go_back));
#endif
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    __asm volatile("nop\n nop");
    UNDEFINED_INSTRUCTION();
}
