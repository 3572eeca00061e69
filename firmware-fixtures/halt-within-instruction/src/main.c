#include <board.h>

void read_wide(void);

#ifdef __riscv
/* `lui a0, 0xa0010`, the second half of which is `c.j .` */
#define WIDE "lui a0, 0xa0010"
#else
/* `ldr.w lr, [r0, #0x7fe]`, the second half of which is `b .` */
#define WIDE "ldr.w lr, [r0, #0x7fe]"
#endif

__attribute__((naked, noinline, aligned(4))) void read_wide(void)
{
    __asm volatile(WIDE);
}

FIXTURE_MAIN
{
    void (*volatile call)(void) = (void (*)(void))((uintptr_t)read_wide + 2);

    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    call();
}
