@ The program the tests of the virtual probe put on boards. Prints a line, then counts, and
@ does what the debugger writes into a word of RAM. Assembled for each board into the bytes
@ of firmware.rs:
@   arm-none-eabi-as -mcpu=CPU --defsym UART=.. --defsym KIND=.. firmware.s
@   arm-none-eabi-ld -Ttext=BASE; arm-none-eabi-objcopy -O binary
@ KIND: 0 nRF51, 1 CMSDK, 2 STM32 F4, 3 PL011, 4 STM32 F1.
    .syntax unified
    .thumb
    .text
    .equ STATE, 0x20000100      @ counter, command, whether the fault handler faults
vectors:
    .word 0x20001000
    .word reset + 1
    .word hang + 1
    .word hard_fault + 1
    .rept 12
    .word hang + 1
    .endr
    .org 0x100
    .thumb_func
reset:
    ldr r0, =UART
.if KIND == 0
    ldr r1, =0x500
    movs r2, #4
    str r2, [r0, r1]
    movs r2, #1
    str r2, [r0, #8]
    ldr r1, =0x51c
.endif
.if KIND == 1
    movs r2, #16
    str r2, [r0, #16]
    movs r2, #1
    str r2, [r0, #8]
    movs r1, #0
.endif
.if KIND == 2
    ldr r2, =0x2008
    str r2, [r0, #12]
    movs r1, #4
.endif
.if KIND == 4
    ldr r2, =0x2008
    str r2, [r0, #12]
    movs r1, #4
.endif
.if KIND == 3
    ldr r2, =0x301
    str r2, [r0, #48]
    movs r1, #0
.endif
    ldr r3, =message
print:
    ldrb r4, [r3]
    cmp r4, #0
    beq ready
    str r4, [r0, r1]
.if KIND == 0
    ldr r2, =0x11c
wait:
    ldr r5, [r0, r2]
    cmp r5, #0
    beq wait
    movs r5, #0
    str r5, [r0, r2]
.endif
.if KIND == 1
wait:
    ldr r5, [r0, #4]
    lsrs r5, r5, #1
    bcs wait
.endif
    adds r3, #1
    b print
ready:
    ldr r6, =STATE
    b loop
message:
    .asciz "hello\n"
    .align 2
    .ltorg

    .org 0x200
loop:
    ldr r5, [r6]
    adds r5, #1
    str r5, [r6]
    ldr r5, [r6, #4]
    cmp r5, #0
    beq loop
    movs r4, #0
    str r4, [r6, #4]
    cmp r5, #1
    beq do_fault
    cmp r5, #2
    beq do_bkpt
    cmp r5, #3
    beq do_reset
    cmp r5, #4
    beq do_lock_up
    cmp r5, #5
    beq do_psp
    b loop
do_psp:
    ldr r5, =0x20000800
    msr psp, r5
    movs r5, #2
    msr control, r5
    isb
    b loop
do_reset:
    ldr r5, =0xe000ed0c
    ldr r4, =0x05fa0004
    str r4, [r5]
    b do_reset
do_lock_up:
    movs r5, #1
    str r5, [r6, #8]
do_fault:
    ldr r5, =0x60000000
    b fault
    .ltorg

    .org 0x280
do_bkpt:
    nop
    bkpt 0x42
    b loop
fault:
    ldr r5, [r5]
    b loop

    .org 0x2a0
    .thumb_func
hard_fault:
    ldr r0, =STATE
    ldr r1, [r0, #8]
    cmp r1, #1
    bne hang
    ldr r1, =0x60000000
    ldr r1, [r1]
    .thumb_func
hang:
    b hang
    .ltorg
