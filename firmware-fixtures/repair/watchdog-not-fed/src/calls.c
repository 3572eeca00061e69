#include "calls.h"
#include "eraser.h"

static int32_t call_erase(const struct arguments *arguments)
{
    return (int32_t)eraser_run((uint32_t)arguments->value[0]);
}

const struct call calls[] = { { "erase", call_erase }, { NULL, NULL } };
