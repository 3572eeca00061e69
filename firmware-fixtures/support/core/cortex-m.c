/* Cortex-M: vectors, start, fault report, SysTick sleep, semihosting. */

#include "board.h"

#define REG(address) (*(volatile uint32_t *)(address))
#define SYST_CSR REG(0xE000E010)
#define SYST_RVR REG(0xE000E014)
#define SYST_CVR REG(0xE000E018)
#define SCB_ICSR REG(0xE000ED04)
#define SCB_CCR REG(0xE000ED14)
#define SCB_CFSR REG(0xE000ED28)

#define SYST_ON_CORE_CLOCK_WITH_IRQ 7u
#define SYST_COUNTFLAG (1u << 16)
#define ICSR_PENDSTCLR (1u << 25)
#define CCR_UNALIGN_TRP (1u << 3)

extern uint32_t __stack_top[], __ram_start[], __ram_end[];
_Noreturn void runtime_start(void);
_Noreturn void reset_handler(void);
void fault_entry(void);
void nmi_handler(void);
void tick_handler(void);
_Noreturn void fault_report(const uint32_t *frame);

/* Faults must be told even when the stack is what broke. */
#define FAULT_STACK_WORDS 128
__attribute__((used)) static uint32_t fault_stack[FAULT_STACK_WORDS] __attribute__((aligned(8)));

_Noreturn void reset_handler(void)
{
    __asm volatile("cpsid i");
    runtime_start();
}

/* First sign of a watchdog on boards that wire it here: wait for the reset to follow. */
__attribute__((weak)) void nmi_handler(void)
{
    for (;;)
        __asm volatile("wfi");
}

__attribute__((naked, weak)) void fault_entry(void)
{
    __asm volatile("mrs r0, msp\n"
                   "ldr r1, =fault_stack + %c0\n"
                   "msr msp, r1\n"
                   "bl fault_report\n"
                   ".ltorg\n" ::"i"(FAULT_STACK_WORDS * 4));
}

_Noreturn void fault_report(const uint32_t *frame)
{
    on_fault();
    /* After a stack overflow nothing was stacked, and reading it would fault again. */
    bool stacked = frame >= __ram_start && frame + 8 <= __ram_end;
    print("\n*** HardFault: pc=");
    print_hex(stacked ? frame[6] : 0);
    print(" lr=");
    print_hex(stacked ? frame[5] : 0);
#if !defined(__ARM_ARCH_6M__)
    print(" cfsr=");
    print_hex(SCB_CFSR);
#endif
    print("\n");
    idle();
}

/* A function of its own: at one address a debugger knows one name. */
__attribute__((naked, weak)) void tick_handler(void)
{
    __asm volatile("bl fault_entry");
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    __stack_top,          /* initial stack */
    (void *)reset_handler,
    (void *)nmi_handler,
    (void *)fault_entry,  /* HardFault */
    (void *)fault_entry,  /* MemManage */
    (void *)fault_entry,  /* BusFault */
    (void *)fault_entry,  /* UsageFault */
    (void *)fault_entry,  /* SecureFault */
    NULL, NULL, NULL,
    (void *)fault_entry,  /* SVCall */
    (void *)fault_entry,  /* DebugMonitor */
    NULL,
    (void *)fault_entry,  /* PendSV */
    (void *)tick_handler, /* SysTick: stays masked */
};

void sleep_ms(uint32_t ms)
{
    SYST_RVR = JIG_TIMER_HZ / 1000 - 1;
    SYST_CVR = 0;
    SYST_CSR = SYST_ON_CORE_CLOCK_WITH_IRQ;
    while (ms > 0) {
        __asm volatile("wfi");
        if (SYST_CSR & SYST_COUNTFLAG)
            ms--;
        SCB_ICSR = ICSR_PENDSTCLR;
    }
    SYST_CSR = 0;
    SCB_ICSR = ICSR_PENDSTCLR;
}

_Noreturn void idle(void)
{
    uart_flush();
    for (;;)
        __asm volatile("wfi");
}

void trap_unaligned(void)
{
    SCB_CCR |= CCR_UNALIGN_TRP;
    __asm volatile("dsb\n isb");
}

static uint32_t semihosting(uint32_t operation, void *argument)
{
    register uint32_t r0 __asm("r0") = operation;
    register void *r1 __asm("r1") = argument;
    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

_Noreturn void semihosting_exit(uint32_t code)
{
    uint32_t block[2] = {0x20026 /* application exit */, code};
    uart_flush();
    semihosting(0x20 /* SYS_EXIT_EXTENDED */, block);
    idle();
}

void semihosting_error(const char *text)
{
    static const char terminal[] = ":tt";
    uint32_t open[3] = {(uint32_t)terminal, 8 /* append */, sizeof terminal - 1};
    uint32_t handle = semihosting(0x01 /* SYS_OPEN */, open);
    uint32_t length = 0;
    while (text[length] != '\0')
        length++;
    uint32_t write[3] = {handle, (uint32_t)text, length};
    semihosting(0x05 /* SYS_WRITE */, write);
}

uint64_t semihosting_elapsed(void)
{
    uint32_t ticks[2] = {0, 0};
    semihosting(0x30 /* SYS_ELAPSED */, ticks);
    return (uint64_t)ticks[1] << 32 | ticks[0];
}
