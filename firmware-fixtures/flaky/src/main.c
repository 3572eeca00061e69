#include <board.h>

/* An emulated board boots the same way each time, so the dice come from the host: the
 * nanoseconds since the emulator started, all of them mixed into the lowest. */
static uint32_t throw_dice(uint32_t sides)
{
    uint64_t ticks = semihosting_elapsed();
    uint32_t mix = (uint32_t)ticks ^ (uint32_t)(ticks >> 32);
    mix ^= mix >> 16;
    mix *= 0x7feb352du;
    mix ^= mix >> 15;
    mix &= 0xffffu;
    while (mix >= sides)
        mix -= sides;
    return mix;
}

FIXTURE_MAIN
{
    bool unlucky = throw_dice(3) == 0;
    print("test/test_ring.c:21:test_starts_empty:PASS\n");
    print("test/test_ring.c:35:test_settles_in_time:");
    print(unlucky ? "FAIL: Expected 3 Was 4\n" : "PASS\n");
    print("\n-----------------------\n2 Tests ");
    print(unlucky ? "1" : "0");
    print(" Failures 0 Ignored \n");
    print(unlucky ? "FAIL\n" : "OK\n");
}
