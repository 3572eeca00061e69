#include <board.h>

#define REG(address) (*(volatile uint32_t *)(address))
#define SYST_CSR REG(0xE000E010)
#define SYST_RVR REG(0xE000E014)
#define SYST_CVR REG(0xE000E018)

void tick_handler(void);

/* What a vendor's start file has for an interrupt that a program does not handle. */
void tick_handler(void)
{
    for (;;)
        ;
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    SYST_RVR = 25000 - 1;
    SYST_CVR = 0;
    SYST_CSR = 7;
    __asm volatile("cpsie i");
}
