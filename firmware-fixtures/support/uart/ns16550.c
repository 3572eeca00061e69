/* The 16550 of PCs and of QEMU's RISC-V machine: byte-wide registers. */

#include "board.h"

#define REG(offset) (*(volatile uint8_t *)(JIG_UART_BASE + (offset)))
#define DATA REG(0)
#define FCR REG(2)
#define LCR REG(3)
#define LSR REG(5) /* bit 0: received, bit 5: room to send, bit 6: all sent */

void uart_init(void)
{
    LCR = 3; /* eight bits */
    FCR = 1; /* FIFOs on */
}

void uart_put(uint8_t byte)
{
    while ((LSR & 0x20) == 0)
        ;
    DATA = byte;
}

int uart_get(void)
{
    return LSR & 1 ? (int)DATA : -1;
}

void uart_flush(void)
{
    while ((LSR & 0x40) == 0)
        ;
}
