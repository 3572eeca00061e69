/* What every project has of the board. There is no C library. */
#ifndef BOARD_H
#define BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REG(address) (*(volatile uint32_t *)(address))

#define CLOCK_HZ 25000000u

/* Interrupts of the board. */
#define UART_RX_IRQ 0
#define SPARE_IRQ 31 /* no device has it: raised by software */

void uart_init(void);
void uart_put(uint8_t byte);
uint8_t uart_wait(void); /* sleeps until a byte has come */

void print(const char *text);
void print_number(int32_t value);
void print_hex(uint32_t value);

void irq_enable(unsigned number);
void irq_raise(unsigned number); /* returns when its handler has run */

_Noreturn void sleep_for_good(void);

/* Fills the unused part of the stack with a pattern, by which its use can be measured. */
void stack_paint(void);

void uart_rx_handler(void);

/* Handlers that a project may define. */
void systick_handler(void);
void spare_handler(void);

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memset(void *to, int value, size_t size);

/* Without a "memory" clobber (with the colons it has none): what an interrupt changes is for its
 * reader to declare. */
static inline void wait_for_interrupt(void)
{
    __asm volatile("wfi" ::);
}

#endif
