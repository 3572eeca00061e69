#include <board.h>

void trap_entry(void);
void spin(void);
void set_return(void);

__attribute__((noinline, used)) void set_return(void)
{
    __asm volatile("csrw mepc, %0\n"
                   "mret\n" ::"r"(spin));
}

/* The loop looks like one that the handler has called, and `mepc` as if the loop had faulted. */
__attribute__((naked, aligned(4))) void trap_entry(void)
{
    __asm volatile("addi sp, sp, -16\n"
                   "sw ra, 0(sp)\n"
                   "call set_return\n"
                   "lw ra, 0(sp)\n"
                   "addi sp, sp, 16\n"
                   "mret\n");
}

__attribute__((naked, noinline)) void spin(void)
{
    __asm volatile("1: j 1b\n");
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    UNDEFINED_INSTRUCTION();
}
