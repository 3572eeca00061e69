/* The CMSDK UART, and text. */

#include "board.h"

#define UART_DATA REG(0x40004000)
#define UART_STATE REG(0x40004004)
#define UART_CTRL REG(0x40004008)
#define UART_INTCLEAR REG(0x4000400c)
#define UART_BAUDDIV REG(0x40004010)

#define STATE_TX_FULL 1u
#define STATE_RX_FULL 2u
#define CTRL_TX_RX_AND_RX_IRQ 0xbu
#define INT_RX 2u

void uart_init(void)
{
    UART_BAUDDIV = CLOCK_HZ / 115200;
    UART_CTRL = CTRL_TX_RX_AND_RX_IRQ;
}

void uart_put(uint8_t byte)
{
    while (UART_STATE & STATE_TX_FULL)
        ;
    UART_DATA = byte;
}

void uart_rx_handler(void)
{
    UART_INTCLEAR = INT_RX;
}

/* Interrupts are masked between the look at the state and the sleep, which they end all the same. */
uint8_t uart_wait(void)
{
    irq_enable(UART_RX_IRQ);
    for (;;) {
        __asm volatile("cpsid i" ::: "memory");
        bool full = UART_STATE & STATE_RX_FULL;
        if (!full)
            __asm volatile("wfi");
        __asm volatile("cpsie i\n isb" ::: "memory");
        if (full)
            return (uint8_t)UART_DATA;
    }
}

void print(const char *text)
{
    while (*text != '\0')
        uart_put((uint8_t)*text++);
}

void print_number(int32_t value)
{
    char digits[12];
    char *first = digits + sizeof digits;
    uint32_t rest = value < 0 ? 0u - (uint32_t)value : (uint32_t)value;
    *--first = '\0';
    do {
        *--first = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        *--first = '-';
    print(first);
}

void print_hex(uint32_t value)
{
    print("0x");
    for (int shift = 28; shift >= 0; shift -= 4)
        uart_put((uint8_t)"0123456789abcdef"[value >> shift & 15]);
}
