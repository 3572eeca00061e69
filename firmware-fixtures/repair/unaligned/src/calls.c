#include "calls.h"
#include "frame.h"

/* Returns the value of a frame that is given by its bytes. */
static int32_t call_value(const struct arguments *arguments)
{
    static uint8_t frame[FRAME_BYTES] __attribute__((aligned(4)));
    for (unsigned i = 0; i < FRAME_BYTES; i++)
        frame[i] = (uint8_t)arguments->value[i];
    return (int32_t)frame_value(frame);
}

const struct call calls[] = { { "value", call_value }, { NULL, NULL } };
