/* What runs before and below a fixture on every board: memory set-up, text, boots. */

#include "board.h"

extern uint32_t __data_load[], __data_start[], __data_end[];
extern uint32_t __bss_start[], __bss_end[];
extern const uint8_t __build_id_note[];

/* The compiler may call these two for copies and assignments. */
void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memset(void *to, int value, size_t size);

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    while (size-- > 0)
        *t++ = *f++;
    return to;
}

void *memset(void *to, int value, size_t size)
{
    uint8_t *t = to;
    while (size-- > 0)
        *t++ = (uint8_t)value;
    return to;
}

/* Entered by the core's start-up code with a stack and nothing else. */
_Noreturn void runtime_start(void);

_Noreturn void runtime_start(void)
{
    const uint32_t *from = __data_load;
    for (uint32_t *to = __data_start; to < __data_end; to++)
        *to = *from++;
    for (uint32_t *to = __bss_start; to < __bss_end; to++)
        *to = 0;
    uart_init();
    if (fixture_prints_banner)
        banner();
    fixture_main();
    idle();
}

void print(const char *text)
{
    while (*text != '\0')
        uart_put((uint8_t)*text++);
}

/* Subtracts powers of ten, so that cores without a divider need no library. */
void print_dec(uint32_t value)
{
    static const uint32_t powers[] = {1000000000, 100000000, 10000000, 1000000, 100000,
                                      10000,      1000,      100,      10,      1};
    bool begun = false;
    for (size_t i = 0; i < sizeof powers / sizeof powers[0]; i++) {
        uint8_t digit = '0';
        while (value >= powers[i]) {
            value -= powers[i];
            digit++;
        }
        begun = begun || digit != '0' || powers[i] == 1;
        if (begun)
            uart_put(digit);
    }
}

void print_hex_byte(uint8_t value)
{
    static const char digits[] = "0123456789abcdef";
    uart_put((uint8_t)digits[value >> 4]);
    uart_put((uint8_t)digits[value & 15]);
}

void print_hex(uint32_t value)
{
    print("0x");
    for (int shift = 24; shift >= 0; shift -= 8)
        print_hex_byte((uint8_t)(value >> shift));
}

void banner(void)
{
    print("jig-fixture ");
    print(fixture_name);
    print(" on " JIG_BOARD "\n");
}

uint32_t count_boot(void)
{
    /* Arbitrary, but neither what cleared memory nor what erased memory holds. */
    const uint32_t magic = 0x4a494721;
    if (noinit[0] != magic) {
        noinit[0] = magic;
        noinit[1] = 0;
    }
    return ++noinit[1];
}

const uint8_t *build_id(void)
{
    /* An ELF note: three words of sizes and type, the name "GNU", then the id. */
    return __build_id_note + 16;
}

__attribute__((weak)) void on_fault(void) {}
