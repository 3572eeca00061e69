#include "check.h"
#include "ring.h"

static struct ring ring;

static void test_starts_empty(void)
{
    ring_clear(&ring);
    CHECK_EQUAL(-1, ring_get(&ring));
}

static void test_refuses_when_full(void)
{
    ring_clear(&ring);
    for (uint8_t i = 0; i < RING_SIZE; i++)
        CHECK(ring_put(&ring, i));
    CHECK(!ring_put(&ring, 99));
}

static void test_wraps(void)
{
    ring_clear(&ring);
    for (uint8_t round = 0; round < 3; round++) {
        for (uint8_t i = 0; i < RING_SIZE; i++)
            CHECK(ring_put(&ring, (uint8_t)(10 * round + i)));
        for (uint8_t i = 0; i < RING_SIZE; i++)
            CHECK_EQUAL(10 * round + i, ring_get(&ring));
    }
}

const struct test tests[] = {
    RUN(test_starts_empty),
    RUN(test_refuses_when_full),
    RUN(test_wraps),
    END,
};
