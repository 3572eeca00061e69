#include <board.h>

#define REG(address) (*(volatile uint32_t *)(address))

void fault_entry(void);
void task(void);
void restart_task(uint32_t *frame);

static volatile uint32_t starts;

__attribute__((noinline, used)) void task(void)
{
    if (starts++ == 0)
        UNDEFINED_INSTRUCTION();
    for (;;)
        ;
}

__attribute__((used)) void restart_task(uint32_t *frame)
{
    REG(0xe000ed28) = REG(0xe000ed28);
    REG(0xe000ed2c) = REG(0xe000ed2c);
    frame[6] = (uint32_t)task & ~1u;
    frame[7] = 1u << 24;
}

__attribute__((naked)) void fault_entry(void)
{
    __asm volatile("mov r0, sp\n"
                   "b restart_task\n");
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    task();
}
