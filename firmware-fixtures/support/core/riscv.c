/* RISC-V, machine mode: start, trap report, CLINT sleep, semihosting. */

#include "board.h"

#define REG(address) (*(volatile uint32_t *)(address))
#define MTIMECMP_LOW REG(JIG_CLINT_BASE + 0x4000)
#define MTIMECMP_HIGH REG(JIG_CLINT_BASE + 0x4004)
#define MTIME_LOW REG(JIG_CLINT_BASE + 0xbff8)
#define MTIME_HIGH REG(JIG_CLINT_BASE + 0xbffc)

#define MIE_MTIE (1u << 7)

_Noreturn void runtime_start(void);
void trap_entry(void);
_Noreturn void trap_report(uint32_t cause, uint32_t pc);

/* Traps must be told even when the stack is what broke. */
#define FAULT_STACK_WORDS 128
__attribute__((used)) static uint32_t fault_stack[FAULT_STACK_WORDS] __attribute__((aligned(16)));

/* The guard below the stack is a locked, forbidden region of the memory protection unit
 * (0x98: locked, naturally aligned power of two, no rights), because on a machine that
 * runs from RAM nothing else stands between the stack and the code. */
__attribute__((naked, section(".vectors"), used)) void reset_handler(void);

__attribute__((naked, section(".vectors"), used)) void reset_handler(void)
{
    __asm volatile(".option push\n"
                   ".option norelax\n"
                   "la gp, __global_pointer$\n"
                   ".option pop\n"
                   "csrci mstatus, 8\n"
                   "csrw mie, zero\n"
                   "la t0, trap_entry\n"
                   "csrw mtvec, t0\n"
                   "la t0, __stack_guard_napot\n"
                   "csrw pmpaddr0, t0\n"
                   "li t0, 0x98\n"
                   "csrw pmpcfg0, t0\n"
                   "la sp, __stack_top\n"
                   "j runtime_start\n");
}

__attribute__((naked, weak, aligned(4))) void trap_entry(void)
{
    __asm volatile("la sp, fault_stack + %0\n"
                   "csrr a0, mcause\n"
                   "csrr a1, mepc\n"
                   "j trap_report\n" ::"i"(FAULT_STACK_WORDS * 4));
}

_Noreturn void trap_report(uint32_t cause, uint32_t pc)
{
    on_fault();
    print("\n*** Trap: mcause=");
    print_hex(cause);
    print(" mepc=");
    print_hex(pc);
    print("\n");
    idle();
}

static uint64_t now(void)
{
    uint32_t high, low;
    do {
        high = MTIME_HIGH;
        low = MTIME_LOW;
    } while (high != MTIME_HIGH);
    return (uint64_t)high << 32 | low;
}

void sleep_ms(uint32_t ms)
{
    uint64_t until = now() + (uint64_t)ms * (JIG_TIMER_HZ / 1000);
    MTIMECMP_HIGH = UINT32_MAX; /* no early match while the halves differ */
    MTIMECMP_LOW = (uint32_t)until;
    MTIMECMP_HIGH = (uint32_t)(until >> 32);
    __asm volatile("csrs mie, %0" ::"r"(MIE_MTIE));
    while (now() < until)
        __asm volatile("wfi");
    __asm volatile("csrc mie, %0" ::"r"(MIE_MTIE));
}

_Noreturn void idle(void)
{
    uart_flush();
    for (;;)
        __asm volatile("wfi");
}

void trap_unaligned(void) {}

/* The three instructions are the debugger's sign; none of them may be compressed. */
static uint32_t semihosting(uint32_t operation, void *argument)
{
    register uint32_t a0 __asm("a0") = operation;
    register void *a1 __asm("a1") = argument;
    __asm volatile(".option push\n"
                   ".option norvc\n"
                   ".balign 16\n"
                   "slli zero, zero, 0x1f\n"
                   "ebreak\n"
                   "srai zero, zero, 7\n"
                   ".option pop\n"
                   : "+r"(a0)
                   : "r"(a1)
                   : "memory");
    return a0;
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
