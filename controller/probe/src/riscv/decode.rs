//! Where RISC-V instructions lead: as much of them as the graph of calls needs.
//!
//! Source: The RISC-V Instruction Set Manual, Volume I, "RV32I" and "C" (RV32C).

/// Where an instruction leads besides the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeFlow {
    /// To the next instruction only.
    Next,
    /// To the next instruction, or to this address.
    Branch(u32),
    /// To this address, and back by a return.
    Call(u32),
    /// To this address.
    Jump(u32),
    /// To an address in a register, or out of a trap.
    Away,
    /// To the next instruction; the program has computed this address.
    Address(u32),
    /// To the next instruction; the address that was computed right before is where traps go now.
    TrapVector,
}

/// Reads instructions in the order of their addresses.
///
/// Remembers the upper half of an address, which is in one instruction while the lower half is
/// in the next.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// Register and value of the last `auipc` or `lui`, if nothing came between.
    upper: Option<(u32, u32)>,
    /// Register of the address that the last instruction has computed.
    computed: Option<u32>,
}

impl Sweep {
    /// Reads the instruction at `pc` whose first halfwords are given; returns its length in bytes.
    pub(crate) fn read(&mut self, pc: u32, first: u16, second: u16) -> (u32, CodeFlow) {
        let upper = self.upper.take();
        let computed = self.computed.take();
        if first & 3 != 3 {
            return (2, compressed(pc, first));
        }
        let word = u32::from(second) << 16 | u32::from(first);
        if computed.is_some_and(|register| sets_trap_vector(word, register)) {
            return (4, CodeFlow::TrapVector);
        }
        let flow = self.wide(pc, word, upper);
        if let CodeFlow::Address(_) = flow {
            self.computed = Some(word >> 7 & 31);
        }
        (4, flow)
    }

    fn wide(&mut self, pc: u32, word: u32, upper: Option<(u32, u32)>) -> CodeFlow {
        /// `mret`, `sret` and `dret`.
        const TRAP_RETURNS: [u32; 3] = [0x3020_0073, 0x1020_0073, 0x7b20_0073];
        let rd = word >> 7 & 31;
        let rs1 = word >> 15 & 31;
        let low = (word as i32 >> 20) as u32;
        let sum = upper.filter(|(register, _)| *register == rs1).map(|(_, v)| v.wrapping_add(low));
        match word & 0x7f {
            0x17 => {
                self.upper = Some((rd, pc.wrapping_add(word & 0xffff_f000)));
                CodeFlow::Next
            }
            0x37 => {
                self.upper = Some((rd, word & 0xffff_f000));
                CodeFlow::Next
            }
            0x13 if word >> 12 & 7 == 0 => sum.map_or(CodeFlow::Next, CodeFlow::Address),
            0x6f => {
                let sign = (word as i32 >> 31) as u32 & 0xfff0_0000;
                let offset =
                    sign | word & 0x000f_f000 | (word >> 20 & 1) << 11 | (word >> 21 & 0x3ff) << 1;
                let target = pc.wrapping_add(offset);
                if rd == 0 { CodeFlow::Jump(target) } else { CodeFlow::Call(target) }
            }
            0x67 => match (sum, rd) {
                (Some(target), 0) => CodeFlow::Jump(target & !1),
                (Some(target), _) => CodeFlow::Call(target & !1),
                (None, 0) => CodeFlow::Away,
                (None, _) => CodeFlow::Next,
            },
            0x63 => {
                let sign = (word as i32 >> 31) as u32 & 0xffff_f000;
                let offset = sign
                    | (word >> 7 & 1) << 11
                    | (word >> 25 & 0x3f) << 5
                    | (word >> 8 & 0xf) << 1;
                CodeFlow::Branch(pc.wrapping_add(offset))
            }
            0x73 if TRAP_RETURNS.contains(&word) => CodeFlow::Away,
            _ => CodeFlow::Next,
        }
    }
}

