#include <board.h>

/* Tells of the first fault and goes on behind it, and stays in the second without a word. */
static volatile bool crashed;

__attribute__((used)) static void tell(void)
{
    if (crashed)
        for (;;)
            ;
    crashed = true;
    print("*** HardFault: pc=0x00000042\n");
}

#if defined(__riscv)
__attribute__((naked, aligned(4))) static void step_over(void)
{
    __asm volatile("addi sp, sp, -16\n"
                   "sw ra, 0(sp)\n"
                   "call tell\n"
                   "lw ra, 0(sp)\n"
                   "addi sp, sp, 16\n"
                   "csrr t0, mepc\n"
                   "addi t0, t0, 2\n"
                   "csrw mepc, t0\n"
                   "mret\n");
}
/* The handler saves none of the registers that a call may change. */
#define CRASH()                                                                           \
    __asm volatile("unimp" ::: "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a0", "a1", "a2", \
                   "a3", "a4", "a5", "a6", "a7", "memory")
#else
void fault_entry(void);

__attribute__((naked)) void fault_entry(void)
{
    __asm volatile("ldr r0, [sp, #24]\n"
                   "add r0, #2\n"
                   "str r0, [sp, #24]\n"
                   "push {r4, lr}\n"
                   "bl tell\n"
                   "pop {r4, pc}\n");
}
#define CRASH() UNDEFINED_INSTRUCTION()
#endif

FIXTURE_MAIN
{
#if defined(__riscv)
    __asm volatile("csrw mtvec, %0" ::"r"(step_over));
#endif
    CRASH();
    print("test/test_trap.c:12:test_is_stepped_over:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    CRASH();
}
