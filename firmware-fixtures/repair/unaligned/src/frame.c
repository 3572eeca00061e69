#include "frame.h"

uint8_t frame_kind(const uint8_t *frame)
{
    return frame[0];
}

uint32_t frame_value(const uint8_t *frame)
{
    return *(const uint32_t *)(frame + 1);
}