/// Tells whether the instructions in front of `to` call `target`, or an address in a register, given a way to
/// read half-words of code.
pub(crate) fn is_call_before(to: u32, target: u32, code: impl Fn(u32) -> Option<u16>) -> bool {
    let half = |from: u32| code(to.wrapping_sub(from)).unwrap_or_default();
    // `c.jalr`, and `jalr ra, ...` without an address right in front of it.
    let narrow = half(2) & 0xf07f == 0x9002 && half(2) & 0x0f80 != 0;
    let wide = half(4) & 0x0fff == 0x00e7;
    if narrow || wide && half(8) & 0x7f != 0x17 {
        return true;
    }
    call_length(to, target, code).is_some()
}

/// Returns how many bytes the call of `target` has that returns to `to`, given a way to read half-words of code.
pub(crate) fn call_length(to: u32, target: u32, code: impl Fn(u32) -> Option<u16>) -> Option<u32> {
    // A call has two, four, or, with the upper half of the address, eight bytes.
    [2, 4, 8].into_iter().find(|&len| {
        let (mut sweep, mut at, mut flow) = (Sweep::default(), to.wrapping_sub(len), None);
        while at < to {
            let Some(first) = code(at) else { return false };
            let (len, next) = sweep.read(at, first, code(at.wrapping_add(2)).unwrap_or_default());
            (at, flow) = (at.wrapping_add(len), Some(next));
        }
        at == to && flow == Some(CodeFlow::Call(target))
    })
}

/// Tells whether an instruction is `csrrw` of this register to `mtvec` or `stvec`.
fn sets_trap_vector(word: u32, register: u32) -> bool {
    let writes = word & 0x7f == 0x73 && word >> 12 & 7 == 1;
    writes && word >> 15 & 31 == register && matches!(word >> 20, 0x305 | 0x105)
}

