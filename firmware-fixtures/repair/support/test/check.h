/* Unit tests that print their results in the format of Unity. A check that fails ends its test. */
#ifndef CHECK_H
#define CHECK_H

#include "board.h"

struct test {
    const char *name;
    const char *file;
    int line;
    void (*run)(void);
};

/* The project's tests; the last one has no name. */
extern const struct test tests[];

#define RUN(function) { #function, __FILE__, __LINE__, function }
#define END { NULL, NULL, 0, NULL }

#define CHECK(condition) CHECK_EQUAL(true, (condition) ? true : false)

#define CHECK_EQUAL(expected, actual)                                                     \
    do {                                                                                  \
        if (!check_equal(__FILE__, __LINE__, (int32_t)(expected), (int32_t)(actual)))     \
            return;                                                                       \
    } while (0)

bool check_equal(const char *file, int line, int32_t expected, int32_t actual);
void tests_run(void);

#endif
