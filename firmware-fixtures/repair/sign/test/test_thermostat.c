#include "check.h"
#include "thermostat.h"

static void test_fan_runs_above_limit(void)
{
    thermostat_set_limit(300);
    CHECK(thermostat_fan(301));
    CHECK(!thermostat_fan(300));
}

static void test_fan_rests_in_frost(void)
{
    thermostat_set_limit(300);
    CHECK(!thermostat_fan(-50));
}

const struct test tests[] = {
    RUN(test_fan_runs_above_limit),
    RUN(test_fan_rests_in_frost),
    END,
};
