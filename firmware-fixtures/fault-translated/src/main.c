#include <board.h>

#define SPAN (4u << 20)    /* of an entry of the first table */
#define LEAF 0xcf          /* valid, readable, writable, executable, accessed, dirty */
#define MODE_SV32 (1u << 31)
#define MPP (3u << 11)
#define MPP_SUPERVISOR (1u << 11)

/* Each address is translated to itself. */
static uint32_t table[1024] __attribute__((aligned(4096)));

__attribute__((aligned(4))) static void supervisor_trap(void)
{
    for (;;)
        ;
}

static void supervisor_program(void)
{
    UNDEFINED_INSTRUCTION();
}

FIXTURE_MAIN
{
    for (uint32_t i = 0; i < 1024; i++)
        table[i] = (i * (SPAN >> 12)) << 10 | LEAF;
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    __asm volatile("csrw pmpaddr1, %0\n"
                   "csrw pmpcfg0, %1\n" ::"r"(-1), "r"(0x1f00));
    __asm volatile("csrw medeleg, %0\n"
                   "csrw stvec, %1\n"
                   "csrw satp, %2\n"
                   "sfence.vma\n" ::"r"(0xffff), "r"(supervisor_trap),
                   "r"(MODE_SV32 | (uint32_t)table >> 12));
    __asm volatile("csrw mepc, %0\n"
                   "csrc mstatus, %1\n"
                   "csrs mstatus, %2\n"
                   "mret\n" ::"r"(supervisor_program), "r"(MPP), "r"(MPP_SUPERVISOR));
}
