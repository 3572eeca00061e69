#include <board.h>

#define SYS_WRITE0 0x04

static void tell(const char *text)
{
    register uint32_t r0 __asm("r0") = SYS_WRITE0;
    register const void *r1 __asm("r1") = text;
    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

/* The report that the plan waits for passes. It must not hide the other one. */
FIXTURE_MAIN
{
    tell("self-test begins\n");
    tell("TAP version 13\n1..2\nok 1 - flash\nnot ok 2 - clock\n");
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("test/test_ring.c:29:test_keeps_order:PASS\n");
    print("\n-----------------------\n");
    print("2 Tests 0 Failures 0 Ignored \nOK\n");
}
