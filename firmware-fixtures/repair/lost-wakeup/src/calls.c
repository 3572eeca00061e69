#include "calls.h"
#include "event.h"

static int32_t left;

static void work(void)
{
    if (--left > 0)
        irq_raise(SPARE_IRQ);
}

/* Raises as many interrupts, each but the first while the one before it is worked on; returns how
 * many calls found an event. */
static int32_t call_chain(const struct arguments *arguments)
{
    int32_t found = 0;
    left = arguments->value[0];
    event_start();
    irq_raise(SPARE_IRQ);
    while (event_poll(work))
        found++;
    return found;
}

const struct call calls[] = { { "chain", call_chain }, { NULL, NULL } };
