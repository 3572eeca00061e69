#include <board.h>

extern uint8_t __bss_end[];
static volatile uint32_t received[256];
static volatile bool ready;

/* Calls itself until its stack lies well within the variables. */
__attribute__((noinline)) static void parse(void)
{
    volatile uint8_t line[80];

    for (uint32_t at = 0; at < sizeof line; at++)
        line[at] = 0x55;
    if ((uint32_t)line + 512 > (uint32_t)__bss_end)
        parse();
    while (!ready)
        ;
}

FIXTURE_MAIN
{
    received[0] = 1;
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    /* As if little RAM were left for the stack. */
#if defined(__riscv)
    __asm volatile("mv sp, %0\n"
                   "jalr %1\n" ::"r"(__bss_end + 128), "r"(parse));
#else
    __asm volatile("mov sp, %0\n"
                   "blx %1\n" ::"r"(__bss_end + 128), "r"(parse));
#endif
}
