#include <board.h>

#define SCB_ICSR (*(volatile uint32_t *)0xE000ED04)
#define NMIPENDSET (1u << 31)

void fault_entry(void);
void nmi_handler(void);

void fault_entry(void)
{
    SCB_ICSR = NMIPENDSET;
    for (;;)
        ;
}

void nmi_handler(void)
{
    for (;;)
        ;
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    UNDEFINED_INSTRUCTION();
}
