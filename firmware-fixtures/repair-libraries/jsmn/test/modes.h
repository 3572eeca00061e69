/* The parser in its other two modes: with tokens that know their parents, and strict. */
#ifndef MODES_H
#define MODES_H

#include "board.h"

/* Parses a text; returns what the parser does. */
int linked_parse(const char *text, size_t size);
int strict_parse(const char *text, size_t size);

/* Parses a text and sums up all its tokens. */
uint32_t linked_sum(const char *text, size_t size, uint32_t sum);
uint32_t strict_sum(const char *text, size_t size, uint32_t sum);

#endif
