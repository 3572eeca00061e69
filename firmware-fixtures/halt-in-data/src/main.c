#include <board.h>

#if defined(__riscv)
#define LOOP 0x0000006fu /* j . */
#define CODE(address) (address)
#else
#define LOOP 0xe7fee7feu /* b . */
#define CODE(address) ((address) | 1)
#endif

static volatile uint32_t samples[4];

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    samples[0] = LOOP;
    ((void (*)(void))CODE((uintptr_t)samples))();
}
