#include "calls.h"
#include "receiver.h"

/* Returns how many of the frames in the given bytes are accepted, plus 100 for each rejected one. */
static int32_t call_receive(const struct arguments *arguments)
{
    struct receiver receiver;
    receiver_start(&receiver);
    for (unsigned i = 0; i < arguments->count; i++)
        receiver_take(&receiver, (uint8_t)arguments->value[i]);
    return (int32_t)(receiver.accepted + 100 * receiver.rejected);
}

const struct call calls[] = { { "receive", call_receive }, { NULL, NULL } };
