#include <board.h>

#define REG(address) (*(volatile uint32_t *)(address))
#define VTOR REG(0xE000ED08)
#define SHCSR REG(0xE000ED24)
#define USGFAULTENA (1u << 18)

#define VECTORS 16
static volatile uint32_t vectors_in_ram[VECTORS] __attribute__((aligned(128)));
static volatile uint32_t faults;

static void own_handler(void)
{
    faults++;
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    const volatile uint32_t *vectors = (const volatile uint32_t *)VTOR;
    for (uint32_t i = 0; i < VECTORS; i++)
        vectors_in_ram[i] = vectors[i];
    for (uint32_t i = 3; i < 8; i++)
        vectors_in_ram[i] = (uint32_t)own_handler;
    VTOR = (uint32_t)vectors_in_ram;
    SHCSR |= USGFAULTENA;
    __asm volatile("dsb\n isb");
    UNDEFINED_INSTRUCTION();
}
