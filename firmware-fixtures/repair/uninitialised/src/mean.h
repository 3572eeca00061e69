#ifndef MEAN_H
#define MEAN_H

#include <stdint.h>

/* Returns the mean of samples, rounded towards 0; 0 if there are none. */
int32_t mean(const int32_t *samples, uint32_t count);

#endif
