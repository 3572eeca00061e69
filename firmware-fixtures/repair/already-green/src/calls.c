#include "bits.h"
#include "calls.h"

static int32_t call_bits(const struct arguments *arguments)
{
    return (int32_t)bits_set((uint32_t)arguments->value[0]);
}

const struct call calls[] = { { "bits", call_bits }, { NULL, NULL } };
