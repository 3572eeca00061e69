#include "tick.h"

#include "board.h"

#define SYST_CSR REG(0xe000e010)
#define SYST_RVR REG(0xe000e014)
#define SYST_CVR REG(0xe000e018)
#define SYST_ON_CORE_CLOCK_WITH_IRQ 7u

static uint32_t passed;

void systick_handler(void)
{
    passed++;
}

void tick_start(void)
{
    SYST_RVR = CLOCK_HZ / 1000 - 1;
    SYST_CVR = 0;
    SYST_CSR = SYST_ON_CORE_CLOCK_WITH_IRQ;
}

uint32_t tick_delay(uint32_t ticks)
{
    uint32_t start = passed;
    while (passed - start < ticks)
        wait_for_interrupt();
    return passed - start;
}
