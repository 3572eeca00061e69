#include "calls.h"
#include <b64/cdecode.h>
#include <b64/cencode.h>

static char text[400];
static char plain[400];

static uint32_t summed(const char *bytes, int size, uint32_t sum)
{
    sum = sum * 31 + (uint32_t)size;
    for (int i = 0; i < size && i < (int)sizeof text; i++)
        sum = sum * 31 + (uint8_t)bytes[i];
    return sum;
}

/* Encodes in two parts what stands at the beginning of `plain`. */
static uint32_t encoded(int size, int first, uint32_t sum)
{
    base64_encodestate state;
    base64_init_encodestate(&state);
    int made = base64_encode_block(plain, first, text, &state);
    made += base64_encode_block(plain + first, size - first, text + made, &state);
    made += base64_encode_blockend(text + made, &state);
    return summed(text, made, sum);
}

static uint32_t decoded(int size, int first, uint32_t sum)
{
    base64_decodestate state;
    base64_init_decodestate(&state);
    int made = base64_decode_block(text, first, plain, &state);
    made += base64_decode_block(text + first, size - first, plain + made, &state);
    return summed(plain, made, sum);
}

static int copied(char *to, const char *from)
{
    int size = 0;
    for (; from[size] != '\0'; size++)
        to[size] = from[size];
    return size;
}

static int32_t call_encode(const struct arguments *arguments)
{
    return (int32_t)(encoded(copied(plain, arguments->text[0]), 1, 7) & 0x7fffffff);
}

static int32_t call_decode(const struct arguments *arguments)
{
    return (int32_t)(decoded(copied(text, arguments->text[0]), 2, 7) & 0x7fffffff);
}

static int32_t call_value(const struct arguments *arguments)
{
    return base64_decode_value((char)arguments->value[0]);
}

/* Encodes random bytes of all lengths, and decodes random characters. */
static int32_t call_sweep(const struct arguments *arguments)
{
    uint32_t state = (uint32_t)arguments->value[0] * 2654435761u + 1, sum = 7;
    for (int size = 0; size < 120; size++) {
        for (int i = 0; i < size; i++) {
            state = state * 1664525 + 1013904223;
            plain[i] = (char)(state >> 24);
        }
        sum = encoded(size, size / 3, sum);
        for (int i = 0; i < size; i++) {
            state = state * 1664525 + 1013904223;
            text[i] = (char)(43 + (state >> 16) % 80);
        }
        sum = decoded(size, size / 3, sum);
    }
    return (int32_t)(sum & 0x7fffffff);
}

const struct call calls[] = {
    { "encode", call_encode },
    { "decode", call_decode },
    { "value", call_value },
    { "sweep", call_sweep },
    { NULL, NULL },
};
