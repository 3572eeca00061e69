#include "watchdog.h"

#include "board.h"

#define LOAD REG(0x40008000)
#define CONTROL REG(0x40008008)
#define CLEAR REG(0x4000800c)
#define LOCK REG(0x40008c00)

#define UNLOCK 0x1acce551u
#define COUNT_AND_RESET 3u

/* The first time-out raises an interrupt, the second one resets: each is half of the time. */
void watchdog_start(uint32_t ms)
{
    LOCK = UNLOCK;
    LOAD = ms * (CLOCK_HZ / 1000) / 2;
    CONTROL = COUNT_AND_RESET;
}

void watchdog_feed(void)
{
    CLEAR = 1;
}

void watchdog_stop(void)
{
    CONTROL = 0;
}
