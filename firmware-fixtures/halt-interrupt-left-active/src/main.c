#include <board.h>

#define REG(address) (*(volatile uint32_t *)(address))
#define VTOR REG(0xe000ed08)

#define VECTORS 64
static volatile uint32_t own_vectors[VECTORS] __attribute__((aligned(256)));

void idle_task(void);
void leave(uint32_t *frame);

__attribute__((noinline, used)) void idle_task(void)
{
    for (;;)
        ;
}

static void switch_task(void)
{
    __asm volatile("svc 0");
    for (;;)
        ;
}

__attribute__((used)) void leave(uint32_t *frame)
{
    frame[6] = (uint32_t)idle_task & ~1u;
    frame[7] = 1u << 24;
}

/* Returns to a thread, below which the first one stays. */
__attribute__((naked)) static void call_system(void)
{
    __asm volatile("mov r0, sp\n"
                   "bl leave\n"
                   "mvn lr, #6\n"
                   "bx lr\n");
}

FIXTURE_MAIN
{
    const volatile uint32_t *vectors = (const volatile uint32_t *)VTOR;
    for (uint32_t i = 0; i < VECTORS; i++)
        own_vectors[i] = vectors[i];
    own_vectors[11] = (uint32_t)call_system;
    own_vectors[14] = (uint32_t)switch_task;
    VTOR = (uint32_t)own_vectors;
    REG(0xe000ed14) |= 1;          /* NONBASETHRDENA */
    REG(0xe000ed20) = 0xffu << 16; /* the lowest priority for PendSV */
    __asm volatile("cpsie i\n dsb\n isb");
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    REG(0xe000ed04) = 1u << 28;
    __asm volatile("dsb\n isb");
    idle();
}
