#include <board.h>

FIXTURE_MAIN
{
    print("\nrunning 0 tests\n");
    print("\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 4 filtered out; "
          "finished in 0.00s\n\n");
}
