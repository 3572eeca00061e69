#include "receiver.h"

#define START 0x7e

void receiver_start(struct receiver *receiver)
{
    receiver->state = IDLE;
    receiver->accepted = 0;
    receiver->rejected = 0;
}

static void take_length(struct receiver *receiver, uint8_t length)
{
    if (length > sizeof receiver->bytes) {
        receiver->rejected++;
        receiver->state = IDLE;
        return;
    }
    receiver->length = length;
    receiver->sum = length;
    receiver->taken = 0;
    receiver->state = PAYLOAD;
}

static void take_payload(struct receiver *receiver, uint8_t byte)
{
    receiver->bytes[receiver->taken++] = byte;
    receiver->sum += byte;
    if (receiver->taken >= receiver->length)
        receiver->state = SUM;
}

static void take_sum(struct receiver *receiver, uint8_t sum)
{
    if (sum == receiver->sum)
        receiver->accepted++;
    else
        receiver->rejected++;
    receiver->state = IDLE;
}

void receiver_take(struct receiver *receiver, uint8_t byte)
{
    switch (receiver->state) {
    case IDLE:
        if (byte == START)
            receiver->state = LENGTH;
        break;
    case LENGTH:
        take_length(receiver, byte);
        break;
    case PAYLOAD:
        take_payload(receiver, byte);
        break;
    case SUM:
        take_sum(receiver, byte);
        break;
    }
}
