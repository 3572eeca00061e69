//! What a Cortex-M core pushes when an exception interrupts it, and what its link register
//! says about that.
//!
//! Source: ARMv6-M, ARMv7-M and ARMv8-M Architecture Reference Manuals, "Exception entry
//! behavior" and "Exception return behavior".

use super::context::Context;
use super::memory::KnownMemory;

/// The mark at the foot of the frame that Armv8-M adds when secure code is interrupted by
/// non-secure code; bit 0 tells about floating point.
const INTEGRITY_SIGNATURE: u32 = 0xfefa_125a;

/// What an exception handler returns by: not an address but a description of what to unstack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExcReturn(u32);

impl ExcReturn {
    /// Recognises the pattern. All ones is no exception return: it is what a link register
    /// holds after a reset.
    pub(crate) fn of(value: u32) -> Option<Self> {
        (value >= 0xffff_ff80 && value & 2 == 0).then_some(Self(value))
    }

    /// Tells whether the frame lies on the process stack.
    pub(crate) fn uses_psp(self) -> bool {
        self.0 & 4 != 0
    }

    /// Tells whether room for sixteen floating point registers follows the frame.
    pub(crate) fn is_extended(self) -> bool {
        self.0 & 0x10 == 0
    }

    /// Returns the pattern.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }
}

/// Tells whether a return address leads into the other security state.
pub(super) fn is_fnc_return(value: u32) -> bool {
    value & !1 == 0xfeff_fffe
}

/// Undoes exception entry: reads the frame at `at` and returns the registers of what was
/// interrupted, given those at the handler's first instruction.
///
/// # Errors
/// Returns the address that is not in the snapshot.
pub(crate) fn unstack(
    handler: &Context,
    exc_return: ExcReturn,
    at: u32,
    memory: KnownMemory<'_>,
) -> Result<Context, u32> {
    let word = |address: u32| memory.word(address).ok_or(address);
    let mut context = handler.clone();
    let mut at = at;
    if word(at)? & !1 == INTEGRITY_SIGNATURE {
        for number in 4..=11_u16 {
            let saved = word(at.wrapping_add(8 + 4 * (u32::from(number) - 4)))?;
            context.set(number, Some(saved));
        }
        at = at.wrapping_add(0x28);
    }
    for number in 0..4 {
        context.set(number, Some(word(at.wrapping_add(4 * u32::from(number)))?));
    }
    context.set(12, Some(word(at.wrapping_add(0x10))?));
    context.set_lr(Some(word(at.wrapping_add(0x14))?));
    context.pc = word(at.wrapping_add(0x18))? & !1;
    let xpsr = word(at.wrapping_add(0x1c))?;
    context.xpsr = Some(xpsr);
    let size = if exc_return.is_extended() { 0x68 } else { 0x20 };
    let filler = if xpsr & (1 << 9) != 0 { 4 } else { 0 };
    context.set_sp(Some(at.wrapping_add(size + filler)));
    Ok(context)
}

/// Returns an exception's name as the manuals spell it.
pub(crate) fn exception_name(number: u32) -> String {
    match number {
        0 => "thread".to_owned(),
        1 => "Reset".to_owned(),
        2 => "NMI".to_owned(),
        3 => "HardFault".to_owned(),
        4 => "MemManage".to_owned(),
        5 => "BusFault".to_owned(),
        6 => "UsageFault".to_owned(),
        7 => "SecureFault".to_owned(),
        11 => "SVCall".to_owned(),
        12 => "DebugMonitor".to_owned(),
        14 => "PendSV".to_owned(),
        15 => "SysTick".to_owned(),
        8..=10 | 13 => format!("reserved exception {number}"),
        16.. => format!("IRQ {}", number - 16),
    }
}

/// Tells whether an exception is one that reports a fault.
pub(crate) fn is_fault(number: u32) -> bool {
    (3..=7).contains(&number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CoreKind, CoreSnapshot, MemoryRange, RegisterValue};

    const STACK: u32 = 0x2000_0000;

    /// Undoes entry from a stack that holds its own offsets, changed in places.
    fn unstacked(exc_return: u32, changes: &[(usize, u32)]) -> Context {
        let mut words: Vec<u32> = (0..64).map(|index| 0x1000 + index).collect();
        words[7] = 0x0100_0000;
        for &(index, word) in changes {
            words[index] = word;
        }
        let register = |name: &str, value| RegisterValue { name: name.to_owned(), bits: 32, value };
        let snapshot = CoreSnapshot {
            kind: CoreKind::Armv8m,
            registers: vec![register("pc", 0), register("r4", 4)],
            memory: vec![MemoryRange {
                start: STACK.into(),
                bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
            }],
        };
        let handler = Context::innermost(&snapshot).unwrap();
        let exc_return = ExcReturn::of(exc_return).unwrap();
        unstack(&handler, exc_return, STACK, KnownMemory::new(&snapshot, None)).unwrap()
    }

    #[test]
    fn a_basic_frame_is_eight_words() {
        let context = unstacked(0xffff_fff9, &[]);
        assert_eq!(context.get(0), Some(0x1000));
        assert_eq!(context.get(3), Some(0x1003));
        assert_eq!(context.get(4), Some(4));
        assert_eq!(context.get(12), Some(0x1004));
        assert_eq!(context.lr(), Some(0x1005));
        assert_eq!(context.pc, 0x1006);
        assert_eq!(context.sp(), Some(STACK + 0x20));
    }

    #[test]
    fn filler_and_floating_point_move_the_stack_pointer() {
        assert_eq!(unstacked(0xffff_fff9, &[(7, 0x0100_0200)]).sp(), Some(STACK + 0x24));
        assert_eq!(unstacked(0xffff_ffe9, &[]).sp(), Some(STACK + 0x68));
        assert_eq!(unstacked(0xffff_ffed, &[(7, 0x0100_0200)]).sp(), Some(STACK + 0x6c));
    }

    #[test]
    fn a_secure_frame_holds_the_other_registers_first() {
        let context = unstacked(0xffff_fff8, &[(0, 0xfefa_125b), (17, 0x0100_0000)]);
        assert_eq!(context.get(4), Some(0x1002));
        assert_eq!(context.get(11), Some(0x1009));
        assert_eq!(context.get(0), Some(0x100a));
        assert_eq!(context.pc, 0x1010);
        assert_eq!(context.sp(), Some(STACK + 0x28 + 0x20));
    }

    #[test]
    fn only_the_patterns_of_the_manuals_are_exception_returns() {
        for value in [0xffff_ffe1, 0xffff_ffe9, 0xffff_ffed, 0xffff_fff1, 0xffff_fff9, 0xffff_fffd]
        {
            assert!(ExcReturn::of(value).is_some(), "{value:#x}");
        }
        for value in [u32::MAX, 0xffff_fffe, 0xffff_ff00, 0xfeff_ffff, 0x0800_0001] {
            assert!(ExcReturn::of(value).is_none(), "{value:#x}");
        }
    }
}
