#ifndef RECEIVER_H
#define RECEIVER_H

#include <stdint.h>

/* Receives frames: 0x7e, a length from 0 to 8, as many bytes, and the sum of length and bytes. */
struct receiver {
    enum { IDLE, LENGTH, PAYLOAD, SUM } state;
    uint8_t length;
    uint8_t taken;
    uint8_t sum;
    uint8_t bytes[8];
    uint32_t accepted; /* frames whose sum was right */
    uint32_t rejected;
};

void receiver_start(struct receiver *receiver);
void receiver_take(struct receiver *receiver, uint8_t byte);

#endif
