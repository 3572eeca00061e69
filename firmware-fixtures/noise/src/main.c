#include <board.h>

/* Clears the screen, moves the cursor, sets the title, asks for the terminal's name and
 * switches to another character set: what a careless terminal would act on. */
static void noise(void)
{
    for (uint32_t byte = 0; byte < 256; byte++)
        uart_put((uint8_t)byte);
    print("\x1b[2J\x1b[1;1H\x1b]0;pwned\x07\x1b[c\x1b(0\x1bP1$r\x1b\\\xc3\x28\xe2\x82\r\n");
}

FIXTURE_MAIN
{
    noise();
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    noise();
    print("test/test_ring.c:29:test_keeps_order:PASS\n");
    print("test/test_ring.c:41:test_refuses_when_full:PASS\n");
    noise();
    print("\n-----------------------\n");
    print("3 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    noise();
}
