#ifndef DEADLINE_H
#define DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

/* Tells whether `time` ticks have passed since `start`. The counter wraps at 32 bits. */
bool deadline_over(uint32_t now, uint32_t start, uint32_t time);

#endif
