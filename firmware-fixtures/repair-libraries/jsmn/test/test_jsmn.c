#include "check.h"
#define JSMN_HEADER
#include "jsmn.h"
#include "modes.h"

#define TOKENS 24

static jsmntok_t tokens[TOKENS];

static size_t length(const char *text)
{
    size_t size = 0;
    while (text[size] != '\0')
        size++;
    return size;
}

static int parse(const char *text, unsigned most)
{
    jsmn_parser parser;
    jsmn_init(&parser);
    return jsmn_parse(&parser, text, length(text), tokens, most);
}

static void is_token(jsmntype_t type, int start, int end, int size, const jsmntok_t *token)
{
    CHECK_EQUAL(type, token->type);
    CHECK_EQUAL(start, token->start);
    CHECK_EQUAL(end, token->end);
    CHECK_EQUAL(size, token->size);
}

static void test_empty_object_and_array(void)
{
    CHECK_EQUAL(1, parse("{}", TOKENS));
    is_token(JSMN_OBJECT, 0, 2, 0, &tokens[0]);
    CHECK_EQUAL(1, parse(" [ ]", TOKENS));
    is_token(JSMN_ARRAY, 1, 4, 0, &tokens[0]);
}

static void test_string_member(void)
{
    CHECK_EQUAL(3, parse("{\"key\":\"text\"}", TOKENS));
    is_token(JSMN_OBJECT, 0, 14, 1, &tokens[0]);
    is_token(JSMN_STRING, 2, 5, 1, &tokens[1]);
    is_token(JSMN_STRING, 8, 12, 0, &tokens[2]);
}

static void test_primitives(void)
{
    CHECK_EQUAL(5, parse("[true, -12 ,null,0.5e3]", TOKENS));
    is_token(JSMN_ARRAY, 0, 23, 4, &tokens[0]);
    is_token(JSMN_PRIMITIVE, 1, 5, 0, &tokens[1]);
    is_token(JSMN_PRIMITIVE, 7, 10, 0, &tokens[2]);
    is_token(JSMN_PRIMITIVE, 17, 22, 0, &tokens[4]);
}

static void test_nested(void)
{
    CHECK_EQUAL(9, parse("{\"a\":[1,{\"b\":2}],\"c\":[]}", TOKENS));
    is_token(JSMN_OBJECT, 0, 24, 2, &tokens[0]);
    is_token(JSMN_ARRAY, 5, 16, 2, &tokens[2]);
    is_token(JSMN_OBJECT, 8, 15, 1, &tokens[4]);
    is_token(JSMN_STRING, 18, 19, 1, &tokens[7]);
}

static void test_escapes(void)
{
    CHECK_EQUAL(1, parse("\"a\\\"b\\u00aF\\n\"", TOKENS));
    is_token(JSMN_STRING, 1, 13, 0, &tokens[0]);
    CHECK_EQUAL(JSMN_ERROR_INVAL, parse("\"\\x\"", TOKENS));
    CHECK_EQUAL(JSMN_ERROR_INVAL, parse("\"\\u00g0\"", TOKENS));
}

static void test_cut_off(void)
{
    CHECK_EQUAL(JSMN_ERROR_PART, parse("{\"a\":[1,2", TOKENS));
    CHECK_EQUAL(JSMN_ERROR_PART, parse("\"open", TOKENS));
    CHECK_EQUAL(JSMN_ERROR_INVAL, parse("[1}", TOKENS));
    CHECK_EQUAL(JSMN_ERROR_INVAL, parse("]", TOKENS));
}

static void test_too_few_tokens(void)
{
    CHECK_EQUAL(JSMN_ERROR_NOMEM, parse("[1,2,3]", 3));
    CHECK_EQUAL(4, parse("[1,2,3]", 4));
}

static void test_ends_where_it_is_told_to(void)
{
    jsmn_parser parser;
    jsmn_init(&parser);
    CHECK_EQUAL(JSMN_ERROR_PART, jsmn_parse(&parser, "\"va\\x\"", 4, tokens, TOKENS));
    jsmn_init(&parser);
    CHECK_EQUAL(JSMN_ERROR_PART, jsmn_parse(&parser, "\"\\u00g0\"", 5, tokens, TOKENS));
}

static void test_counts_all_parts(void)
{
    jsmn_parser parser;
    jsmn_init(&parser);
    CHECK_EQUAL(JSMN_ERROR_PART, jsmn_parse(&parser, "[1,2]", 3, tokens, TOKENS));
    CHECK_EQUAL(3, jsmn_parse(&parser, "[1,2]", 5, tokens, TOKENS));
}

static void test_goes_on_with_more_tokens(void)
{
    jsmn_parser parser;
    jsmn_init(&parser);
    CHECK_EQUAL(JSMN_ERROR_NOMEM, jsmn_parse(&parser, "[1,20]", 6, tokens, 2));
    CHECK_EQUAL(3, jsmn_parse(&parser, "[1,20]", 6, tokens, 3));
    is_token(JSMN_PRIMITIVE, 3, 5, 0, &tokens[2]);
    jsmn_init(&parser);
    CHECK_EQUAL(JSMN_ERROR_NOMEM, jsmn_parse(&parser, "[1,\"ab\"]", 8, tokens, 2));
    CHECK_EQUAL(3, jsmn_parse(&parser, "[1,\"ab\"]", 8, tokens, 3));
    is_token(JSMN_STRING, 4, 6, 0, &tokens[2]);
}

#define LINKED(text) linked_parse(text, length(text))
#define STRICT(text) strict_parse(text, length(text))

static void test_brackets_of_linked_tokens(void)
{
    CHECK_EQUAL(3, LINKED("{\"key\":[]}"));
    CHECK_EQUAL(JSMN_ERROR_INVAL, LINKED("[10}"));
    CHECK_EQUAL(JSMN_ERROR_INVAL, LINKED("\"a\"]"));
}

static void test_bracket_behind_linked_tokens(void)
{
    CHECK_EQUAL(JSMN_ERROR_INVAL, LINKED("{\"key\":1}}"));
}

static void test_strict_keys(void)
{
    CHECK_EQUAL(3, STRICT("{\"a\":1}"));
    CHECK_EQUAL(JSMN_ERROR_INVAL, STRICT("{1:2}"));
}

static void test_strict_spaces(void)
{
    CHECK_EQUAL(3, STRICT("[1\n,2]"));
}

static void test_strict_number_alone(void)
{
    CHECK_EQUAL(1, STRICT("1 "));
}

const struct test tests[] = {
    RUN(test_empty_object_and_array),
    RUN(test_string_member),
    RUN(test_primitives),
    RUN(test_nested),
    RUN(test_escapes),
    RUN(test_cut_off),
    RUN(test_too_few_tokens),
    RUN(test_ends_where_it_is_told_to),
    RUN(test_counts_all_parts),
    RUN(test_goes_on_with_more_tokens),
    RUN(test_brackets_of_linked_tokens),
    RUN(test_bracket_behind_linked_tokens),
    RUN(test_strict_keys),
    RUN(test_strict_spaces),
    RUN(test_strict_number_alone),
    END,
};
