@ Cortex-M, in the instructions that every core of the family has.
@ The words behind the code: see `../layout.rs`.
    .syntax unified
    .cpu cortex-m0
    .thumb
start:
    adr   r0, words
    ldmia r0!, {r1-r6}      @ send, status, mask, idle, bytes, writes
    mov   r8, r5
write:
    cmp   r6, #0
    beq   next
    ldmia r0!, {r5, r7}     @ address, value
    str   r7, [r5]
    subs  r6, #1
    b     write
next:
    ldrb  r7, [r0]
    cmp   r7, #0
    beq   done
wait:
    mov   r5, r8
    cmp   r5, #0
    bne   byte_status
    ldr   r5, [r2]
    b     compare
byte_status:
    ldrb  r5, [r2]
compare:
    ands  r5, r3
    cmp   r5, r4
    bne   wait
    adds  r0, #1
    mov   r5, r8
    cmp   r5, #0
    bne   byte
    str   r7, [r1]
    b     next
byte:
    strb  r7, [r1]
    b     next
done:
    wfi
    b     done
fault:                      @ every exception
    b     fault
    .balign 4
words:
