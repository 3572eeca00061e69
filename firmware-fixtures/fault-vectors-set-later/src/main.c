#include <board.h>

#define REG(address) (*(volatile uint32_t *)(address))
#define VTOR REG(0xe000ed08)

#define VECTORS 16
static volatile uint32_t own_vectors[VECTORS] __attribute__((aligned(128)));

void idle_task(void);
void kill_task(uint32_t *frame);

__attribute__((noinline, used)) void idle_task(void)
{
    for (;;)
        ;
}

/* Clears the status, and returns to the idle task. */
__attribute__((used)) void kill_task(uint32_t *frame)
{
    REG(0xe000ed28) = REG(0xe000ed28);
    REG(0xe000ed2c) = REG(0xe000ed2c);
    frame[6] = (uint32_t)idle_task & ~1u;
}

__attribute__((naked)) static void own_handler(void)
{
    __asm volatile("mov r0, sp\n"
                   "b kill_task\n");
}

FIXTURE_MAIN
{
    const volatile uint32_t *vectors = (const volatile uint32_t *)VTOR;
    for (uint32_t i = 0; i < VECTORS; i++)
        own_vectors[i] = vectors[i];
    for (uint32_t i = 3; i < 8; i++)
        own_vectors[i] = (uint32_t)own_handler;
    VTOR = (uint32_t)own_vectors;
    __asm volatile("dsb\n isb");
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    UNDEFINED_INSTRUCTION();
}
