#include "check.h"
#include "timer.h"

static void test_divider_is_set(void)
{
    timer_stop();
    timer_set_divider(DIVIDE_BY_256);
    CHECK_EQUAL(DIVIDE_BY_256, timer_divider());
}

static void test_divider_is_replaced(void)
{
    timer_stop();
    timer_set_divider(DIVIDE_BY_16);
    timer_set_divider(DIVIDE_BY_256);
    CHECK_EQUAL(DIVIDE_BY_256, timer_divider());
}

static void test_timer_runs_on(void)
{
    timer_stop();
    timer_run(false);
    timer_set_divider(DIVIDE_BY_16);
    CHECK(timer_control() & 0x80);
}

const struct test tests[] = {
    RUN(test_divider_is_set),
    RUN(test_divider_is_replaced),
    RUN(test_timer_runs_on),
    END,
};
