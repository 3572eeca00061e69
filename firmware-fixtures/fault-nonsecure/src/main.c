#include <board.h>

#define REG(address) (*(volatile uint32_t *)(address))
#define HALF(address) (*(volatile uint16_t *)(address))
#define SAU_CTRL REG(0xE000EDD0)
#define SAU_RNR REG(0xE000EDD8)
#define SAU_RBAR REG(0xE000EDDC)
#define SAU_RLAR REG(0xE000EDE0)
#define VTOR_NS REG(0xE002ED08)
#define AIRCR REG(0xE000ED0C)
#define BFHFNMINS (1u << 13) /* HardFault belongs to the non-secure state */
/* Controller in front of the memory: one block after the other is given away. */
#define MPC_CTRL REG(0x58009000)
#define MPC_INDEX REG(0x58009018)
#define MPC_TABLE REG(0x5800901C)
/* The same memory as the secure and the non-secure state see it. */
#define SECURE 0x38200000u
#define NONSECURE 0x28200000u

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    SAU_RNR = 0;
    SAU_RBAR = 0x20000000;
    SAU_RLAR = 0x2FFFFFE1;
    SAU_CTRL = 1;
    for (uint32_t i = 0; i < 16; i++)
        REG(SECURE + 4 * i) = NONSECURE + 0x101;
    HALF(SECURE + 0x100) = 0x4770; /* bx lr */
    HALF(SECURE + 0x200) = 0xDE00; /* udf #0 */
    HALF(SECURE + 0x202) = 0xE7FE; /* b . */
    AIRCR = 0x05FA0000 | BFHFNMINS;
    MPC_CTRL = 0x100;
    MPC_INDEX = 0;
    for (uint32_t i = 0; i < 64; i++)
        MPC_TABLE = 0xFFFFFFFF;
    VTOR_NS = NONSECURE;
    __asm volatile("dsb\n"
                   "isb\n"
                   "msr msp_ns, %0\n"
                   "bxns %1\n" ::"r"(NONSECURE + 0x10000),
                   "r"(NONSECURE + 0x200));
}
