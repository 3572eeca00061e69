#include "timer.h"

#include "board.h"

#define TIMER_CONTROL REG(0x40002008)

#define RUNS 0x80u
#define INTERRUPTS 0x20u
#define DIVIDER_SHIFT 2

void timer_stop(void)
{
    TIMER_CONTROL = 0;
}

void timer_run(bool with_interrupt)
{
    TIMER_CONTROL |= with_interrupt ? RUNS | INTERRUPTS : RUNS;
}

void timer_set_divider(enum timer_divider divider)
{
    uint32_t control = TIMER_CONTROL & ~0x18u;
    TIMER_CONTROL = control | (uint32_t)divider << DIVIDER_SHIFT;
}

enum timer_divider timer_divider(void)
{
    return (enum timer_divider)(TIMER_CONTROL >> DIVIDER_SHIFT & 3);
}

uint32_t timer_control(void)
{
    return TIMER_CONTROL;
}
