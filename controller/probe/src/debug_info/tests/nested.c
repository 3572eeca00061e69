/* A fault in an interrupt handler that interrupted a thread with floating point state. */

#include <stdint.h>
#define REG(a) (*(volatile uint32_t *)(a))
extern uint32_t __stack_top[];
static uint32_t process_stack[256] __attribute__((aligned(8)));
volatile float number = 1.5f;
volatile uint32_t *volatile nowhere = (volatile uint32_t *)0x60000000;
volatile uint32_t sink;

static inline __attribute__((always_inline)) void poke(uint32_t value)
{
    *nowhere = value; /* the fault */
}

/* The linker knows it by another name. */
static uint32_t deep(uint32_t value) __asm__("Deep_Handler");

__attribute__((noinline)) static uint32_t deep(uint32_t value)
{
    poke(value + 1);
    return value + sink;
}

void pend_sv(void)
{
    sink += deep(sink + 1) + 2; /* in the handler */
}

__attribute__((noinline)) static float work(float a)
{
    REG(0xE000ED04) = 1u << 28;
    __asm volatile("dsb\n isb"); /* interrupted */
    return a * number;
}

__attribute__((noinline, noreturn)) static void thread(void)
{
    for (;;)
        number = work(number) + 1.0f;
}

void hard_fault(void)
{
    for (;;)
        ;
}

__attribute__((noreturn)) void reset(void)
{
    REG(0xE000ED88) |= 0xf00000; /* the floating point unit on */
    __asm volatile("dsb\n isb\n msr psp, %0\n msr control, %1\n isb" ::"r"(process_stack + 256), "r"(2));
    thread();
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    __stack_top, (void *)reset, (void *)hard_fault, (void *)hard_fault, (void *)hard_fault,
    (void *)hard_fault, (void *)hard_fault, 0, 0, 0, 0, (void *)hard_fault, 0, 0, (void *)pend_sv, 0,
};
