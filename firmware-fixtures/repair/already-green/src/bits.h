#ifndef BITS_H
#define BITS_H

#include <stdint.h>

/* Counts the bits that are set. */
uint32_t bits_set(uint32_t word);

#endif
