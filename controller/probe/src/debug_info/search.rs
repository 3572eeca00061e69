//! Finds further frames by search where unwinding ends.
//!
//! What is found here is likely, not certain, and the backtrace says so.

use super::context::Context;
use super::exception::{ExcReturn, unstack};
use super::memory::KnownMemory;
use super::symbols::Symbols;
use crate::thumb::{self, Instruction, ThumbCall};

/// How many words of a stack are searched: stacks of small cores are some KiB.
const MAX_WORDS: u32 = 16 * 1024;

/// How far below its memory a stack pointer is taken for one that grew out of it.
const MAX_OVERRUN: u32 = 1024;

/// How long a function may be to be searched for a jump, in bytes.
const MAX_FUNCTION: u64 = 64 * 1024;

/// Finds the frame that an exception pushed, for handlers that move to a stack of their own:
/// they keep its address in a register or on that stack. Returns its address and the
/// registers it holds.
pub(super) fn stacked_frame(
    handler: &Context,
    psp: Option<u32>,
    memory: KnownMemory<'_>,
    symbols: &Symbols,
) -> Option<(u32, Context)> {
    let basic = ExcReturn::of(0xffff_fff9)?;
    let stack = handler.sp()?;
    let registers = (0..=12).filter_map(|number| handler.get(number)).chain(psp);
    let words = (0..256).map_while(|i| memory.word(stack.checked_add(4 * i)?));
    registers.chain(words).find_map(|at| {
        if at % 4 != 0 {
            return None;
        }
        let frame = unstack(handler, basic, at, memory).ok()?;
        is_plausible(&frame, symbols).then_some((at, frame))
    })
}

/// Finds an address in a register that a stack reached by growing out of its memory: just
/// below memory that is known, and unknown itself. A fault handler that moved to another
/// stack keeps the old pointer there.
pub(super) fn overrun_stack(handler: &Context, memory: KnownMemory<'_>) -> Option<u32> {
    (0..=12).filter_map(|number| handler.get(number)).find(|&at| {
        let above = memory.first_above(at);
        // What was to be saved is at most 107 bytes long; the frame it overran by may be more.
        at % 4 == 0 && above.is_some_and(|above| (1..=MAX_OVERRUN).contains(&(above - at)))
    })
}

/// Tells whether eight words can be what the core pushed.
fn is_plausible(frame: &Context, symbols: &Symbols) -> bool {
    let (Some(lr), Some(xpsr)) = (frame.lr(), frame.xpsr) else { return false };
    // Bits 20 to 23 are always clear; no core has more than 496 exceptions.
    if xpsr & 0x00f0_0000 != 0 || xpsr & 0x1ff > 496 {
        return false;
    }
    let returns = lr & 1 == 1 && symbols.is_code(u64::from(lr.wrapping_sub(2)));
    let runs = symbols.is_code(u64::from(frame.pc)) && xpsr & (1 << 24) != 0;
    let reset = lr == u32::MAX;
    match runs {
        true => returns || reset || ExcReturn::of(lr).is_some(),
        // A call to nowhere leaves only the way back.
        false => returns && !symbols.is_code(u64::from(frame.pc)),
    }
}

/// Finds the innermost call on a stack whose lower end is lost: the first word from `from`
/// on that is the return address of a call. The callee's entry in the unwind tables says
/// where its caller's stack pointer was.
pub(super) fn call_on_stack(
    from: u32,
    machine_of: &Context,
    memory: KnownMemory<'_>,
    symbols: &Symbols,
) -> Option<Context> {
    let first = memory.first_above(from)?.checked_next_multiple_of(4)?;
    for index in 0..MAX_WORDS {
        let at = first.checked_add(4 * index)?;
        let word = memory.word(at)?;
        if word & 1 == 0 || !symbols.is_code(u64::from(word.wrapping_sub(2))) {
            continue;
        }
        let slot = match thumb::call_before(word, |at| memory.instruction(at)) {
            None => continue,
            Some(ThumbCall::Indirect) => 4,
            Some(ThumbCall::Direct(target)) => {
                match symbols.tables().return_slot(u64::from(target)) {
                    Some(slot) => slot,
                    None => continue,
                }
            }
        };
        let mut caller = machine_of.clone();
        for number in 0..15 {
            caller.set(number, None);
        }
        caller.xpsr = None;
        caller.pc = word & !1;
        caller.set_sp(at.checked_add(slot));
        return Some(caller);
    }
    None
}

/// Finds the function that jumped away instead of calling, so that the return address is
/// its caller's. Returns an address in it, and whether that is the very jump.
pub(super) fn tail_caller(
    return_address: u32,
    memory: KnownMemory<'_>,
    symbols: &Symbols,
) -> Option<(u32, bool)> {
    let ThumbCall::Direct(target) =
        thumb::call_before(return_address, |at| memory.instruction(at))?
    else {
        return None;
    };
    let start = symbols.function_start(u64::from(target)).filter(|&s| s == u64::from(target))?;
    let mut jumps = Vec::new();
    let mut at = target;
    while symbols.function_start(u64::from(at)) == Some(start)
        && u64::from(at) - start < MAX_FUNCTION
        && let Some(first) = memory.instruction(at)
    {
        if matches!(thumb::decode(first, 0), Instruction::JumpTo(register) if register != 14) {
            jumps.push(at);
        }
        at = at.checked_add(if thumb::is_wide(first) { 4 } else { 2 })?;
    }
    match jumps.as_slice() {
        [] => None,
        [jump] => Some((*jump, true)),
        [_, _, ..] => Some((target, false)),
    }
}
