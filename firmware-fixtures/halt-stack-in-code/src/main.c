#include <board.h>

#ifdef __riscv
#define HALT_WITH_STACK "mv sp, %0\n1: j 1b"
#else
#define HALT_WITH_STACK "mov sp, %0\n1: b 1b"
#endif

/* Long enough that code lies on both sides of the stack pointer. */
__attribute__((noinline)) static void report(void)
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
}

FIXTURE_MAIN
{
    report();
    uintptr_t stack = ((uintptr_t)report + 23) & ~(uintptr_t)15;
    __asm volatile(HALT_WITH_STACK ::"r"(stack));
}
