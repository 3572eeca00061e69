#ifndef FRAME_H
#define FRAME_H

#include <stdint.h>

/* A frame: one byte with its kind, four with its value, low byte first. */
#define FRAME_BYTES 5

uint8_t frame_kind(const uint8_t *frame);
uint32_t frame_value(const uint8_t *frame);

#endif
