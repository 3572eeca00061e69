#include <board.h>

#define REG(address) (*(volatile uint32_t *)(address))
#define SHCSR REG(0xe000ed24)
#define USAGE_FAULT_PRIORITY (*(volatile uint8_t *)0xe000ed1a)

#define BUS_FAULT 5

void fault_entry(void);
void idle_task(void);
void take_fault(uint32_t *frame);

__attribute__((noinline, used)) void idle_task(void)
{
    for (;;)
        ;
}

__attribute__((used)) void take_fault(uint32_t *frame)
{
    uint32_t ipsr;

    __asm volatile("mrs %0, ipsr" : "=r"(ipsr));
    if (ipsr == BUS_FAULT) {
        /* The load has two halfwords. */
        frame[6] += 4;
    } else {
        __asm volatile("ldr.w r0, [%0]" ::"r"(0x60000000) : "r0");
        frame[6] = (uint32_t)idle_task & ~1u;
    }
    REG(0xe000ed28) = REG(0xe000ed28);
    REG(0xe000ed2c) = REG(0xe000ed2c);
}

__attribute__((naked)) void fault_entry(void)
{
    __asm volatile("mov r0, sp\n"
                   "b take_fault\n");
}

FIXTURE_MAIN
{
    SHCSR |= 7u << 16;
    USAGE_FAULT_PRIORITY = 0x80;
    __asm volatile("cpsie i\n dsb\n isb");
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    UNDEFINED_INSTRUCTION();
}
