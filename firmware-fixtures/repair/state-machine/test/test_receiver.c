#include "check.h"
#include "receiver.h"

static struct receiver receiver;

static void take(const uint8_t *bytes, uint32_t count)
{
    receiver_start(&receiver);
    for (uint32_t i = 0; i < count; i++)
        receiver_take(&receiver, bytes[i]);
}

static void test_frame_is_accepted(void)
{
    static const uint8_t bytes[] = { 0x7e, 2, 10, 20, 32 };
    take(bytes, sizeof bytes);
    CHECK_EQUAL(1, receiver.accepted);
    CHECK_EQUAL(10, receiver.bytes[0]);
}

static void test_wrong_sum_is_rejected(void)
{
    static const uint8_t bytes[] = { 0x7e, 1, 10, 12 };
    take(bytes, sizeof bytes);
    CHECK_EQUAL(1, receiver.rejected);
}

static void test_too_long_frame_is_rejected(void)
{
    static const uint8_t bytes[] = { 0x7e, 9 };
    take(bytes, sizeof bytes);
    CHECK_EQUAL(1, receiver.rejected);
}

static void test_empty_frame_is_accepted(void)
{
    static const uint8_t bytes[] = { 0x7e, 0, 0, 0x7e, 1, 5, 6 };
    take(bytes, sizeof bytes);
    CHECK_EQUAL(2, receiver.accepted);
}

const struct test tests[] = {
    RUN(test_frame_is_accepted),
    RUN(test_wrong_sum_is_rejected),
    RUN(test_too_long_frame_is_rejected),
    RUN(test_empty_frame_is_accepted),
    END,
};
