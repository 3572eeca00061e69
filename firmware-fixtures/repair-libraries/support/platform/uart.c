/* Input and signed numbers by the UART that the other fixtures of a board have. */

#include "board.h"
#include "../machine/board.h"

uint8_t uart_wait(void)
{
    for (;;) {
        int byte = uart_get();
        if (byte >= 0)
            return (uint8_t)byte;
        sleep_ms(1);
    }
}

void print_number(int32_t value)
{
    if (value < 0)
        uart_put('-');
    print_dec(value < 0 ? 0u - (uint32_t)value : (uint32_t)value);
}
