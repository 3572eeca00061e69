#include "check.h"
#include "eraser.h"

static void test_erases_one_page(void)
{
    CHECK_EQUAL(1, eraser_run(1));
}

static void test_erases_a_block(void)
{
    CHECK_EQUAL(20, eraser_run(20));
}

const struct test tests[] = {
    RUN(test_erases_one_page),
    RUN(test_erases_a_block),
    END,
};
