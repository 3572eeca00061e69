#include <board.h>

/* The control block a debugger looks for, as SEGGER documents it. */
struct channel {
    const char *name;
    uint8_t *buffer;
    uint32_t size;
    volatile uint32_t write;
    volatile uint32_t read;
    uint32_t flags;
};

struct control_block {
    char id[16];
    int32_t up_count;
    int32_t down_count;
    struct channel up[1];
    struct channel down[1];
};

#define UP_SIZE 4096
#define DOWN_SIZE 2048
#define BLOCK_IF_FULL 2

static uint8_t up_buffer[UP_SIZE];
static uint8_t down_buffer[DOWN_SIZE];
struct control_block _SEGGER_RTT;

/* The id is written last and backwards: half a control block must not be found. */
static void open_channels(void)
{
    static const char reversed_id[] = "TTR REGGES";
    _SEGGER_RTT.up_count = 1;
    _SEGGER_RTT.down_count = 1;
    _SEGGER_RTT.up[0] =
        (struct channel){ "echo", up_buffer, UP_SIZE, 0, 0, BLOCK_IF_FULL };
    _SEGGER_RTT.down[0] =
        (struct channel){ "input", down_buffer, DOWN_SIZE, 0, 0, BLOCK_IF_FULL };
    __asm volatile("" ::: "memory");
    for (size_t i = 0; i < sizeof reversed_id - 1; i++)
        _SEGGER_RTT.id[sizeof reversed_id - 2 - i] = reversed_id[i];
}

static void put(uint8_t byte)
{
    struct channel *up = &_SEGGER_RTT.up[0];
    uint32_t next = (up->write + 1) % UP_SIZE;
    while (next == up->read)
        ;
    ((volatile uint8_t *)up_buffer)[up->write] = byte;
    up->write = next;
}

static int get(void)
{
    struct channel *down = &_SEGGER_RTT.down[0];
    if (down->read == down->write)
        return -1;
    uint8_t byte = ((volatile uint8_t *)down_buffer)[down->read];
    down->read = (down->read + 1) % DOWN_SIZE;
    return byte;
}

FIXTURE_MAIN
{
    open_channels();
    for (const char *text = "rtt-echo ready\n"; *text != '\0'; text++)
        put((uint8_t)*text);
    print("TAP version 13\n1..1\nok 1 - channels are open\n");
    for (;;) {
        int byte = get();
        if (byte >= 0)
            put((uint8_t)byte);
        else
            sleep_ms(1);
    }
}
