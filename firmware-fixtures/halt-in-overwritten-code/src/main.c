#include <board.h>

#if defined(__riscv)
#define LOOP 0x0000006fu /* j . */
#define SYNC() __asm volatile(".option arch, +zifencei\n fence.i" ::: "memory")
#else
#define LOOP 0xe7fee7feu /* b . */
#define SYNC() __asm volatile("dsb\n isb" ::: "memory")
#endif

static volatile uint32_t beats;

__attribute__((noinline, aligned(4))) static void beat(void)
{
    beats++;
}

FIXTURE_MAIN
{
    volatile uint32_t *code = (volatile uint32_t *)((uintptr_t)beat & ~(uintptr_t)1);

    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    code[0] = LOOP;
    SYNC();
    for (;;)
        beat();
}
