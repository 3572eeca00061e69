#include "crc.h"

#define POLYNOMIAL 0x8005u

uint16_t crc16(const uint8_t *bytes, uint32_t count)
{
    uint32_t crc = 0xffff;
    for (uint32_t i = 0; i < count; i++) {
        crc ^= (uint32_t)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x8000 ? crc << 1 ^ POLYNOMIAL : crc << 1;
    }
    return (uint16_t)crc;
}
