/* Inflates into a buffer, without a heap. */
#ifndef INFLATED_H
#define INFLATED_H

#include "board.h"
#include "zlib.h"

#define MOST_INFLATED 1400

extern uint8_t inflated_bytes[MOST_INFLATED];
extern int inflated_size;

/* What stands in `adler` of the stream; before it, UNTOUCHED does. */
extern uint32_t inflated_adler;
#define UNTOUCHED 77

/* Inflates a stream that is given in parts of `part` bytes; returns the code of zlib. */
int inflated(const uint8_t *from, size_t size, int window_bits, size_t part);

/* Inflates a whole stream by one call, with too little memory for a window. */
int inflated_at_once(const uint8_t *from, size_t size, int window_bits);

#endif
