#include "calls.h"
#include "ring.h"

static struct ring ring;

static int32_t call_clear(const struct arguments *arguments)
{
    (void)arguments;
    ring_clear(&ring);
    return 0;
}

static int32_t call_put(const struct arguments *arguments)
{
    int32_t taken = 0;
    for (unsigned i = 0; i < arguments->count; i++)
        taken += ring_put(&ring, (uint8_t)arguments->value[i]);
    return taken;
}

static int32_t call_get(const struct arguments *arguments)
{
    (void)arguments;
    return ring_get(&ring);
}

const struct call calls[] = {
    { "clear", call_clear },
    { "put", call_put },
    { "get", call_get },
    { NULL, NULL },
};
