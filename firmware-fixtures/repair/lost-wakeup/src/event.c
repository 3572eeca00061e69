#include "event.h"

#include "board.h"

static volatile bool pending;

void spare_handler(void)
{
    pending = true;
}

void event_start(void)
{
    pending = false;
    irq_enable(SPARE_IRQ);
}

bool event_poll(void (*work)(void))
{
    if (!pending)
        return false;
    work();
    pending = false;
    return true;
}
