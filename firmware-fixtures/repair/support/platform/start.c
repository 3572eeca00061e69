/* Vectors, start-up, and the report of a fault. */

#include "board.h"

#define ICSR REG(0xe000ed04)
#define CCR REG(0xe000ed14)
#define CFSR REG(0xe000ed28)
#define MPU_CTRL REG(0xe000ed94)
#define MPU_RBAR REG(0xe000ed9c)
#define MPU_RASR REG(0xe000eda0)
#define NVIC_ISER REG(0xe000e100)
#define NVIC_ISPR REG(0xe000e200)

#define CCR_UNALIGN_TRP (1u << 3)
#define RBAR_REGION_0 (1u << 4)
#define RASR_8K_NO_ACCESS (1u << 28 | 12u << 1 | 1u)
#define MPU_ON_WITH_DEFAULT_MAP 5u

#define STACK_PATTERN 0xa5a5a5a5u

extern uint32_t __guard_start[], __stack_bottom[], __stack_top[];
extern uint32_t __data_load[], __data_start[], __data_end[];
extern uint32_t __bss_start[], __bss_end[];

int main(void);
void reset_handler(void);
void fault_handler(void);
void nmi_handler(void);
void fault_report(const uint32_t *frame);

/* A stack of its own: the usual one may be what broke. */
__attribute__((used)) static uint32_t fault_stack[64] __attribute__((aligned(8)));

void reset_handler(void)
{
    const uint32_t *from = __data_load;
    for (uint32_t *to = __data_start; to < __data_end; to++)
        *to = *from++;
    for (uint32_t *to = __bss_start; to < __bss_end; to++)
        *to = 0;
    CCR |= CCR_UNALIGN_TRP;
    MPU_RBAR = (uint32_t)__guard_start | RBAR_REGION_0;
    MPU_RASR = RASR_8K_NO_ACCESS;
    MPU_CTRL = MPU_ON_WITH_DEFAULT_MAP;
    __asm volatile("dsb\n isb");
    uart_init();
    main();
    sleep_for_good();
}

/* First sign of the watchdog, which resets the board unless it is fed. */
void nmi_handler(void) {}

__attribute__((naked)) void fault_handler(void)
{
    __asm volatile("mrs r0, msp\n"
                   "ldr r1, =fault_stack + 256\n"
                   "msr msp, r1\n"
                   "bl fault_report\n"
                   ".ltorg\n");
}

void fault_report(const uint32_t *frame)
{
    bool stacked = frame >= __stack_bottom && frame + 8 <= __stack_top;
    print("\n*** HardFault: pc=");
    print_hex(stacked ? frame[6] : 0);
    print(" lr=");
    print_hex(stacked ? frame[5] : 0);
    print(" cfsr=");
    print_hex(CFSR);
    print("\n");
    sleep_for_good();
}

__attribute__((weak)) void systick_handler(void) {}
__attribute__((weak)) void spare_handler(void) {}

__attribute__((section(".vectors"), used)) static const void *const vectors[16 + 32] = {
    [0] = __stack_top,
    [1] = (void *)reset_handler,
    [2] = (void *)nmi_handler,
    [3] = (void *)fault_handler,
    [4] = (void *)fault_handler,
    [5] = (void *)fault_handler,
    [6] = (void *)fault_handler,
    [15] = (void *)systick_handler,
    [16 + UART_RX_IRQ] = (void *)uart_rx_handler,
    [16 + SPARE_IRQ] = (void *)spare_handler,
};

void irq_enable(unsigned number)
{
    NVIC_ISER = 1u << number;
}

void irq_raise(unsigned number)
{
    NVIC_ISPR = 1u << number;
    __asm volatile("dsb\n isb" ::: "memory");
}

void sleep_for_good(void)
{
    for (;;)
        __asm volatile("wfi");
}

__attribute__((noinline)) void stack_paint(void)
{
    volatile uint32_t here = STACK_PATTERN;
    for (volatile uint32_t *word = __stack_bottom; word < &here; word++)
        *word = STACK_PATTERN;
}

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
