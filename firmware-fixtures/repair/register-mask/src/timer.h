#ifndef TIMER_H
#define TIMER_H

#include <stdbool.h>
#include <stdint.h>

/* The first of the board's two timers. */
enum timer_divider { DIVIDE_BY_1, DIVIDE_BY_16, DIVIDE_BY_256 };

void timer_stop(void);
void timer_run(bool with_interrupt);
void timer_set_divider(enum timer_divider divider);
enum timer_divider timer_divider(void);
uint32_t timer_control(void); /* the control register */

#endif
