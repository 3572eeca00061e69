#include "calls.h"
#include "settings.h"

static int32_t call_baud(const struct arguments *arguments)
{
    (void)arguments;
    return (int32_t)settings_baud;
}

static int32_t call_address(const struct arguments *arguments)
{
    (void)arguments;
    return (int32_t)settings_address;
}

static int32_t call_retries(const struct arguments *arguments)
{
    (void)arguments;
    return (int32_t)settings_retries;
}

const struct call calls[] = {
    { "baud", call_baud },
    { "address", call_address },
    { "retries", call_retries },
    { NULL, NULL },
};
