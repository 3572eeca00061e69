#include <board.h>

void idle_task(void);

__attribute__((noinline, used)) void idle_task(void)
{
    for (;;)
        ;
}

#if defined(__riscv)
void trap_entry(void);

__attribute__((naked, aligned(4))) void trap_entry(void)
{
    __asm volatile("la t0, idle_task\n"
                   "csrw mepc, t0\n"
                   "csrw mcause, zero\n"
                   "csrw mtval, zero\n"
                   "mret\n");
}

static void run_task(void)
{
}
#else
#define REG(address) (*(volatile uint32_t *)(address))

static uint32_t task_stack[128] __attribute__((aligned(8)));
/* What an exception has pushed when the idle task was interrupted. */
static uint32_t idle_frame[32] __attribute__((aligned(8)));

void fault_entry(void);
void kill_task(void);

__attribute__((used)) void kill_task(void)
{
#if __ARM_ARCH >= 7
    REG(0xe000ed28) = REG(0xe000ed28);
    REG(0xe000ed2c) = REG(0xe000ed2c);
#endif
    idle_frame[6] = (uint32_t)idle_task & ~1u;
    idle_frame[7] = 1u << 24;
    __asm volatile("msr psp, %0" ::"r"(idle_frame));
}

__attribute__((naked)) void fault_entry(void)
{
    __asm volatile("push {r4, lr}\n"
                   "bl kill_task\n"
                   "pop {r4, pc}\n");
}

/* The code behind this runs on the stack of a task. */
__attribute__((naked, noinline)) static void run_task(void)
{
    __asm volatile("msr psp, %0\n"
                   "movs r0, #2\n"
                   "msr control, r0\n"
                   "isb\n"
                   "bx lr\n" ::"r"(task_stack + 128));
}
#endif

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    run_task();
    UNDEFINED_INSTRUCTION();
}
