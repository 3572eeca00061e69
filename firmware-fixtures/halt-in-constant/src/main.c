#include <board.h>

/* A table in the section of the code, where many linker scripts put constants. Half of it is a loop. */
__asm(".pushsection .text.table, \"ax\", %progbits\n"
      ".balign 4\n"
      ".global table\n"
      "table: .word 0xbf00bf00, 0xe7fee7fe, 0x20001000, 0x20001000, 0x20001000\n"
      ".popsection");
extern const uint32_t table[];

FIXTURE_MAIN
{
    void (*volatile call)(void) = (void (*)(void))((uintptr_t)table | 1);

    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("\n-----------------------\n");
    print("1 Tests 0 Failures 0 Ignored \n");
    print("OK\n");
    call();
}
