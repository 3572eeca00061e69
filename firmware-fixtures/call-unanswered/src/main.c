#include <board.h>

void trap_entry(void);

__attribute__((aligned(4))) void trap_entry(void)
{
    for (;;)
        ;
}

/* Goes on in user mode, which may use all memory. */
static void enter_user_mode(void (*entry)(void))
{
    __asm volatile("csrw pmpaddr1, %0\n"
                   "csrw pmpcfg0, %1\n"
                   "csrw mepc, %2\n"
                   "csrc mstatus, %3\n"
                   "mret\n" ::"r"(-1), "r"(0x1f00), "r"(entry), "r"(3u << 11));
}

static void user_program(void)
{
    register uint32_t a7 __asm("a7") = 999;
    __asm volatile("ecall" ::"r"(a7));
    for (;;)
        ;
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    enter_user_mode(user_program);
}
