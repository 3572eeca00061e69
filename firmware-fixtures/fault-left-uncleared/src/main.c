#include <board.h>

void fault_entry(void);

__attribute__((used)) static void dead_end(void)
{
    for (;;)
        ;
}

/* Returns from the exception, but not to what it has interrupted. */
__attribute__((naked)) void fault_entry(void)
{
    __asm volatile("ldr r0, =dead_end\n"
                   "str r0, [sp, #24]\n"
                   "bx lr\n");
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    UNDEFINED_INSTRUCTION();
}
