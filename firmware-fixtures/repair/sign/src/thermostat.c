#include "thermostat.h"

static uint16_t fan_limit = 400;

void thermostat_set_limit(uint16_t tenths)
{
    fan_limit = tenths;
}

bool thermostat_fan(int32_t tenths)
{
    uint32_t limit = fan_limit;
    return tenths > limit;
}
