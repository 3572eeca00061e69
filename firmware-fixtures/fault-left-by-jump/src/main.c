#include <board.h>

extern const char back[];
static uint32_t saved_sp;

void trap_entry(void);

__attribute__((naked, aligned(4))) void trap_entry(void)
{
    __asm volatile("lw sp, %0\n"
                   "j back\n" ::"m"(saved_sp));
}

FIXTURE_MAIN
{
    __asm volatile("sw sp, %0" : "=m"(saved_sp));
    __asm volatile(".globl back\n"
                   "unimp\n"
                   "back:\n" ::
                       : "memory", "t0", "t1", "t2", "a0", "a1", "a2", "a3", "a4", "a5");
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
}
