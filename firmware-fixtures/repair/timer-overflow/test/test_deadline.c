#include "check.h"
#include "deadline.h"

static void test_is_over_at_its_time(void)
{
    CHECK(!deadline_over(119, 100, 20));
    CHECK(deadline_over(120, 100, 20));
}

static void test_is_not_over_before_the_counter_wraps(void)
{
    CHECK(!deadline_over(0xfffffff8, 0xfffffff0, 0x20));
}

const struct test tests[] = {
    RUN(test_is_over_at_its_time),
    RUN(test_is_not_over_before_the_counter_wraps),
    END,
};
