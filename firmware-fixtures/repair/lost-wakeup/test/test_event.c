#include "check.h"
#include "event.h"

static int worked;

static void count(void)
{
    worked++;
}

static void count_and_raise_once(void)
{
    if (worked++ == 0)
        irq_raise(SPARE_IRQ);
}

static void test_no_event_at_first(void)
{
    event_start();
    CHECK(!event_poll(count));
}

static void test_event_is_seen_once(void)
{
    worked = 0;
    event_start();
    irq_raise(SPARE_IRQ);
    CHECK(event_poll(count));
    CHECK(!event_poll(count));
    CHECK_EQUAL(1, worked);
}

static void test_event_during_work_is_seen(void)
{
    worked = 0;
    event_start();
    irq_raise(SPARE_IRQ);
    CHECK(event_poll(count_and_raise_once));
    CHECK(event_poll(count_and_raise_once));
    CHECK_EQUAL(2, worked);
}

const struct test tests[] = {
    RUN(test_no_event_at_first),
    RUN(test_event_is_seen_once),
    RUN(test_event_during_work_is_seen),
    END,
};
