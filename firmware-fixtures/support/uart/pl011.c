/* Arm's PL011, as on the Stellaris. */

#include "board.h"

#define REG(offset) (*(volatile uint32_t *)(JIG_UART_BASE + (offset)))
#define DR REG(0x00)
#define FR REG(0x18) /* bit 3: busy, bit 4: nothing received, bit 5: transmit FIFO full */
#define IBRD REG(0x24)
#define FBRD REG(0x28)
#define LCRH REG(0x2c)
#define CR REG(0x30)

void uart_init(void)
{
    CR = 0;
    IBRD = JIG_TIMER_HZ / (16 * 115200);
    FBRD = 0;
    LCRH = 0x70;  /* eight bits, FIFOs on */
    CR = 0x301;   /* on, transmit, receive */
}

void uart_put(uint8_t byte)
{
    while (FR & 0x20)
        ;
    DR = byte;
}

int uart_get(void)
{
    return FR & 0x10 ? -1 : (int)(DR & 0xff);
}

void uart_flush(void)
{
    while (FR & 0x08)
        ;
}
