#include "calls.h"
#include "packet.h"

/* Sums a packet of so many bytes of one value. */
static int32_t call_sum(const struct arguments *arguments)
{
    static uint8_t bytes[LONGEST_PACKET];
    uint32_t count = (uint32_t)arguments->value[0];
    if (count > LONGEST_PACKET)
        return -1;
    for (uint32_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)arguments->value[1];
    return (int32_t)packet_sum(bytes, count);
}

const struct call calls[] = { { "sum", call_sum }, { NULL, NULL } };
