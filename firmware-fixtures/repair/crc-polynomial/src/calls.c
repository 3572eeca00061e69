#include "calls.h"
#include "crc.h"

static int32_t call_crc(const struct arguments *arguments)
{
    uint32_t length = 0;
    while (arguments->text[0][length] != '\0')
        length++;
    return crc16((const uint8_t *)arguments->text[0], length);
}

const struct call calls[] = { { "crc", call_crc }, { NULL, NULL } };
