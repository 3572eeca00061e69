#ifndef EVENT_H
#define EVENT_H

#include <stdbool.h>

/* Starts to take interrupts as events. */
void event_start(void);

/* Calls `work` if an interrupt has come since the last call; tells whether it did. */
bool event_poll(void (*work)(void));

#endif
