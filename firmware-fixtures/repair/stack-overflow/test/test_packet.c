#include "check.h"
#include "packet.h"
#include "unescape.h"

static void test_escape_is_removed(void)
{
    static const uint8_t bytes[] = { 1, 0x7d, 0x5d, 3 };
    uint8_t plain[4];
    CHECK_EQUAL(3, unescape(bytes, sizeof bytes, plain, sizeof plain));
    CHECK_EQUAL(0x7d, plain[1]);
}

static void test_packet_is_summed(void)
{
    static const uint8_t bytes[] = { 1, 2, 0x7d, 0x5e, 4 };
    CHECK_EQUAL(1 + 2 + 0x7e + 4, packet_sum(bytes, sizeof bytes));
}

const struct test tests[] = {
    RUN(test_escape_is_removed),
    RUN(test_packet_is_summed),
    END,
};
