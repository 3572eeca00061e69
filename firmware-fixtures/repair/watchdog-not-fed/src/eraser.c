#include "eraser.h"

#include "board.h"
#include "watchdog.h"

#define SYST_CSR REG(0xe000e010)
#define SYST_RVR REG(0xe000e014)
#define SYST_CVR REG(0xe000e018)
#define SYST_ON_CORE_CLOCK_WITH_IRQ 7u

#define PAGE_MS 30
#define WATCHDOG_MS 500

static volatile uint32_t pages_done;

/* The flash controller of the emulated board is its timer. */
void systick_handler(void)
{
    pages_done++;
}

uint32_t eraser_run(uint32_t pages)
{
    pages_done = 0;
    watchdog_start(WATCHDOG_MS);
    SYST_RVR = PAGE_MS * (CLOCK_HZ / 1000) / 2 - 1;
    SYST_CVR = 0;
    SYST_CSR = SYST_ON_CORE_CLOCK_WITH_IRQ;
    while (pages_done < 2 * pages)
        wait_for_interrupt();
    SYST_CSR = 0;
    watchdog_stop();
    return pages_done / 2;
}
