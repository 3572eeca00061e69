#ifndef THERMOSTAT_H
#define THERMOSTAT_H

#include <stdbool.h>
#include <stdint.h>

/* Sets the temperature above which the fan runs, in tenths of a degree from 0. */
void thermostat_set_limit(uint16_t tenths);

/* Tells whether the fan runs at a temperature in tenths of a degree. */
bool thermostat_fan(int32_t tenths);

#endif
