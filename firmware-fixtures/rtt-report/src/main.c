#include <rtt.h>

/* Says it wherever somebody may listen: neither waits for a listener. */
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
