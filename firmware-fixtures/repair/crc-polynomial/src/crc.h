#ifndef CRC_H
#define CRC_H

#include <stdint.h>

/* CRC-16/IBM-3740: polynomial 0x1021, from 0xffff, not reflected. */
uint16_t crc16(const uint8_t *bytes, uint32_t count);

#endif
