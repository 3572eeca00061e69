/* Nordic's UART of the nRF51. */

#include "board.h"

#define REG(offset) (*(volatile uint32_t *)(JIG_UART_BASE + (offset)))
#define STARTRX REG(0x000)
#define STARTTX REG(0x008)
#define RXDRDY REG(0x108)
#define TXDRDY REG(0x11c)
#define ENABLE REG(0x500)
#define PSELTXD REG(0x50c)
#define PSELRXD REG(0x514)
#define RXD REG(0x518)
#define TXD REG(0x51c)
#define BAUDRATE REG(0x524)

void uart_init(void)
{
    PSELTXD = 24; /* the micro:bit's USB bridge */
    PSELRXD = 25;
    BAUDRATE = 0x01d7e000; /* 115200 */
    ENABLE = 4;
    STARTTX = 1;
    STARTRX = 1;
}

void uart_put(uint8_t byte)
{
    TXDRDY = 0;
    TXD = byte;
    while (TXDRDY == 0)
        ;
}

int uart_get(void)
{
    if (RXDRDY == 0)
        return -1;
    RXDRDY = 0;
    return (int)(RXD & 0xff);
}

void uart_flush(void) {} /* uart_put waits until the byte has left */
