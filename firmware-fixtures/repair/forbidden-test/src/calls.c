#include "calls.h"
#include "scale.h"

static int32_t call_celsius(const struct arguments *arguments)
{
    return scale_celsius(arguments->value[0]);
}

const struct call calls[] = { { "celsius", call_celsius }, { NULL, NULL } };
