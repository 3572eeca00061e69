//! What a Cortex-M core pushes when an exception interrupts it, and what its link register
//! says about that.
//!
//! Source: ARMv6-M, ARMv7-M and ARMv8-M Architecture Reference Manuals, "Exception entry
//! behavior" and "Exception return behavior".

use super::context::{Context, Memory};

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
pub(super) fn unstack(
    handler: &Context,
    exc_return: ExcReturn,
    at: u32,
    memory: Memory<'_>,
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
