#include "calls.h"
#include "timer.h"

/* Starts the timer, with an interrupt or without, and sets dividers one after the other. */
static int32_t call_timer(const struct arguments *arguments)
{
    timer_stop();
    timer_run(arguments->value[0]);
    for (unsigned i = 1; i < arguments->count; i++)
        timer_set_divider((enum timer_divider)arguments->value[i]);
    return (int32_t)timer_control();
}

const struct call calls[] = { { "timer", call_timer }, { NULL, NULL } };
