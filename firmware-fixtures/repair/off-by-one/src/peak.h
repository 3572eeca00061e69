#ifndef PEAK_H
#define PEAK_H

#include <stdint.h>

/* Returns the largest of the samples; there is at least one. */
int32_t peak(const int32_t *samples, uint32_t count);

#endif
