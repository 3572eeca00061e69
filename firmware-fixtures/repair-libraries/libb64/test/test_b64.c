#include "check.h"
#include <b64/cdecode.h>
#include <b64/cencode.h>

static char text[160];
static char plain[160];

static bool same(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

static int length(const char *of)
{
    int size = 0;
    while (of[size] != '\0')
        size++;
    return size;
}

static bool encodes(const char *from, const char *to)
{
    base64_encodestate state;
    base64_init_encodestate(&state);
    int size = base64_encode_block(from, length(from), text, &state);
    size += base64_encode_blockend(text + size, &state);
    text[size] = '\0';
    return same(text, to);
}

static int decoded(const char *from)
{
    base64_decodestate state;
    base64_init_decodestate(&state);
    memset(plain, 0, sizeof plain);
    return base64_decode_block(from, length(from), plain, &state);
}

static void test_encodes_whole_groups(void)
{
    CHECK(encodes("", "\n"));
    CHECK(encodes("foo", "Zm9v\n"));
    CHECK(encodes("foobar", "Zm9vYmFy\n"));
}

static void test_encodes_padding(void)
{
    CHECK(encodes("f", "Zg==\n"));
    CHECK(encodes("fo", "Zm8=\n"));
    CHECK(encodes("fooba", "Zm9vYmE=\n"));
}

static void test_encodes_all_characters(void)
{
    CHECK(encodes("i\xb7\x1d\xfb\xef\xff", "abcd++//\n"));
}

static void test_breaks_lines(void)
{
    const char *from = "The quick brown fox jumps over the lazy dog, and the dog sleeps on.";
    CHECK(encodes(from, "VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZywgYW5kIHRoZSBk\n"
                        "b2cgc2xlZXBzIG9uLg==\n"));
}

static void test_encodes_in_parts(void)
{
    base64_encodestate state;
    base64_init_encodestate(&state);
    int size = 0;
    for (const char *from = "foobar"; *from != '\0'; from++)
        size += base64_encode_block(from, 1, text + size, &state);
    size += base64_encode_blockend(text + size, &state);
    text[size] = '\0';
    CHECK(same(text, "Zm9vYmFy\n"));
}

static void test_decodes(void)
{
    CHECK_EQUAL(6, decoded("Zm9vYmFy"));
    CHECK(same(plain, "foobar"));
    CHECK_EQUAL(4, decoded("Zm9v\nYg==\n"));
    CHECK(same(plain, "foob"));
}

static void test_decodes_all_values(void)
{
    CHECK_EQUAL(6, decoded("abcd++//"));
    CHECK(same(plain, "i\xb7\x1d\xfb\xef\xff"));
    CHECK_EQUAL(62, base64_decode_value('+'));
    CHECK_EQUAL(25, base64_decode_value('Z'));
    CHECK_EQUAL(51, base64_decode_value('z'));
    CHECK_EQUAL(-1, base64_decode_value('*'));
    CHECK_EQUAL(-1, base64_decode_value('{'));
    CHECK_EQUAL(-1, base64_decode_value('~'));
}

static void test_decodes_in_parts(void)
{
    base64_decodestate state;
    base64_init_decodestate(&state);
    memset(plain, 0, sizeof plain);
    int size = 0;
    for (const char *from = "Zm9vYmFy"; *from != '\0'; from++)
        size += base64_decode_block(from, 1, plain + size, &state);
    CHECK_EQUAL(6, size);
    CHECK(same(plain, "foobar"));
}

const struct test tests[] = {
    RUN(test_encodes_whole_groups),
    RUN(test_encodes_padding),
    RUN(test_encodes_all_characters),
    RUN(test_breaks_lines),
    RUN(test_encodes_in_parts),
    RUN(test_decodes),
    RUN(test_decodes_all_values),
    RUN(test_decodes_in_parts),
    END,
};
