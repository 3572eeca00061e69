#include "calls.h"
#include "tick.h"

/* Says whether the delay was at least as long as asked for. */
static int32_t call_delay(const struct arguments *arguments)
{
    uint32_t ticks = (uint32_t)arguments->value[0];
    tick_start();
    return tick_delay(ticks) >= ticks;
}

const struct call calls[] = { { "delay", call_delay }, { NULL, NULL } };
