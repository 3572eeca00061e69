#include <board.h>

#define REG(address) (*(volatile uint32_t *)(address))
#define MTIMECMP_LOW REG(JIG_CLINT_BASE + 0x4000)
#define MTIMECMP_HIGH REG(JIG_CLINT_BASE + 0x4004)
#define MTIME_LOW REG(JIG_CLINT_BASE + 0xbff8)
#define INTERRUPT (1u << 31)
#define MIE_MTIE (1u << 7)

static volatile uint32_t work;

__attribute__((interrupt("machine"), aligned(4))) void trap_entry(void);

static void next_tick(void)
{
    MTIMECMP_HIGH = 0;
    MTIMECMP_LOW = MTIME_LOW + JIG_TIMER_HZ / 1000;
}

__attribute__((interrupt("machine"), aligned(4))) void trap_entry(void)
{
    uint32_t cause;
    __asm volatile("csrr %0, mcause" : "=r"(cause));
    if (cause & INTERRUPT) {
        next_tick();
        return;
    }
    next_tick();
    __asm volatile("csrs mie, %0" ::"r"(MIE_MTIE));
    __asm volatile("csrsi mstatus, 8");
    for (;;)
        work++;
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    UNDEFINED_INSTRUCTION();
}
