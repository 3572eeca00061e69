#include "check.h"
#include "tick.h"

static void test_no_delay_ends_at_once(void)
{
    CHECK_EQUAL(0, tick_delay(0));
}

static void test_delay_ends(void)
{
    tick_start();
    tick_delay(2);
}

const struct test tests[] = {
    RUN(test_no_delay_ends_at_once),
    RUN(test_delay_ends),
    END,
};
