#ifndef UNESCAPE_H
#define UNESCAPE_H

#include <stdint.h>

/* Writes at most `room` bytes; returns how many. */
uint32_t unescape(const uint8_t *from, uint32_t count, uint8_t *to, uint32_t room);

#endif
