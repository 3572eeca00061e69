/* Runs the tests and prints their report. */

#include "check.h"

static const struct test *running;
static bool failed;

static void print_result(const char *file, int line, const char *result)
{
    print(file);
    print(":");
    print_number(line);
    print(":");
    print(running->name);
    print(result);
}

bool check_equal(const char *file, int line, int32_t expected, int32_t actual)
{
    if (expected == actual)
        return true;
    failed = true;
    print_result(file, line, ":FAIL: Expected ");
    print_number(expected);
    print(" Was ");
    print_number(actual);
    print("\n");
    return false;
}

void tests_run(void)
{
    int count = 0, failures = 0;
    for (running = tests; running->name != NULL; running++) {
        failed = false;
        stack_paint();
        running->run();
        if (!failed)
            print_result(running->file, running->line, ":PASS\n");
        count++;
        failures += failed;
    }
    print("\n-----------------------\n");
    print_number(count);
    print(" Tests ");
    print_number(failures);
    print(" Failures 0 Ignored \n");
    print(failures > 0 ? "FAIL\n" : "OK\n");
}
