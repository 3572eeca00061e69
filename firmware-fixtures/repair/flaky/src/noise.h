#ifndef NOISE_H
#define NOISE_H

#include <stdbool.h>
#include <stdint.h>

#define CHANNELS 16

/* Measures which channels are disturbed, one bit each. */
uint32_t noise_measure(void);

#endif
