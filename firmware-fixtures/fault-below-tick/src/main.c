#include <board.h>

#define REG(address) (*(volatile uint32_t *)(address))
#define SYST_CSR REG(0xE000E010)
#define SYST_RVR REG(0xE000E014)
#define SYST_CVR REG(0xE000E018)
#define SHPR1 REG(0xE000ED18) /* priorities of MemManage, BusFault and UsageFault */
#define SHCSR REG(0xE000ED24)
#define USGFAULTENA (1u << 18)

static volatile uint32_t work;

void fault_entry(void);
void tick_handler(void);

void fault_entry(void)
{
    for (;;)
        ;
}

void tick_handler(void)
{
    for (uint32_t i = 0; i < 20000; i++)
        work++;
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    SHCSR |= USGFAULTENA;
    SHPR1 = 0xF0F0F0F0;
    SYST_RVR = 25000 - 1;
    SYST_CVR = 0;
    SYST_CSR = 7;
    __asm volatile("cpsie i");
    UNDEFINED_INSTRUCTION();
}
