#include <board.h>

void trap_entry(void);
__attribute__((noinline)) void park(void);

__attribute__((noinline)) void park(void)
{
    for (;;)
        __asm volatile("wfi");
}

__attribute__((naked, aligned(4))) void trap_entry(void)
{
    __asm volatile("j park");
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    UNDEFINED_INSTRUCTION();
    park();
}
