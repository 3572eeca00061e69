#include "check.h"
#include "peak.h"

static void test_finds_first(void)
{
    static const int32_t samples[] = { 90, 12, 40 };
    CHECK_EQUAL(90, peak(samples, 3));
}

static void test_finds_middle(void)
{
    static const int32_t samples[] = { -5, 12, -40 };
    CHECK_EQUAL(12, peak(samples, 3));
}

static void test_finds_last(void)
{
    static const int32_t samples[] = { 3, 17, 9, 21 };
    CHECK_EQUAL(21, peak(samples, 4));
}

const struct test tests[] = {
    RUN(test_finds_first),
    RUN(test_finds_middle),
    RUN(test_finds_last),
    END,
};
