#include <board.h>

/* About 9600 baud: one byte in a millisecond. */
static void print_slowly(const char *text)
{
    for (; *text != '\0'; text++) {
        uart_put((uint8_t)*text);
        sleep_ms(1);
    }
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("test/test_ring.c:29:test_keeps_order:PASS\n");
    print("\n-----------------------\n");
    print("2 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    print_slowly("test/test_flash.c:17:test_erase_of_a_locked_sector_is_refused:FAIL: Expected 5 Was 0\n");
    print("\n-----------------------\n");
    print("1 Tests 1 Failures 0 Ignored \n");
    print("FAIL\n");
}
