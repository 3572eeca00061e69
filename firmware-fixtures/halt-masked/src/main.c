#include <board.h>

/* As the ports of FreeRTOS disable interrupts. */
#define DISABLE_INTERRUPTS() __asm volatile("msr basepri, %0\n isb" ::"r"(0x50) : "memory")
#define ASSERT(condition)          \
    do {                           \
        if (!(condition)) {        \
            DISABLE_INTERRUPTS();  \
            for (;;)               \
                ;                  \
        }                          \
    } while (0)

void queue_send(const uint32_t *queue);
void exit_masked(void);

__attribute__((noinline)) void queue_send(const uint32_t *queue)
{
    ASSERT(queue);
    print("sent\n");
}

/* What a healthy program may end in. */
__attribute__((noinline)) void exit_masked(void)
{
    DISABLE_INTERRUPTS();
    for (;;)
        ;
}

FIXTURE_MAIN
{
    uint32_t *volatile queue = 0;

    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    queue_send(queue);
    exit_masked();
}
