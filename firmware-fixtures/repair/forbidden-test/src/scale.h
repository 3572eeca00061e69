#ifndef SCALE_H
#define SCALE_H

#include <stdint.h>

/* Converts whole degrees Fahrenheit to tenths of a degree Celsius, rounded towards 0. */
int32_t scale_celsius(int32_t fahrenheit);

#endif
