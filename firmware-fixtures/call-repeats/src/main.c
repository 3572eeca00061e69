#include <board.h>

void trap_entry(void);

__attribute__((naked, aligned(4))) void trap_entry(void)
{
    __asm volatile("mret");
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    __asm volatile("ecall");
}
