#ifndef WATCHDOG_H
#define WATCHDOG_H

#include <stdint.h>

/* Starts the watchdog: it resets the board when it is not fed for this time. */
void watchdog_start(uint32_t ms);
void watchdog_feed(void);
void watchdog_stop(void);

#endif
