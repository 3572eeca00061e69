//! Thumb instructions, as far as it takes to say what one was about to do.
//!
//! Owns the encodings of loads, stores, calls, branches and deliberate faults. Refuses to be a
//! disassembler: everything else is [`Instruction::Other`].
//!
//! Source: ARMv7-M Architecture Reference Manual, chapter A5.

/// An instruction that is worth naming in a post-mortem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instruction {
    /// It reads or writes memory.
    Access(ThumbAccess),
    /// It is undefined for good.
    Undefined,
    /// It is a breakpoint with a number.
    Breakpoint(u8),
    /// It calls the supervisor.
    Supervisor(u8),
    /// It divides: a division by zero may trap.
    Divide,
    /// It jumps to the address in a register without keeping a return address.
    JumpTo(u16),
    /// Anything else.
    Other,
}

/// A load or store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThumbAccess {
    /// Whether it writes.
    pub(crate) writes: bool,
    base: Base,
    offset: Offset,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Register(u16),
    /// The address of the instruction plus four, rounded down to a word.
    Pc,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Offset {
    Immediate(i32),
    /// A register, shifted left.
    Register(u16, u32),
}

impl ThumbAccess {
    /// Computes the address of the first byte, given the instruction's own address and a
    /// way to look up registers. Nothing if one of them is lost.
    pub(crate) fn address(&self, at: u32, register: impl Fn(u16) -> Option<u32>) -> Option<u32> {
        let base = match self.base {
            Base::Register(number) => register(number)?,
            Base::Pc => at.wrapping_add(4) & !3,
        };
        Some(match self.offset {
            Offset::Immediate(offset) => base.wrapping_add_signed(offset),
            Offset::Register(number, shift) => base.wrapping_add(register(number)? << shift),
        })
    }
}

/// Tells whether the instruction that begins with this half-word has another.
pub(crate) fn is_wide(first: u16) -> bool {
    first >> 11 >= 0b11101
}

/// Decodes an instruction; the second half-word is looked at only if the first asks for it.
pub(crate) fn decode(first: u16, second: u16) -> Instruction {
    if is_wide(first) { decode_wide(first, second) } else { decode_narrow(first) }
}

fn access(writes: bool, base: Base, offset: Offset) -> Instruction {
    Instruction::Access(ThumbAccess { writes, base, offset })
}

fn decode_narrow(code: u16) -> Instruction {
    let low = |shift: u16| (code >> shift) & 7;
    let imm5 = i32::from((code >> 6) & 31);
    let imm8 = i32::from(code & 0xff);
    let reads = code & 0x0800 != 0;
    match code >> 12 {
        0b0100 if code & 0x0800 != 0 => access(false, Base::Pc, Offset::Immediate(imm8 * 4)),
        0b0100 if code & 0xff87 == 0x4700 => Instruction::JumpTo((code >> 3) & 15),
        0b0101 => {
            let writes = (code >> 9) & 7 < 3;
            access(writes, Base::Register(low(3)), Offset::Register(low(6), 0))
        }
        0b0110 => access(!reads, Base::Register(low(3)), Offset::Immediate(imm5 * 4)),
        0b0111 => access(!reads, Base::Register(low(3)), Offset::Immediate(imm5)),
        0b1000 => access(!reads, Base::Register(low(3)), Offset::Immediate(imm5 * 2)),
        0b1001 => access(!reads, Base::Register(13), Offset::Immediate(imm8 * 4)),
        0b1011 if code & 0x0600 == 0x0400 => {
            let count = (code & 0x1ff).count_ones() as i32;
            let offset = if reads { 0 } else { -4 * count };
            access(!reads, Base::Register(13), Offset::Immediate(offset))
        }
        0b1011 if code & 0xff00 == 0xbe00 => Instruction::Breakpoint(imm8 as u8),
        0b1100 => access(!reads, Base::Register(low(8)), Offset::Immediate(0)),
        0b1101 if code & 0xff00 == 0xde00 => Instruction::Undefined,
        0b1101 if code & 0xff00 == 0xdf00 => Instruction::Supervisor(imm8 as u8),
        _ => Instruction::Other,
    }
}

