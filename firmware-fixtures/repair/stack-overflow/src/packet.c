#include "packet.h"

#include "unescape.h"

uint32_t packet_sum(const uint8_t *bytes, uint32_t count)
{
    uint8_t plain[4096];
    uint32_t length = unescape(bytes, count, plain, sizeof plain);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < length; i++)
        sum += plain[i];
    return sum;
}
