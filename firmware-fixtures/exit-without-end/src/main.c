#include <board.h>

_Noreturn void exit(int code);
_Noreturn void _exit(int code);
void check(uint32_t leaks);
void check_any(uint32_t leaks);

/* As the start files of vendors end a program: nothing takes the code. */
__attribute__((noipa)) _Noreturn void _exit(int code)
{
    (void)code;
    for (;;)
        __asm volatile("");
}

__attribute__((noipa)) _Noreturn void exit(int code)
{
    uart_flush();
    _exit(code);
}

__attribute__((noipa)) void check(uint32_t leaks)
{
    if (leaks) {
        uart_flush();
        exit(1);
    }
}

/* Loads its code on a condition. */
__attribute__((noipa)) void check_any(uint32_t leaks)
{
    exit(leaks != 0);
}

FIXTURE_MAIN
{
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    check(3);
    check_any(0);
}
