#include "check.h"
#include "crc.h"

static void test_check_value(void)
{
    CHECK_EQUAL(0x29b1, crc16((const uint8_t *)"123456789", 9));
}

static void test_differs_for_each_byte(void)
{
    CHECK(crc16((const uint8_t *)"123456789", 9) != crc16((const uint8_t *)"123456788", 9));
}

const struct test tests[] = {
    RUN(test_check_value),
    RUN(test_differs_for_each_byte),
    END,
};