fn decode_wide(first: u16, second: u16) -> Instruction {
    let base = first & 15;
    let reads = first & 0x10 != 0;
    let up = first & 0x80 != 0;
    let signed = |value: i32| if up { value } else { -value };
    let imm8 = i32::from(second & 0xff);
    let from = if base == 15 { Base::Pc } else { Base::Register(base) };
    if first & 0xfe40 == 0xe800 {
        // LDM and STM: one of the two modes begins below the base.
        let count = second.count_ones() as i32;
        let offset = if first & 0x0180 == 0x0100 { -4 * count } else { 0 };
        return access(!reads, from, Offset::Immediate(offset));
    }
    if first & 0xfe40 == 0xe840 {
        let (pre, write_back) = (first & 0x0100 != 0, first & 0x20 != 0);
        return match (pre, write_back) {
            (false, false) if up && reads && second & 0x00e0 == 0 => {
                // A table branch reads its table.
                let shift = u32::from(second >> 4 & 1);
                access(false, from, Offset::Register(second & 15, shift))
            }
            (false, false) if up => access(!reads, from, Offset::Immediate(0)),
            (false, false) => access(!reads, from, Offset::Immediate(imm8 * 4)),
            (true, _) => access(!reads, from, Offset::Immediate(signed(imm8 * 4))),
            (false, true) => access(!reads, from, Offset::Immediate(0)),
        };
    }
    if first & 0xfe00 == 0xf800 && first & 0x60 != 0x60 {
        if base == 15 && reads {
            let offset = signed(i32::from(second & 0xfff));
            return access(false, Base::Pc, Offset::Immediate(offset));
        }
        let offset = if up {
            Offset::Immediate(i32::from(second & 0xfff))
        } else if second & 0x0800 != 0 {
            match (second & 0x0400 != 0, second & 0x0200 != 0) {
                (false, _) => Offset::Immediate(0),
                (true, true) => Offset::Immediate(imm8),
                (true, false) => Offset::Immediate(-imm8),
            }
        } else {
            Offset::Register(second & 15, u32::from(second >> 4 & 3))
        };
        return access(!reads, from, offset);
    }
    if first & 0xfe00 == 0xec00 && second & 0x0e00 == 0x0a00 {
        // Floating point: VLDR and VSTR offset the base, the others begin at it or below.
        let (pre, write_back) = (first & 0x0100 != 0, first & 0x20 != 0);
        return match (pre, write_back) {
            (true, false) => access(!reads, from, Offset::Immediate(signed(imm8 * 4))),
            (true, true) => access(!reads, from, Offset::Immediate(-imm8 * 4)),
            // Both clear moves between registers.
            (false, _) if up => access(!reads, from, Offset::Immediate(0)),
            (false, _) => Instruction::Other,
        };
    }
    if first & 0xffd0 == 0xfb90 && second & 0x00f0 == 0x00f0 {
        return Instruction::Divide;
    }
    if first & 0xfff0 == 0xf7f0 && second & 0xf000 == 0xa000 {
        return Instruction::Undefined;
    }
    Instruction::Other
}

/// The call that a return address follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThumbCall {
    /// To an address that the instruction holds.
    Direct(u32),
    /// To the address in a register.
    Indirect,
}

/// Finds the call that returns to `to`, given a way to read half-words of code.
pub(crate) fn call_before(to: u32, code: impl Fn(u32) -> Option<u16>) -> Option<ThumbCall> {
    let to = to & !1;
    let second = code(to.wrapping_sub(2))?;
    if let Some(first) = code(to.wrapping_sub(4))
        && first & 0xf800 == 0xf000
        && second & 0xd000 == 0xd000
    {
        return Some(ThumbCall::Direct(to.wrapping_add_signed(far_offset(first, second))));
    }
    (second & 0xff87 == 0x4780).then_some(ThumbCall::Indirect)
}

/// Returns where a branch at an address leads.
///
/// Source: ARMv7-M manual A7.7.12 (B, encodings T1 to T4), A7.7.21 (CBZ).
pub(crate) fn branch(at: u32, first: u16, second: u16) -> Option<u32> {
    let (wide, low) = (u32::from(first), u32::from(second));
    let offset = match (first, second) {
        (0xd000..=0xddff, _) => signed((wide & 0xff) << 1, 9),
        (0xe000..=0xe7ff, _) => signed((wide & 0x7ff) << 1, 12),
        _ if first & 0xf500 == 0xb100 => (wide >> 3 & 0x40 | wide >> 2 & 0x3e) as i32,
        (0xf000..=0xf7ff, _) if second & 0xd000 == 0x8000 => signed(
            (wide >> 10 & 1) << 20
                | (low >> 11 & 1) << 19
                | (low >> 13 & 1) << 18
                | (wide & 0x3f) << 12
                | (low & 0x7ff) << 1,
            21,
        ),
        (0xf000..=0xf7ff, _) if second & 0xd000 == 0x9000 => far_offset(first, second),
        _ => return None,
    };
    Some(at.wrapping_add(4).wrapping_add_signed(offset))
}

/// Returns the offset of `bl` and of the `b.w` that reaches as far.
fn far_offset(first: u16, second: u16) -> i32 {
    let (wide, low) = (u32::from(first), u32::from(second));
    let sign = wide >> 10 & 1;
    let bit = |from: u32| low >> from & 1 ^ sign ^ 1;
    let offset =
        sign << 24 | bit(13) << 23 | bit(11) << 22 | (wide & 0x3ff) << 12 | (low & 0x7ff) << 1;
    signed(offset, 25)
}

