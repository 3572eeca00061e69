#include <board.h>

/* Masks all interrupts but NMI, and waits for a debugger that lets the program go on. */
#define ASSERT(condition)                           \
    do {                                            \
        if (!(condition)) {                         \
            volatile uint32_t leave = 0;            \
            __asm volatile("cpsid f" ::: "memory"); \
            while (!leave)                          \
                __asm volatile("wfi");              \
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
