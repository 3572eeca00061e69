#include <board.h>

FIXTURE_MAIN
{
    print("jig-fixture semihosting-unknown\n");
    /* No such operation. Nobody but a debugger or an emulator could say so. */
    register uint32_t r0 __asm("r0") = 0x99;
    register const void *r1 __asm("r1") = 0;
    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    for (;;)
        sleep_ms(1000);
}
