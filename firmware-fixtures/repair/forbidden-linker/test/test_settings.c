#include "check.h"
#include "settings.h"

static void test_first_baud(void)
{
    CHECK_EQUAL(115200, settings_baud);
}

const struct test tests[] = {
    RUN(test_first_baud),
    END,
};
