#ifndef RING_H
#define RING_H

#include <stdbool.h>
#include <stdint.h>

#define RING_SIZE 8

struct ring {
    uint8_t data[RING_SIZE];
    uint8_t head; /* where the next byte is put */
    uint8_t tail; /* where the next byte is taken from */
    uint8_t count;
};

void ring_clear(struct ring *ring);
bool ring_put(struct ring *ring, uint8_t byte); /* false if it is full */
int ring_get(struct ring *ring);                /* -1 if it is empty */

#endif
