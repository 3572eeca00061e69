#include "bits.h"
#include "check.h"

static void test_no_bit(void)
{
    CHECK_EQUAL(0, bits_set(0));
}

static void test_all_bits(void)
{
    CHECK_EQUAL(32, bits_set(0xffffffff));
}

const struct test tests[] = {
    RUN(test_no_bit),
    RUN(test_all_bits),
    END,
};
