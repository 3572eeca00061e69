#include <board.h>

#define STACK_WORDS 32
/* The threads of a system, each with its stack. */
static struct {
    volatile uint32_t state;
    uint64_t stack[STACK_WORDS];
} threads[4];

__attribute__((noinline)) static void parse(void)
{
    volatile uint8_t line[400];

    for (uint32_t at = 0; at < sizeof line; at++)
        line[at] = 0x55;
    idle();
}

__attribute__((noinline)) static void thread(void)
{
    parse();
}

FIXTURE_MAIN
{
    threads[3].state = 1;
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
#if defined(__riscv)
    __asm volatile("mv sp, %0\n"
                   "li ra, 0\n"
                   "jr %1\n" ::"r"(threads[3].stack + STACK_WORDS), "r"(thread));
#else
    __asm volatile("mov sp, %0\n"
                   "movs r0, #0\n"
                   "mov lr, r0\n"
                   "bx %1\n" ::"r"(threads[3].stack + STACK_WORDS), "r"(thread) : "r0");
#endif
}
