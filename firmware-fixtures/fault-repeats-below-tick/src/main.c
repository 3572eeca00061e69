#include <board.h>

#define REG(address) (*(volatile uint32_t *)(address))
#define SYST_CSR REG(0xE000E010)
#define SYST_RVR REG(0xE000E014)
#define SYST_CVR REG(0xE000E018)
#define VTOR REG(0xE000ED08)
#define SHPR1 REG(0xE000ED18) /* priorities of MemManage, BusFault and UsageFault */
#define SHCSR REG(0xE000ED24)
#define USGFAULTENA (1u << 18)

#define VECTORS 16
static volatile uint32_t vectors_in_ram[VECTORS] __attribute__((aligned(128)));
static volatile uint32_t faults;

static void own_handler(void)
{
    faults++;
}

void tick_handler(void);

void tick_handler(void)
{
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
    SHPR1 = 0xE0E0E0E0;
    SYST_RVR = 1000 - 1;
    SYST_CVR = 0;
    SYST_CSR = 7;
    __asm volatile("dsb\n isb\n cpsie i");
    UNDEFINED_INSTRUCTION();
}
