#include <board.h>

FIXTURE_MAIN
{
    print("Running main() from gtest_main.cc\n");
    print("[==========] Running 3 tests from 2 test suites.\n");
    print("[----------] Global test environment set-up.\n");
    print("[----------] 2 tests from RingTest\n");
    print("[ RUN      ] RingTest.StartsEmpty\n");
    print("[       OK ] RingTest.StartsEmpty (0 ms)\n");
    print("[ RUN      ] RingTest.KeepsOrder\n");
    print("[       OK ] RingTest.KeepsOrder (1 ms)\n");
    print("[----------] 2 tests from RingTest (1 ms total)\n\n");
    print("[----------] 1 test from CrcTest\n");
    print("[ RUN      ] CrcTest.KnownValues\n");
    print("[       OK ] CrcTest.KnownValues (0 ms)\n");
    print("[----------] 1 test from CrcTest (0 ms total)\n\n");
    print("[----------] Global test environment tear-down\n");
    print("[==========] 3 tests from 2 test suites ran. (2 ms total)\n");
    print("[  PASSED  ] 3 tests.\n");
}
