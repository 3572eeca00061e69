/* One RTT channel in each direction, as SEGGER documents it: ring buffers in RAM, which a
 * debugger reads and writes. A fixture that includes this file owns the control block. A write
 * to a full ring buffer waits for the debugger.
 */
#ifndef JIG_RTT_H
#define JIG_RTT_H

#include <board.h>

struct channel {
    const char *name;
    uint8_t *buffer;
    uint32_t size;
    volatile uint32_t write;
    volatile uint32_t read;
    uint32_t flags;
};

/* The control block a debugger looks for. */
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

/* The id is written last and backwards, so that no incomplete control block is found. */
static inline void rtt_open(const char *up, const char *down)
{
    static const char reversed_id[] = "TTR REGGES";
    _SEGGER_RTT.up_count = 1;
    _SEGGER_RTT.down_count = 1;
    _SEGGER_RTT.up[0] = (struct channel){ up, up_buffer, UP_SIZE, 0, 0, BLOCK_IF_FULL };
    _SEGGER_RTT.down[0] =
        (struct channel){ down, down_buffer, DOWN_SIZE, 0, 0, BLOCK_IF_FULL };
    __asm volatile("" ::: "memory");
    for (size_t i = 0; i < sizeof reversed_id - 1; i++)
        _SEGGER_RTT.id[sizeof reversed_id - 2 - i] = reversed_id[i];
}

static inline void rtt_put(uint8_t byte)
{
    struct channel *up = &_SEGGER_RTT.up[0];
    uint32_t next = (up->write + 1) % UP_SIZE;
    while (next == up->read)
        ;
    ((volatile uint8_t *)up_buffer)[up->write] = byte;
    up->write = next;
}

static inline void rtt_print(const char *text)
{
    while (*text != '\0')
        rtt_put((uint8_t)*text++);
}

/* The next byte from the debugger, or -1. */
static inline int rtt_get(void)
{
    struct channel *down = &_SEGGER_RTT.down[0];
    if (down->read == down->write)
        return -1;
    uint8_t byte = ((volatile uint8_t *)down_buffer)[down->read];
    down->read = (down->read + 1) % DOWN_SIZE;
    return byte;
}

#endif
