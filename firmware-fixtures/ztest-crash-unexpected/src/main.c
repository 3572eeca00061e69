#include <board.h>

#define LINE "===================================================================\n"

FIXTURE_MAIN
{
    print("*** Booting Zephyr OS build v3.7.0 ***\n");
    print("Running TESTSUITE error_hook\n" LINE);
    print("START - test_catch_fault\n");
    print("E: ***** BUS FAULT *****\n"
          "E:   Precise data bus error\n"
          "E: >>> ZEPHYR FATAL ERROR 25: Unknown error on CPU 0\n"
          "E: Current thread: 0x20000188 (test_catch_fault)\n"
          "Caught system error -- reason 25 1\n"
          "Fatal error expected as part of test case.\n");
    print(" PASS - test_catch_fault in 0.003 seconds\n" LINE);
    print("START - test_keeps_order\n");
    print("E: >>> ZEPHYR FATAL ERROR 3: Kernel oops on CPU 0\n"
          "E: Current thread: 0x20000240 (logging)\n"
          "Caught system error -- reason 3\n");
    print(" PASS - test_keeps_order in 0.001 seconds\n" LINE);
    print("TESTSUITE error_hook succeeded\n");
    print(LINE "PROJECT EXECUTION SUCCESSFUL\n");
}