fn signed(value: u32, bits: u32) -> i32 {
    (value << (32 - bits)) as i32 >> (32 - bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_lead_where_the_assembler_says() {
        // As `arm-none-eabi-as` writes them at address 0x100.
        for (code, to) in [
            ([0xd001, 0], Some(0x106)),
            ([0xd1fe, 0], Some(0x100)),
            ([0xe7fe, 0], Some(0x100)),
            ([0xb108, 0], Some(0x106)),
            ([0xf000, 0x8001], Some(0x106)),
            ([0xf000, 0xb801], Some(0x106)),
            ([0xf7ff, 0xbffe], Some(0x100)),
            ([0xde00, 0], None),
            ([0x2001, 0], None),
        ] {
            assert_eq!(branch(0x100, code[0], code[1]), to, "{code:x?}");
        }
    }

    fn address(first: u16, second: u16) -> Option<(bool, u32)> {
        match decode(first, second) {
            Instruction::Access(access) => Some((
                access.writes,
                access.address(0x100, |number| Some(0x1000 * u32::from(number) + 1))?,
            )),
            _ => None,
        }
    }

    // Encodings as arm-none-eabi-as 2.40 writes them.
    #[test]
    fn loads_and_stores_tell_direction_and_address() {
        let cases = [
            ("str r2, [r3]", 0x601a, 0, true, 0x3001),
            ("ldr r0, [r4, #24]", 0x69a0, 0, false, 0x4019),
            ("ldrb r0, [r5, r3]", 0x5ce8, 0, false, 0x8002),
            ("strh r1, [r2, #2]", 0x8051, 0, true, 0x2003),
            ("ldr r3, [pc, #12]", 0x4b03, 0, false, 0x110),
            ("str r0, [sp, #4]", 0x9001, 0, true, 0xd005),
            ("push {r4, lr}", 0xb510, 0, true, 0xcff9),
            ("pop {r4, pc}", 0xbd10, 0, false, 0xd001),
            ("stmia r3!, {r0}", 0xc301, 0, true, 0x3001),
            ("ldmia r2!, {r0}", 0xca01, 0, false, 0x2001),
            ("ldrb.w r0, [r4, #1]!", 0xf814, 0x0f01, false, 0x4002),
            ("str.w r0, [r3], #4", 0xf843, 0x0b04, true, 0x3001),
            ("ldr.w r0, [r3, #3368]", 0xf8d3, 0x0d28, false, 0x3d29),
            ("ldr.w r0, [r1, r2, lsl #2]", 0xf851, 0x0022, false, 0x9005),
            ("strd r0, r1, [r2, #8]", 0xe9c2, 0x0102, true, 0x2009),
            ("ldrd r0, r1, [r2, #-8]", 0xe952, 0x0102, false, 0x1ff9),
            ("stmdb sp!, {r4, lr}", 0xe92d, 0x4010, true, 0xcff9),
            ("ldmia.w sp!, {r4, lr}", 0xe8bd, 0x4010, false, 0xd001),
            ("ldrex r0, [r1, #4]", 0xe851, 0x0f01, false, 0x1005),
            ("vldr s0, [r0, #4]", 0xed90, 0x0a01, false, 5),
            ("vpush {s16}", 0xed2d, 0x8a01, true, 0xcffd),
            ("tbh [r0, r1, lsl #1]", 0xe8d0, 0xf011, false, 0x2003),
        ];
        for (text, first, second, writes, expected) in cases {
            assert_eq!(address(first, second), Some((writes, expected)), "{text}");
        }
    }

    #[test]
    fn deliberate_faults_are_named() {
        assert_eq!(decode(0xde00, 0), Instruction::Undefined);
        assert_eq!(decode(0xf7f0, 0xa000), Instruction::Undefined);
        assert_eq!(decode(0xbeab, 0), Instruction::Breakpoint(0xab));
        assert_eq!(decode(0xdf01, 0), Instruction::Supervisor(1));
        assert_eq!(decode(0x4718, 0), Instruction::JumpTo(3));
        assert_eq!(decode(0xfb90, 0xf0f1), Instruction::Divide);
        assert_eq!(decode(0xbf30, 0), Instruction::Other);
    }

    #[test]
    fn calls_are_found_before_their_return_address() {
        let code = |words: &'static [u16]| {
            move |at: u32| words.get(at.checked_sub(0xf8)? as usize / 2).copied()
        };
        // bl 0x40 at 0xf8, then blx r3 at 0xfc.
        let words: &[u16] = &[0xf7ff, 0xffa2, 0x4798];
        assert_eq!(call_before(0xfd, code(words)), Some(ThumbCall::Direct(0x40)));
        assert_eq!(call_before(0xff, code(words)), Some(ThumbCall::Indirect));
        assert_eq!(call_before(0xf9, code(words)), None);
    }
}
