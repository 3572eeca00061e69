#ifndef PACKET_H
#define PACKET_H

#include <stdint.h>

#define LONGEST_PACKET 64

/* Removes escapes (0x7d, then the byte xor 0x20) from a packet and returns the sum of its bytes. */
uint32_t packet_sum(const uint8_t *bytes, uint32_t count);

#endif
