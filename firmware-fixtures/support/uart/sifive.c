/* SiFive's UART of the FE310. */

#include "board.h"

#define REG(offset) (*(volatile uint32_t *)(JIG_UART_BASE + (offset)))
#define TXDATA REG(0x00) /* bit 31: full */
#define RXDATA REG(0x04) /* bit 31: empty; reading takes the byte */
#define TXCTRL REG(0x08)
#define RXCTRL REG(0x0c)

void uart_init(void)
{
    TXCTRL = 1;
    RXCTRL = 1;
}

void uart_put(uint8_t byte)
{
    uart_flush();
    TXDATA = byte;
}

int uart_get(void)
{
    uint32_t data = RXDATA;
    return data & 0x80000000u ? -1 : (int)(data & 0xff);
}

void uart_flush(void)
{
    while (TXDATA & 0x80000000u)
        ;
}
