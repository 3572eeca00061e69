#include <board.h>

#define REG(address) (*(volatile uint32_t *)(address))
#define FPGAIO_COUNTER REG(0x40028018)
#define FPGAIO_PRESCALE REG(0x4002801C)

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    FPGAIO_PRESCALE = 0xFFFFFFFF;
    (void)FPGAIO_PRESCALE;
    (void)FPGAIO_COUNTER;
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
}
