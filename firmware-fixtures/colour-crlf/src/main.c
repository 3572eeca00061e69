#include <board.h>

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:\033[42mPASS\033[0m\r\n");
    print("test/test_ring.c:29:test_keeps_order:\033[42mPASS\033[0m\r\n");
    print("test/test_ring.c:41:test_refuses_when_full:\033[42mPASS\033[0m\r\n");
    print("\r\n-----------------------\r\n");
    print("3 Tests 0 Failures 0 Ignored \r\n");
    print("\033[42mOK\033[0m\r\n");
}
