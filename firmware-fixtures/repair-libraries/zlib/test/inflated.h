/* Inflates into a buffer, without a heap. */
#ifndef INFLATED_H
#define INFLATED_H

#include "board.h"
#include "zlib.h"

#define MOST_INFLATED 1400

extern uint8_t inflated_bytes[MOST_INFLATED];
extern int inflated_size;

/* Inflates a stream that is given in parts of `part` bytes; returns the code of zlib. */
int inflated(const uint8_t *from, size_t size, int window_bits, size_t part);

#endif
