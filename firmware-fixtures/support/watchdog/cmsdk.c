/* Watchdog of Arm's CMSDK and of the Stellaris: the first time-out raises an interrupt; the
 * second one resets the chip unless the interrupt was cleared. */

#include "board.h"

#define REG(offset) (*(volatile uint32_t *)(JIG_WATCHDOG_BASE + (offset)))
#define LOAD REG(0x000)
#define CONTROL REG(0x008) /* bit 0: count and interrupt, bit 1: reset */
#define LOCK REG(0xc00)

void watchdog_start(uint32_t ms)
{
    LOCK = 0x1acce551;
    LOAD = ms * (JIG_TIMER_HZ / 1000) / 2;
    CONTROL = 3;
}
