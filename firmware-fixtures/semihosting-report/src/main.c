#include <board.h>

#define SYS_OPEN 0x01
#define SYS_WRITEC 0x03
#define SYS_WRITE0 0x04
#define SYS_WRITE 0x05
#define SYS_READ 0x06
#define SYS_CLOCK 0x10
#define MODE_WRITE 4u
#define NOWHERE 0x60000000u

static uint32_t call(uint32_t operation, const void *argument)
{
    register uint32_t r0 __asm("r0") = operation;
    register const void *r1 __asm("r1") = argument;
    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static uint32_t length(const char *text)
{
    uint32_t count = 0;
    while (text[count] != 0)
        count++;
    return count;
}

static uint32_t open_file(const char *name, uint32_t mode)
{
    uint32_t block[3] = {(uint32_t)name, mode, length(name)};
    return call(SYS_OPEN, block);
}

/* Each of the three ways to print, and the console on top. */

static void by_text(const char *text)
{
    print(text);
    call(SYS_WRITE0, text);
}

static void by_bytes(const char *text)
{
    print(text);
    for (; *text != 0; text++)
        call(SYS_WRITEC, text);
}

static void by_file(uint32_t handle, const char *text)
{
    print(text);
    uint32_t block[3] = {handle, (uint32_t)text, length(text)};
    while (block[2] != 0) {
        uint32_t left = call(SYS_WRITE, block);
        if (left >= block[2])
            break;
        block[1] += block[2] - left;
        block[2] = left;
    }
}

FIXTURE_MAIN
{
    uint32_t console = open_file(":tt", MODE_WRITE);
    call(SYS_WRITE0, "jig-fixture semihosting-report by semihosting\n");
    by_text("TAP version 13\n1..3\n");
    by_text("ok 1 - whole texts\n");
    by_bytes("ok 2 - byte by byte\n");
    by_file(console, "ok 3 - by a file\n");
    /* What a debugger must survive. The emulator does; it would not survive an operation that
     * it does not know. */
    uint32_t nowhere[3] = {console, NOWHERE, 4};
    call(SYS_WRITE, nowhere);
    call(SYS_WRITE, (const void *)NOWHERE);
    call(SYS_OPEN, (const void *)NOWHERE);
    char input[4];
    uint32_t reads[3] = {open_file(":tt", 0), (uint32_t)input, 0};
    call(SYS_READ, reads);
    call(SYS_CLOCK, (const void *)NOWHERE);
    semihosting_exit(0);
}
