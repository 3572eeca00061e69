#include <board.h>

/* defmt's table is symbols: each log statement is one, named by a JSON object, and its
 * address in the section is its index on the wire. The section is never loaded. */
#define ENTRY(tag, text, number)                                                   \
    "\"" JSON(tag, text, number) "\": .byte 0\n"
#define JSON(tag, text, number)                                                           \
    "{\\\"package\\\":\\\"defmt-log\\\",\\\"tag\\\":\\\"" tag "\\\",\\\"data\\\":\\\"" text \
    "\\\",\\\"disambiguator\\\":\\\"" #number "\\\",\\\"crate_name\\\":\\\"defmt-log\\\"}"

__asm__(".pushsection .defmt,\"\",%progbits\n"
        "\"_defmt_version_ = 4\":\n"
        "\"_defmt_encoding_ = rzcobs\":\n"
        ".byte 0\n" /* index 0 is no statement */
        ENTRY("defmt_info", "boot {=u8}", 1)
        ENTRY("defmt_warn", "voltage is {=u32} mV", 2)
        ENTRY("defmt_error", "cannot open {=str}", 3)
        ".popsection\n");

enum { BOOT = 1, VOLTAGE = 2, NAME = 3 };

struct channel {
    const char *name;
    uint8_t *buffer;
    uint32_t size;
    volatile uint32_t write;
    volatile uint32_t read;
    uint32_t flags;
};

#define UP_SIZE 512

static uint8_t up_buffer[UP_SIZE];
struct {
    char id[16];
    int32_t up_count;
    int32_t down_count;
    struct channel up[1];
} _SEGGER_RTT;

static void put(uint8_t byte)
{
    struct channel *up = &_SEGGER_RTT.up[0];
    uint32_t next = (up->write + 1) % UP_SIZE;
    while (next == up->read)
        ;
    ((volatile uint8_t *)up_buffer)[up->write] = byte;
    up->write = next;
}

/* Reverse zero-compressing COBS: bytes that are zero become bits of a byte behind them. */
static uint32_t run, zeros;

static void encode(uint8_t byte)
{
    if (run < 7) {
        if (byte == 0)
            zeros |= 1u << run;
        else
            put(byte);
        run++;
        if (run == 7 && zeros != 0) {
            put((uint8_t)zeros);
            run = zeros = 0;
        }
    } else if (byte == 0) {
        put((uint8_t)((run - 7) | 0x80));
        run = zeros = 0;
    } else {
        put(byte);
        if (++run == 134) {
            put(0xff);
            run = zeros = 0;
        }
    }
}

static void end_frame(void)
{
    if (run > 0 && run < 7)
        put((uint8_t)((zeros | (0xffu << run)) & 0x7f));
    else if (run >= 7)
        put((uint8_t)((run - 7) | 0x80));
    run = zeros = 0;
    put(0);
}

static void encode_u32(uint32_t value)
{
    for (int i = 0; i < 4; i++)
        encode((uint8_t)(value >> (8 * i)));
}

static void begin(uint16_t index)
{
    encode((uint8_t)index);
    encode((uint8_t)(index >> 8));
}

FIXTURE_MAIN
{
    _SEGGER_RTT.up_count = 1;
    _SEGGER_RTT.up[0] = (struct channel){ "defmt", up_buffer, UP_SIZE, 0, 0, 2 };
    static const char reversed_id[] = "TTR REGGES";
    __asm volatile("" ::: "memory");
    for (size_t i = 0; i < sizeof reversed_id - 1; i++)
        _SEGGER_RTT.id[sizeof reversed_id - 2 - i] = reversed_id[i];

    begin(BOOT);
    encode(7);
    end_frame();

    begin(VOLTAGE);
    encode_u32(3300);
    end_frame();

    /* A frame that lacks bytes: its last one says that six are before it. */
    put(VOLTAGE);
    put(0x02);
    put(0);

    static const char name[] = "config.bin";
    begin(NAME);
    encode_u32(sizeof name - 1);
    for (size_t i = 0; i < sizeof name - 1; i++)
        encode((uint8_t)name[i]);
    end_frame();

    print("TAP version 13\n1..1\nok 1 - four frames were sent\n");
}
