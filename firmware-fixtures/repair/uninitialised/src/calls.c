#include "calls.h"
#include "mean.h"

static int32_t call_mean(const struct arguments *arguments)
{
    return mean(arguments->value, arguments->count);
}

const struct call calls[] = { { "mean", call_mean }, { NULL, NULL } };
