#include <board.h>

static void handle(void)
{
    sleep_ms(30);
}

#if defined(__riscv)
__attribute__((interrupt("machine"), aligned(4))) void trap_entry(void);

__attribute__((interrupt("machine"), aligned(4))) void trap_entry(void)
{
    handle();
}
#else
void fault_entry(void);

void fault_entry(void)
{
    handle();
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
