#include "check.h"
#include "scale.h"

static void test_freezing_point(void)
{
    CHECK_EQUAL(0, scale_celsius(32));
}

static void test_boiling_point(void)
{
    CHECK_EQUAL(100, scale_celsius(212));
}

const struct test tests[] = {
    RUN(test_freezing_point),
    RUN(test_boiling_point),
    END,
};
