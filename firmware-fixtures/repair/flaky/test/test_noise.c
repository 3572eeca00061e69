#include "check.h"
#include "noise.h"

static bool quiet(unsigned channel)
{
    return !(noise_measure() >> channel & 1);
}

#define CHANNEL_IS_QUIET(number)                                                          \
    static void test_channel_##number##_is_quiet(void)                                    \
    {                                                                                     \
        CHECK(quiet(number));                                                             \
    }

CHANNEL_IS_QUIET(0)
CHANNEL_IS_QUIET(1)
CHANNEL_IS_QUIET(2)
CHANNEL_IS_QUIET(3)
CHANNEL_IS_QUIET(4)
CHANNEL_IS_QUIET(5)
CHANNEL_IS_QUIET(6)
CHANNEL_IS_QUIET(7)
CHANNEL_IS_QUIET(8)
CHANNEL_IS_QUIET(9)
CHANNEL_IS_QUIET(10)
CHANNEL_IS_QUIET(11)
CHANNEL_IS_QUIET(12)
CHANNEL_IS_QUIET(13)
CHANNEL_IS_QUIET(14)
CHANNEL_IS_QUIET(15)

const struct test tests[] = {
    RUN(test_channel_0_is_quiet),
    RUN(test_channel_1_is_quiet),
    RUN(test_channel_2_is_quiet),
    RUN(test_channel_3_is_quiet),
    RUN(test_channel_4_is_quiet),
    RUN(test_channel_5_is_quiet),
    RUN(test_channel_6_is_quiet),
    RUN(test_channel_7_is_quiet),
    RUN(test_channel_8_is_quiet),
    RUN(test_channel_9_is_quiet),
    RUN(test_channel_10_is_quiet),
    RUN(test_channel_11_is_quiet),
    RUN(test_channel_12_is_quiet),
    RUN(test_channel_13_is_quiet),
    RUN(test_channel_14_is_quiet),
    RUN(test_channel_15_is_quiet),
    END,
};
