#include <rtt.h>

FIXTURE_MAIN
{
    rtt_open("echo", "input");
    rtt_print("rtt-echo ready\n");
    print("TAP version 13\n1..1\nok 1 - channels are open\n");
    for (;;) {
        int byte = rtt_get();
        if (byte >= 0)
            rtt_put((uint8_t)byte);
        else
            sleep_ms(1);
    }
}
