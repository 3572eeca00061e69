#include <board.h>

#define REG(address) (*(volatile uint32_t *)(address))

#if defined(__riscv)
#define HANDLER trap_entry
#define MTIMECMP_LOW REG(JIG_CLINT_BASE + 0x4000)
#define MTIMECMP_HIGH REG(JIG_CLINT_BASE + 0x4004)
#define MIE_MTIE (1u << 7)
#define MSTATUS_MIE (1u << 3)

static void interrupt_at_once(void)
{
    MTIMECMP_LOW = 0;
    MTIMECMP_HIGH = 0;
    __asm volatile("csrs mie, %0" ::"r"(MIE_MTIE));
    __asm volatile("csrs mstatus, %0" ::"r"(MSTATUS_MIE));
}
#else
#define HANDLER tick_handler
#define SYST_CSR REG(0xE000E010)
#define SYST_RVR REG(0xE000E014)
#define SYST_CVR REG(0xE000E018)

static void interrupt_at_once(void)
{
    SYST_RVR = 25000 - 1;
    SYST_CVR = 0;
    SYST_CSR = 7;
    __asm volatile("cpsie i");
}
#endif

void HANDLER(void);

static volatile uint32_t interrupts;

/* What a start file has for an interrupt that a program does not handle: some blink, or count. */
__attribute__((aligned(4))) void HANDLER(void)
{
    for (;;) {
        interrupts++;
        for (volatile uint32_t i = 0; i < 1000; i++)
            ;
    }
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    interrupt_at_once();
}
