#include "calls.h"
#define JSMN_HEADER
#include "jsmn.h"
#include "modes.h"

#define TOKENS 40

static jsmntok_t tokens[TOKENS];

static uint32_t summed(int count, uint32_t sum)
{
    sum = sum * 31 + (uint32_t)count;
    for (int i = 0; i < count && i < TOKENS; i++) {
        sum = sum * 31 + (uint32_t)tokens[i].type;
        sum = sum * 31 + (uint32_t)tokens[i].start;
        sum = sum * 31 + (uint32_t)tokens[i].end;
        sum = sum * 31 + (uint32_t)tokens[i].size;
    }
    return sum;
}

/* Parses a text and sums up all its tokens. */
static uint32_t parsed(const char *text, size_t size, uint32_t sum)
{
    jsmn_parser parser;
    jsmn_init(&parser);
    return summed(jsmn_parse(&parser, text, size, tokens, TOKENS), sum);
}

static size_t length(const char *text)
{
    size_t size = 0;
    while (text[size] != '\0')
        size++;
    return size;
}

static int32_t call_parse(const struct arguments *arguments)
{
    const char *text = arguments->text[0];
    return (int32_t)(parsed(text, length(text), 7) & 0x7fffffff);
}

/* Parses the first characters of a text, then, with as many tokens as it is told, all. */
static int32_t call_again(const struct arguments *arguments)
{
    const char *text = arguments->text[2];
    jsmn_parser parser;
    jsmn_init(&parser);
    size_t first = (size_t)arguments->value[0];
    uint32_t sum = summed(jsmn_parse(&parser, text, first, tokens, TOKENS), 7);
    unsigned most = (unsigned)arguments->value[1];
    sum = summed(jsmn_parse(&parser, text, length(text), tokens, most), sum);
    sum = summed(jsmn_parse(&parser, text, length(text), tokens, TOKENS), sum);
    return (int32_t)(sum & 0x7fffffff);
}

static int32_t call_linked(const struct arguments *arguments)
{
    const char *text = arguments->text[0];
    return (int32_t)(linked_sum(text, length(text), 7) & 0x7fffffff);
}

static int32_t call_strict(const struct arguments *arguments)
{
    const char *text = arguments->text[0];
    return (int32_t)(strict_sum(text, length(text), 7) & 0x7fffffff);
}

/* Parses random texts of the characters that mean something. */
static int32_t swept(const struct arguments *arguments,
                     uint32_t (*sum_of)(const char *text, size_t size, uint32_t sum))
{
    static const char alphabet[] = "{}[]:,\"\"\\un10a tf\n";
    uint32_t state = (uint32_t)arguments->value[0] * 2654435761u + 1, sum = 7;
    char text[24];
    for (int round = 0; round < 400; round++) {
        size_t size = 0;
        for (; size < sizeof text; size++) {
            state = state * 1664525 + 1013904223;
            text[size] = alphabet[(state >> 16) % (sizeof alphabet - 1)];
        }
        sum = sum_of(text, 1 + (state >> 8) % size, sum);
    }
    return (int32_t)(sum & 0x7fffffff);
}

static int32_t call_sweep(const struct arguments *arguments)
{
    return swept(arguments, parsed);
}

static int32_t call_sweep_linked(const struct arguments *arguments)
{
    return swept(arguments, linked_sum);
}

static int32_t call_sweep_strict(const struct arguments *arguments)
{
    return swept(arguments, strict_sum);
}

const struct call calls[] = {
    { "parse", call_parse },
    { "again", call_again },
    { "linked", call_linked },
    { "strict", call_strict },
    { "sweep", call_sweep },
    { "sweep-linked", call_sweep_linked },
    { "sweep-strict", call_sweep_strict },
    { NULL, NULL },
};
