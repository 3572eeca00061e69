#include <rtt.h>

/* Prints on the UART and by RTT. Neither waits for a reader: the text fits into the buffers. */
static void both(const char *text)
{
    print(text);
    rtt_print(text);
}

FIXTURE_MAIN
{
    rtt_open("Terminal", "Terminal");
    rtt_print("jig-fixture rtt-report by RTT\n");
    both("TAP version 13\n1..3\n");
    both("ok 1 - rings are open\n");
    both("ok 2 - rings keep order\n");
    both("ok 3 - rings hold a report\n");
}
