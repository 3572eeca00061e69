#include <board.h>

#define REG(address) (*(volatile uint32_t *)(address))
#define SHCSR REG(0xE000ED24) /* which faults have handlers of their own */
#define MPU_CTRL REG(0xE000ED94)
#define MPU_RBAR REG(0xE000ED9C)
#define MPU_RASR REG(0xE000EDA0)
/* In which QEMU asks the unit for a debugger. */
#define PAGE 1024u

void fault_entry(void);

/* On the stack that the guard refuses, so it may not use it. */
__attribute__((naked)) void fault_entry(void)
{
    __asm volatile("1: b 1b\n");
}

/* No access to the first 256 bytes of a page below the stack pointer. */
static void guard_stack(void)
{
    uint32_t guard = ((uint32_t)__builtin_frame_address(0) - 512) & ~(PAGE - 1);
    MPU_RBAR = guard | 1u << 4;
    MPU_RASR = 1u << 28 | 7u << 1 | 1;
    MPU_CTRL = 5;
    SHCSR |= 1u << 16;
    /* With interrupts masked, it would be a HardFault, in which the unit refuses nothing. */
    __asm volatile("cpsie i\n"
                   "dsb\n"
                   "isb\n");
}

__attribute__((noinline)) static int deeper(int left)
{
    volatile char room[128];
    room[0] = (char)left;
    return left == 0 ? room[0] : deeper(left - 1) + room[0];
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    guard_stack();
    deeper(100);
}
