#ifndef TICK_H
#define TICK_H

#include <stdint.h>

/* Starts a tick each millisecond. */
void tick_start(void);

/* Waits for some ticks; returns how many have passed. */
uint32_t tick_delay(uint32_t ticks);

#endif
