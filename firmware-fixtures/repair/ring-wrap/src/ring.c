#include "ring.h"

void ring_clear(struct ring *ring)
{
    ring->head = 0;
    ring->tail = 0;
    ring->count = 0;
}

bool ring_put(struct ring *ring, uint8_t byte)
{
    if (ring->count == RING_SIZE)
        return false;
    ring->data[ring->head] = byte;
    ring->head++;
    if (ring->head > RING_SIZE)
        ring->head = 0;
    ring->count++;
    return true;
}

int ring_get(struct ring *ring)
{
    if (ring->count == 0)
        return -1;
    uint8_t byte = ring->data[ring->tail];
    ring->tail++;
    if (ring->tail >= RING_SIZE)
        ring->tail = 0;
    ring->count--;
    return byte;
}
