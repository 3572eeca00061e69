#include <board.h>

#if defined(__riscv)
void trap_entry(void);

__attribute__((naked, aligned(4))) void trap_entry(void)
{
    __asm volatile("mret");
}
#else
void fault_entry(void);

__attribute__((naked)) void fault_entry(void)
{
    __asm volatile("bx lr");
}
#endif

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    UNDEFINED_INSTRUCTION();
}
