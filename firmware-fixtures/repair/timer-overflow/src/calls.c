#include "calls.h"
#include "deadline.h"

static int32_t call_over(const struct arguments *arguments)
{
    const int32_t *value = arguments->value;
    return deadline_over((uint32_t)value[0], (uint32_t)value[1], (uint32_t)value[2]);
}

const struct call calls[] = { { "over", call_over }, { NULL, NULL } };
