#include <board.h>

FIXTURE_MAIN
{
    print("\nrunning 3 tests\n");
    print("test ring::tests::keeps_order ... ok\n");
    print("test ring::tests::refuses_when_full ... ok\n");
    print("test ring::tests::starts_empty ... ok\n");
    print("\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; "
          "finished in 0.00s\n\n");
}
