#include "check.h"
#include "frame.h"

static const uint8_t frame[FRAME_BYTES] __attribute__((aligned(4))) = { 7, 0x34, 0x12, 0, 0 };

static void test_kind(void)
{
    CHECK_EQUAL(7, frame_kind(frame));
}

static void test_value(void)
{
    CHECK_EQUAL(0x1234, frame_value(frame));
}

const struct test tests[] = {
    RUN(test_kind),
    RUN(test_value),
    END,
};
