/* Arm's CMSDK UART, as on the MPS2 boards. */

#include "board.h"

#define REG(offset) (*(volatile uint32_t *)(JIG_UART_BASE + (offset)))
#define DATA REG(0x00)
#define STATE REG(0x04) /* bit 0: transmit buffer full, bit 1: receive buffer full */
#define CTRL REG(0x08)  /* bit 0: transmit, bit 1: receive */
#define BAUDDIV REG(0x10)

void uart_init(void)
{
    BAUDDIV = JIG_TIMER_HZ / 115200;
    CTRL = 3;
}

void uart_put(uint8_t byte)
{
    uart_flush();
    DATA = byte;
}

int uart_get(void)
{
    return STATE & 2 ? (int)(DATA & 0xff) : -1;
}

void uart_flush(void)
{
    while (STATE & 1)
        ;
}
