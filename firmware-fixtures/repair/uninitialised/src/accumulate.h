#ifndef ACCUMULATE_H
#define ACCUMULATE_H

#include <stdint.h>

/* Adds a sample to a total and stops at the ends of the type. */
void accumulate(int32_t *total, int32_t sample);

#endif
