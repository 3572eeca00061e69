#include <board.h>

#if defined(__riscv)
#define THUMB 0
#else
#define THUMB 1
#endif

typedef void count_fn(volatile uint32_t *counter);

/* Uses nothing by its address, so that a copy does the same. */
__attribute__((noinline)) static void count(volatile uint32_t *counter)
{
    for (;;) {
        *counter += 1;
        for (volatile uint32_t i = 0; i < 1000; i++)
            ;
    }
}

static volatile uint32_t counter;
static volatile uint32_t copied[32];

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    const volatile uint32_t *code = (const volatile uint32_t *)((uintptr_t)count & ~(uintptr_t)1);
    for (uint32_t i = 0; i < 32; i++)
        copied[i] = code[i];
    ((count_fn *)((uintptr_t)copied | THUMB))(&counter);
}
