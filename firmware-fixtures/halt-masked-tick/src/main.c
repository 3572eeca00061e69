#include <board.h>

#define REG(address) (*(volatile uint32_t *)(address))

static volatile uint32_t ticks;

void queue_send(const uint32_t *queue);

#if defined(__riscv)
#define MTIMECMP_LOW REG(JIG_CLINT_BASE + 0x4000)
#define MTIMECMP_HIGH REG(JIG_CLINT_BASE + 0x4004)
#define MTIME_LOW REG(JIG_CLINT_BASE + 0xbff8)

static void tick_in_a_millisecond(void)
{
    MTIMECMP_HIGH = 0;
    MTIMECMP_LOW = MTIME_LOW + JIG_TIMER_HZ / 1000;
}

void trap_entry(void);

__attribute__((interrupt, aligned(4))) void trap_entry(void)
{
    ticks++;
    tick_in_a_millisecond();
}

static void tick_start(void)
{
    tick_in_a_millisecond();
    __asm volatile("csrs mie, %0\n csrsi mstatus, 8" ::"r"(1u << 7));
}

#define DISABLE_INTERRUPTS() __asm volatile("csrci mstatus, 8")
#else
void tick_handler(void);

void tick_handler(void)
{
    ticks++;
}

static void tick_start(void)
{
    REG(0xE000E014) = 25000 - 1;
    REG(0xE000E018) = 0;
    REG(0xE000E010) = 7;
    __asm volatile("cpsie i");
}

#define DISABLE_INTERRUPTS() __asm volatile("cpsid i")
#endif

/* As FreeRTOS asserts on cores whose interrupts have no priorities to mask by. */
__attribute__((noinline)) void queue_send(const uint32_t *queue)
{
    if (!queue) {
        DISABLE_INTERRUPTS();
        for (;;)
            ;
    }
    print("sent\n");
}

FIXTURE_MAIN
{
    uint32_t *volatile queue = 0;

    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    tick_start();
    while (ticks < 3)
        __asm volatile("wfi");
    queue_send(queue);
}
