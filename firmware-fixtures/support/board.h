/* The one header a fixture includes: what every board offers, whatever its core.
 *
 * No C library stands behind it. Text is sent as it is written: a line ends in "\n"
 * unless the fixture says otherwise. Interrupts stay masked for the whole life of a
 * fixture; a pending one only wakes the core from its sleep.
 */
#ifndef JIG_BOARD_H
#define JIG_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens a fixture: `FIXTURE_MAIN { ... }`. The boot banner is printed before its body;
 * returning from it idles. JIG_FIXTURE is defined by the builder. */
#define FIXTURE_MAIN                                                                      \
    const char fixture_name[] = JIG_FIXTURE;                                              \
    const bool fixture_prints_banner = true;                                              \
    void fixture_main(void)

/* Same, for fixtures that decide themselves whether and when to call banner(). */
#define FIXTURE_MAIN_SILENT                                                               \
    const char fixture_name[] = JIG_FIXTURE;                                              \
    const bool fixture_prints_banner = false;                                             \
    void fixture_main(void)

extern const char fixture_name[];
extern const bool fixture_prints_banner;
void fixture_main(void);

/* --- console ------------------------------------------------------------------------ */

void uart_init(void);
void uart_put(uint8_t byte);
int uart_get(void);    /* next received byte, or -1 */
void uart_flush(void); /* returns when the last byte has left */

void print(const char *text);
void print_dec(uint32_t value);
void print_hex(uint32_t value);      /* 0x and eight digits */
void print_hex_byte(uint8_t value);  /* two digits, no prefix */
void banner(void);                   /* jig-fixture NAME on BOARD */

/* --- time, sleep, end --------------------------------------------------------------- */

void sleep_ms(uint32_t ms);          /* sleeps in WFI */
_Noreturn void idle(void);           /* sleeps for good, at no cost to the host */
_Noreturn void reset_board(void);    /* only on boards with the feature self-reset */
void watchdog_start(uint32_t ms);    /* resets the board after ms; feature watchdog */

/* --- memory that survives a reset, but not a power cycle ---------------------------- */

#define NOINIT_WORDS 8
extern volatile uint32_t noinit[NOINIT_WORDS];

/* Counts boots since power-on in noinit[0..1]: 1 in the first, 2 after one reset. */
uint32_t count_boot(void);

/* --- faults ------------------------------------------------------------------------- */

/* Runs an instruction that no core knows. */
#if defined(__riscv)
#define UNDEFINED_INSTRUCTION() __asm volatile("unimp") /* __builtin_trap is a breakpoint */
#else
#define UNDEFINED_INSTRUCTION() __asm volatile("udf #0")
#endif

/* Called first by the fault handler, on a stack of its own; does nothing by default. */
void on_fault(void);

/* The entry of the fault handler, `fault_entry` on Cortex-M and `trap_entry` on RISC-V, and on
 * Cortex-M `nmi_handler` and `tick_handler`, can be replaced by a fixture's own functions. */

/* Makes accesses that are not aligned trap where the core lets software choose. */
void trap_unaligned(void);

/* --- semihosting: only where the debugger or emulator offers it ---------------------- */

_Noreturn void semihosting_exit(uint32_t code);
void semihosting_error(const char *text); /* to the host's standard error */
uint64_t semihosting_elapsed(void);  /* ticks of the host's clock since it started */

/* --- identity ------------------------------------------------------------------------ */

/* Promises, in the ELF file, that this firmware prints its build id at every boot. */
#define ANNOUNCE_BUILD_ID                                                                 \
    __attribute__((section(".jig.announce"), used)) static const char announcement[] =    \
        "jig-build-id"

#define BUILD_ID_BYTES 20 /* --build-id=sha1 */
const uint8_t *build_id(void);

#endif
