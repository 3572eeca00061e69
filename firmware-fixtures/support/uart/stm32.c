/* ST's USART of the F1, F2 and F4 families. */

#include "board.h"

#define REG(offset) (*(volatile uint32_t *)(JIG_UART_BASE + (offset)))
#define SR REG(0x00) /* bit 5: received, bit 6: all sent, bit 7: room to send */
#define DR REG(0x04)
#define BRR REG(0x08)
#define CR1 REG(0x0c)

void uart_init(void)
{
    BRR = JIG_TIMER_HZ / 115200;
    CR1 = 0x200c; /* on, transmit, receive */
}

void uart_put(uint8_t byte)
{
    while ((SR & 0x80) == 0)
        ;
    DR = byte;
}

int uart_get(void)
{
    return SR & 0x20 ? (int)(DR & 0xff) : -1;
}

void uart_flush(void)
{
    while ((SR & 0x40) == 0)
        ;
}
