/* Starts the firmware by the start-up that the other fixtures of a board have. */

#include "board.h"

#define JIG_FIXTURE "library"
#include "../machine/board.h"

#define STACK_PATTERN 0xa5a5a5a5u
#define PAINTED_WORDS 128

int main(void);

FIXTURE_MAIN_SILENT
{
    main();
}

void sleep_for_good(void)
{
    idle();
}

/* Paints what the next function gets, so that a variable without a value is the same each time. */
__attribute__((noinline)) void stack_paint(void)
{
    volatile uint32_t words[PAINTED_WORDS];
    for (unsigned i = 0; i < PAINTED_WORDS; i++)
        words[i] = STACK_PATTERN;
    (void)words[0];
}
