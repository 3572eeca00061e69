/* The image tests itself, then answers calls. */

#include "calls.h"
#include "check.h"

int main(void)
{
    tests_run();
    calls_serve();
}
