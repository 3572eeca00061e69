#include <board.h>

#define REG(address) (*(volatile uint32_t *)(address))
#define MTIMECMP_LOW REG(JIG_CLINT_BASE + 0x4000)
#define MTIMECMP_HIGH REG(JIG_CLINT_BASE + 0x4004)
#define MTIME_LOW REG(JIG_CLINT_BASE + 0xbff8)
#define MTIME_HIGH REG(JIG_CLINT_BASE + 0xbffc)
#define MIE_MTIE (1u << 7)
#define MSTATUS_MIE (1u << 3)

/* Both machines count at 10 MHz or faster. */
#define TICK 2000u

void idle_task(void);

__attribute__((noinline, used)) void idle_task(void)
{
    for (;;)
        ;
}

static void next_tick(void)
{
    uint64_t now = ((uint64_t)MTIME_HIGH << 32) | MTIME_LOW;
    uint64_t then = now + TICK;
    MTIMECMP_HIGH = 0xffffffffu;
    MTIMECMP_LOW = (uint32_t)then;
    MTIMECMP_HIGH = (uint32_t)(then >> 32);
}

__attribute__((interrupt("machine"), aligned(4))) void trap_entry(void)
{
    uint32_t cause;
    __asm volatile("csrr %0, mcause" : "=r"(cause));
    if (cause >> 31)
        next_tick();
    else
        __asm volatile("csrw mepc, %0" ::"r"(idle_task));
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    next_tick();
    __asm volatile("csrs mie, %0\n"
                   "csrs mstatus, %1" ::"r"(MIE_MTIE), "r"(MSTATUS_MIE));
    UNDEFINED_INSTRUCTION();
}
