#include "unescape.h"

#define ESCAPE 0x7d
#define FLIPPED 0x20

uint32_t unescape(const uint8_t *from, uint32_t count, uint8_t *to, uint32_t room)
{
    uint32_t length = 0;
    for (uint32_t i = 0; i < count && length < room; i++) {
        uint8_t byte = from[i];
        if (byte == ESCAPE && i + 1 < count)
            byte = from[++i] ^ FLIPPED;
        to[length++] = byte;
    }
    return length;
}
