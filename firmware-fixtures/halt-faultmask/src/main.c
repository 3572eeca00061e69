#include <board.h>

#define ASSERT(condition)                           \
    do {                                            \
        if (!(condition)) {                         \
            __asm volatile("cpsid f" ::: "memory"); \
            for (;;)                                \
                ;                                   \
        }                                           \
    } while (0)

__attribute__((noinline)) static void queue_send(const uint32_t *queue)
{
    ASSERT(queue);
    print("sent\n");
}

FIXTURE_MAIN
{
    uint32_t *volatile queue = 0;

    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    queue_send(queue);
}
