#include "noise.h"

#include "board.h"

#define SEMIHOSTING_ELAPSED 0x30

/* The noise of an emulated board is the clock of its host, in nanoseconds since the start: a board
 * that is emulated alone boots the same way each time. */
static uint32_t entropy(void)
{
    uint32_t ticks[2] = { 0, 0 };
    register uint32_t r0 __asm("r0") = SEMIHOSTING_ELAPSED;
    register uint32_t *r1 __asm("r1") = ticks;
    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    uint32_t mix = ticks[0] * 0x7feb352du;
    mix ^= mix >> 15;
    mix *= 0x846ca68bu;
    return mix ^ mix >> 16;
}

/* In every other boot a transmitter is near, which disturbs a quarter of the measurements. */
uint32_t noise_measure(void)
{
    static enum { UNKNOWN, NEAR, FAR } transmitter;
    if (transmitter == UNKNOWN)
        transmitter = entropy() & 1 ? NEAR : FAR;
    if (transmitter == FAR)
        return 0;
    uint32_t disturbed = entropy();
    disturbed &= entropy();
    return disturbed & ((1u << CHANNELS) - 1);
}
