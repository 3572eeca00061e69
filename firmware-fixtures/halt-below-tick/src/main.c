#include <board.h>

#define REG(address) (*(volatile uint32_t *)(address))
#define SYST_CSR REG(0xE000E010)
#define SYST_RVR REG(0xE000E014)
#define SYST_CVR REG(0xE000E018)
#define LOOP 0xe7fee7feu /* b . */

static volatile uint32_t samples[4];
static volatile uint32_t work;

void tick_handler(void);

/* Takes most of the time between two ticks, so that a look at the core seldom finds the loop. */
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
    SYST_RVR = 25000 - 1;
    SYST_CVR = 0;
    SYST_CSR = 7;
    __asm volatile("cpsie i");
    samples[0] = LOOP;
    ((void (*)(void))((uintptr_t)samples | 1))();
}