fn compressed(pc: u32, half: u16) -> CodeFlow {
    let word = u32::from(half);
    let bit = |from: u32, to: u32| (word >> from & 1) << to;
    let negative = |from: u32| if word >> 12 & 1 == 1 { u32::MAX << from } else { 0 };
    match (half & 3, half >> 13) {
        (1, 1 | 5) => {
            let low = bit(11, 4) | (word >> 9 & 3) << 8 | bit(8, 10) | bit(7, 6) | bit(6, 7);
            let offset = negative(11) | low | (word >> 3 & 7) << 1 | bit(2, 5);
            let target = pc.wrapping_add(offset);
            if half >> 13 == 1 { CodeFlow::Call(target) } else { CodeFlow::Jump(target) }
        }
        (1, 6 | 7) => {
            let low = (word >> 10 & 3) << 3 | (word >> 5 & 3) << 6 | (word >> 3 & 3) << 1;
            CodeFlow::Branch(pc.wrapping_add(negative(8) | low | bit(2, 5)))
        }
        // `c.jr`: no second register, and a first one.
        (2, 4) if word >> 12 & 1 == 0 && word >> 2 & 31 == 0 && word >> 7 & 31 != 0 => {
            CodeFlow::Away
        }
        _ => CodeFlow::Next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(pc: u32, words: &[u32]) -> CodeFlow {
        let mut sweep = Sweep::default();
        let (mut pc, mut last) = (pc, CodeFlow::Next);
        for &word in words {
            let (len, flow) = sweep.read(pc, word as u16, (word >> 16) as u16);
            (pc, last) = (pc + len, flow);
        }
        last
    }

    /// Instructions and targets as objdump lists them.
    #[test]
    fn instructions_lead_where_a_disassembler_says() {
        for (pc, words, wanted) in [
            (0x8000_001c, &[0x0220_006f_u32][..], CodeFlow::Jump(0x8000_003e)),
            (0x8000_0028, &[0xe311], CodeFlow::Branch(0x8000_002c)),
            (0x8000_002a, &[0x8082], CodeFlow::Away),
            (0x8000_0072, &[0x377d], CodeFlow::Call(0x8000_0020)),
            (0x8000_007a, &[0xbff5], CodeFlow::Jump(0x8000_0076)),
            (0x8000_0096, &[0x00f7_1963], CodeFlow::Branch(0x8000_00a8)),
            (0x8000_00a8, &[0xa001], CodeFlow::Jump(0x8000_00a8)),
            (0x8000_00d0, &[0xb775], CodeFlow::Jump(0x8000_007c)),
            // auipc sp, 0x110; addi sp, sp, -456
            (0x8000_00c8, &[0x0011_0117, 0xe381_0113], CodeFlow::Address(0x8010_ff00)),
            // la t0, 0x80000134; csrw mtvec, t0, and stvec
            (0x8000_0000, &[0x0000_0297, 0x1342_8293, 0x3052_9073], CodeFlow::TrapVector),
            (0x8000_0000, &[0x0000_0297, 0x1342_8293, 0x1052_9073], CodeFlow::TrapVector),
            // csrw mscratch, t0; csrw mtvec, t1
            (0x8000_0000, &[0x0000_0297, 0x1342_8293, 0x3402_9073], CodeFlow::Next),
            (0x8000_0000, &[0x0000_0297, 0x1342_8293, 0x3053_1073], CodeFlow::Next),
            // auipc ra, 0; jalr ra, 16(ra) and auipc t1, 0; jr -8(t1)
            (0x8000_0000, &[0x0000_0097, 0x0100_80e7], CodeFlow::Call(0x8000_0010)),
            (0x8000_0100, &[0x0000_0317, 0xff83_0067], CodeFlow::Jump(0x8000_00f8)),
            // An address in another register is none of this call.
            (0x8000_0000, &[0x0000_0097, 0x0005_00e7], CodeFlow::Next),
            (0x8000_0000, &[0x3020_0073], CodeFlow::Away),
            (0x8000_0000, &[0x1050_0073], CodeFlow::Next),
        ] {
            assert_eq!(flow(pc, words), wanted, "{words:x?}");
        }
    }

    #[test]
    fn a_call_stands_in_front_of_its_return_address() {
        // c.jal 0x80000020; then auipc ra, 0; jalr ra, 16(ra)
        let code: [u16; 5] = [0x377d, 0x0097, 0x0000, 0x80e7, 0x0100];
        let at = |address: u32| {
            let index = address.checked_sub(0x8000_0072)? / 2;
            code.get(index as usize).copied()
        };
        for (to, target, calls) in [
            (0x8000_0074, 0x8000_0020, true),
            (0x8000_0074, 0x8000_0022, false),
            (0x8000_007c, 0x8000_0084, true),
            (0x8000_007c, 0x8000_0020, false),
            (0x8000_0078, 0x8000_0084, false),
            (0, 0x8000_0020, false),
            (u32::MAX, 0x8000_0020, false),
            // In the middle of the second call.
            (0x8000_007a, 0x8000_0084, false),
        ] {
            assert_eq!(is_call_before(to, target, at), calls, "{to:#x}");
        }
    }

    #[test]
    fn a_call_by_a_register_may_be_one_of_any_function() {
        // c.jalr a5; then jalr ra, 0(a5) behind a store; c.jr a5 is none, nor is c.ebreak.
        for (code, calls) in [
            (&[0x9782_u16][..], true),
            (&[0xc004, 0x80e7, 0x0007], true),
            (&[0x8782], false),
            (&[0x9002], false),
        ] {
            let to = 0x8000_0100;
            let start = to - 2 * code.len() as u32;
            let at = |address: u32| code.get((address.checked_sub(start)? / 2) as usize).copied();
            assert_eq!(is_call_before(to, 0x8000_0000, at), calls, "{code:x?}");
        }
    }
}
