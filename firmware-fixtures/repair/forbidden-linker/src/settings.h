#ifndef SETTINGS_H
#define SETTINGS_H

#include <stdint.h>

/* Settings, with the values that they have after a start. */
extern uint32_t settings_baud;
extern uint32_t settings_address;
extern uint32_t settings_retries;

#endif
