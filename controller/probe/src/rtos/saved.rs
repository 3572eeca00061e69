//! The registers that a switch of threads has saved.

use crate::debug_info::{Context, ExcReturn, KnownMemory, Symbols, unstack};
use crate::{CoreKind, CoreSnapshot};

/// Registers `r4` to `r11`.
const SAVED: u32 = 8;

/// Words of `s16` to `s31`.
const FLOAT: u32 = 16;

/// Where the registers of a thread are that does not run.
#[derive(Debug, Clone, Copy)]
pub(super) enum SavedRegisters {
    /// On its stack, from this address on, above the frame that the core has pushed.
    OnStack(u32),
    /// In the thread's structure: the address of `r4`, and the process stack pointer.
    Apart { r4: u32, psp: u32 },
}

/// How many words lie before the exception return value, `r4`, and the frame of the core.
struct SavedLayout {
    exc_return: Option<u32>,
    r4: u32,
    frame: u32,
}

/// The orders of FreeRTOS on Cortex-M3, Cortex-M4F and M7, Cortex-M33, and RIOT.
const LAYOUTS: [SavedLayout; 4] = [
    SavedLayout { exc_return: Some(0), r4: 1, frame: 1 + SAVED },
    SavedLayout { exc_return: Some(1), r4: 2, frame: 2 + SAVED },
    SavedLayout { exc_return: Some(SAVED), r4: 0, frame: SAVED + 1 },
    SavedLayout { exc_return: None, r4: 0, frame: SAVED },
];

impl SavedRegisters {
    /// Returns the registers with which the thread goes on; nothing if they are not plausible.
    pub(super) fn restore(self, snapshot: &CoreSnapshot, symbols: &Symbols) -> Option<Context> {
        let memory = KnownMemory::new(snapshot, Some(symbols));
        let blank = Context::innermost(snapshot)?.blank();
        match self {
            Self::OnStack(top) => LAYOUTS.iter().find_map(|layout| {
                let word = |index: u32| memory.word(top.checked_add(4 * index)?);
                let exc_return = match layout.exc_return {
                    Some(index) => ExcReturn::of(word(index)?)?,
                    None => ExcReturn::of(BASIC)?,
                };
                let float = if exc_return.is_extended() { FLOAT } else { 0 };
                let frame = top.checked_add(4 * (layout.frame + float))?;
                let r4 = top.checked_add(4 * layout.r4)?;
                // RIOT stores r8 to r11 in front of r4 to r7 where an instruction stores no others.
                let riot = layout.exc_return == Some(SAVED);
                let high = if riot && snapshot.kind == CoreKind::Armv6m { SAVED / 2 } else { 0 };
                plausible(&blank, (r4, high, frame), exc_return, memory, symbols)
            }),
            Self::Apart { r4, psp } => {
                plausible(&blank, (r4, 0, psp), ExcReturn::of(BASIC)?, memory, symbols)
            }
        }
    }
}

/// To thread mode, by the process stack, without floating point registers.
const BASIC: u32 = 0xffff_fffd;

/// `high` is how many of the upper registers lie in front of the lower ones.
fn plausible(
    blank: &Context,
    (r4, high, frame): (u32, u32, u32),
    exc_return: ExcReturn,
    memory: KnownMemory<'_>,
    symbols: &Symbols,
) -> Option<Context> {
    let mut saved = blank.clone();
    for number in 0..SAVED {
        let place = (number + high) % SAVED;
        saved.set(4 + number as u16, memory.word(r4.checked_add(4 * place)?));
    }
    let context = unstack(&saved, exc_return, frame, memory).ok()?;
    let thread = context.xpsr.is_some_and(|xpsr| xpsr & 0x0100_01ff == 0x0100_0000);
    (thread && symbols.is_code(u64::from(context.pc))).then_some(context)
}
