# RISC-V, base instructions. Addresses are loaded without their sign: LOAD is `lw` on 32 bits and
# `lwu` on 64 bits.
# The words behind the code: see `../layout.rs`.
    .option norvc
    .option norelax
    .globl _start
_start:
    lla   t0, words
    LOAD  a0, 0(t0)         # send
    LOAD  a1, 4(t0)         # status
    LOAD  a2, 8(t0)         # mask
    LOAD  a3, 12(t0)        # idle
    lw    a4, 16(t0)        # bytes
    lw    a5, 20(t0)        # writes
    addi  t0, t0, 24
write:
    beqz  a5, next
    LOAD  t1, 0(t0)         # address
    lw    t2, 4(t0)         # value
    sw    t2, 0(t1)
    addi  t0, t0, 8
    addi  a5, a5, -1
    j     write
next:
    lbu   t1, 0(t0)
    beqz  t1, done
wait:
    bnez  a4, byte_status
    LOAD  t2, 0(a1)
    j     compare
byte_status:
    lbu   t2, 0(a1)
compare:
    and   t2, t2, a2
    bne   t2, a3, wait
    addi  t0, t0, 1
    bnez  a4, byte
    sw    t1, 0(a0)
    j     next
byte:
    sb    t1, 0(a0)
    j     next
done:
    wfi
    j     done
words:
