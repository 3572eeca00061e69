/* The parser in the mode that the file has chosen which includes this, with names of its own. */

#define JSMN_STATIC
#include "jsmn.h"
#include "modes.h"

#define TOKENS 40

static jsmntok_t tokens[1 + TOKENS];

int MODE(parse)(const char *text, size_t size)
{
    jsmn_parser parser;
    jsmn_init(&parser);
    /* In front of the tokens is something else, which is not to be read. */
    tokens[0].type = JSMN_OBJECT;
    return jsmn_parse(&parser, text, size, tokens + 1, TOKENS);
}

uint32_t MODE(sum)(const char *text, size_t size, uint32_t sum)
{
    int count = MODE(parse)(text, size);
    sum = sum * 31 + (uint32_t)count;
    for (int i = 1; i <= count && i <= TOKENS; i++) {
        sum = sum * 31 + (uint32_t)tokens[i].type;
        sum = sum * 31 + (uint32_t)tokens[i].start;
        sum = sum * 31 + (uint32_t)tokens[i].end;
        sum = sum * 31 + (uint32_t)tokens[i].size;
    }
    return sum;
}
