#include <board.h>

static volatile uint32_t work;

void trap_entry(void);

__attribute__((aligned(4))) static void second_handler(void)
{
    for (;;)
        ;
}

/* Called by the main program, too. */
__attribute__((noinline)) static void halt(bool for_good)
{
    do
        work++;
    while (for_good);
}

__attribute__((aligned(4))) void trap_entry(void)
{
    __asm volatile("csrw mtvec, %0" ::"r"(second_handler));
    halt(true);
}

FIXTURE_MAIN
{
    halt(false);
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    UNDEFINED_INSTRUCTION();
}
