#include "calls.h"
#include "thermostat.h"

static int32_t call_fan(const struct arguments *arguments)
{
    thermostat_set_limit((uint16_t)arguments->value[0]);
    return thermostat_fan(arguments->value[1]);
}

const struct call calls[] = { { "fan", call_fan }, { NULL, NULL } };
