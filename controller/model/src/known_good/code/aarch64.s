// AArch64.
// The words behind the code: see `../layout.rs`.
start:
    adr   x0, words
    ldp   w1, w2, [x0], #8  // send, status
    ldp   w3, w4, [x0], #8  // mask, idle
    ldp   w5, w6, [x0], #8  // bytes, writes
write:
    cbz   w6, next
    ldp   w7, w8, [x0], #8  // address, value
    str   w8, [x7]
    sub   w6, w6, #1
    b     write
next:
    ldrb  w7, [x0], #1
    cbz   w7, done
wait:
    cbnz  w5, byte_status
    ldr   w8, [x2]
    b     compare
byte_status:
    ldrb  w8, [x2]
compare:
    and   w8, w8, w3
    cmp   w8, w4
    b.ne  wait
    cbnz  w5, byte
    str   w7, [x1]
    b     next
byte:
    strb  w7, [x1]
    b     next
done:
    wfi
    b     done
words:
