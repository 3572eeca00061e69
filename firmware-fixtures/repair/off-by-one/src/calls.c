#include "calls.h"
#include "peak.h"

static int32_t call_peak(const struct arguments *arguments)
{
    return peak(arguments->value, arguments->count);
}

const struct call calls[] = { { "peak", call_peak }, { NULL, NULL } };
