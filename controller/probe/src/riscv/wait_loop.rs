//! Loops of RISC-V code that do nothing but wait. Pure.
//!
//! Source: The RISC-V Instruction Set Manual, Volume I, "RV32I" and "C" (RV32C).

use std::ops::Range;

use super::{CodeFlow, Sweep};

/// Most halfwords of a loop in front of the branch that closes it.
const LONGEST: usize = 8;

const WFI: u32 = 0x1050_0073;

/// Returns the halfwords of the loop that a branch or jump closes, itself included; nothing where it closes no
/// loop that does nothing but wait.
pub(crate) fn wait_loop_before(code: &[u16], branch: usize) -> Option<Range<usize>> {
    let (len, flow) = read(code, branch)?;
    let back = match flow {
        CodeFlow::Jump(to) | CodeFlow::Branch(to) => (place(branch) - i64::from(to)) / 2,
        _ => return None,
    };
    let back = usize::try_from(back).ok().filter(|&back| back <= LONGEST)?;
    let start = branch.checked_sub(back)?;
    let mut at = start;
    while at < branch {
        let (len, flow) = read(code, at)?;
        let leaves = matches!(flow, CodeFlow::Branch(to) if i64::from(to) > place(branch));
        if !leaves && !waits(word(code, at)?) {
            return None;
        }
        at += len;
    }
    (at == branch).then_some(start..branch + len)
}

/// Reads an instruction, as if the code began at [`place`] 0: its length in halfwords, and where it leads.
fn read(code: &[u16], at: usize) -> Option<(usize, CodeFlow)> {
    let word = word(code, at)?;
    let pc = u32::try_from(place(at)).ok()?;
    let (len, flow) = Sweep::default().read(pc, word as u16, (word >> 16) as u16);
    Some((len as usize / 2, flow))
}

/// Returns an address for a halfword: loops lead to none below zero.
fn place(at: usize) -> i64 {
    2 * at as i64
}

/// Returns the two halfwords at a place; the second is 0 at the end of the code.
fn word(code: &[u16], at: usize) -> Option<u32> {
    let second = code.get(at + 1).copied().unwrap_or_default();
    Some(u32::from(second) << 16 | u32::from(*code.get(at)?))
}

/// Tells whether an instruction waits, does nothing, or looks at memory: `wfi`, a fence, a load, the address for
/// one, a test of bits.
fn waits(word: u32) -> bool {
    let funct3 = word >> 12 & 7;
    match word & 0x7f {
        // Loads, fences, `auipc`, `lui`.
        0x03 | 0x0f | 0x17 | 0x37 => true,
        // `andi`, and `addi` that changes nothing.
        0x13 => funct3 == 7 || word == 0x13,
        _ if word & 3 == 3 => word == WFI,
        // `c.nop`, `c.lw`, `c.lwsp`, `c.lui` and `c.andi`
        _ => {
            let narrow = word & 0xffff;
            let is_stack_pointer = narrow >> 7 & 31 == 2;
            narrow == 1
                || matches!(narrow & 0xe003, 0x4000 | 0x4002)
                || narrow & 0xe003 == 0x6001 && !is_stack_pointer
                || narrow & 0xec03 == 0x8801
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_that_wait_are_told_from_those_that_work() {
        for (code, branch, found) in [
            // `j .`, narrow and wide
            (&[0xa001][..], 0, Some(0..1)),
            (&[0x006f, 0x0000], 0, Some(0..2)),
            // `wfi; j -4`
            (&[0x0073, 0x1050, 0xbff5], 2, Some(0..3)),
            // `lw a5, 0(a4); beqz a5, -2`
            (&[0x431c, 0xdffd], 1, Some(0..2)),
            // `lw a5, -20(s0); beqz a5, -4`, wide
            (&[0x2783, 0xfec4, 0x8ee3, 0xfe07], 2, Some(0..4)),
            // `sw a5, 0(a4); j -2`: it may feed a watchdog
            (&[0xc31c, 0xbffd], 1, None),
            // `addi a5, a5, -1; bnez a5, -2`: a delay
            (&[0x17fd, 0xfffd], 1, None),
            // a jump forward, and a call of itself
            (&[0xa009, 0x0001], 0, None),
            (&[0x00ef, 0x0000], 0, None),
            // a loop that begins in front of the code
            (&[0xbff5], 0, None),
            (&[], 0, None),
        ] {
            assert_eq!(wait_loop_before(code, branch), found, "{code:x?}");
        }
    }
}
