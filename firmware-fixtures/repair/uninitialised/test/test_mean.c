#include "check.h"
#include "accumulate.h"
#include "mean.h"

static void test_total_stops_at_the_end(void)
{
    int32_t total = INT32_MAX - 1;
    accumulate(&total, 5);
    CHECK_EQUAL(INT32_MAX, total);
}

static void test_mean_of_none(void)
{
    CHECK_EQUAL(0, mean(NULL, 0));
}

static void test_mean_of_some(void)
{
    static const int32_t samples[] = { 10, 20, 60 };
    CHECK_EQUAL(30, mean(samples, 3));
}

const struct test tests[] = {
    RUN(test_total_stops_at_the_end),
    RUN(test_mean_of_none),
    RUN(test_mean_of_some),
    END,
};
