//! What the image holds, in order: vectors (Cortex-M), program, six words, the writes, the line.
//!
//! The six words are the address that sends a byte, the address of the status, the mask and the
//! value of a status that takes a byte, whether the registers are a byte wide, and the number of
//! writes. Each write is an address and a value.

use super::{LINE, program};
use crate::profile::{Arch, KnownGoodSpec};

/// Vectors of a Cortex-M up to its SysTick.
const VECTORS: u32 = 16;

/// Bytes before the program.
fn vectors(arch: Arch) -> u32 {
    match arch {
        Arch::Arm => VECTORS * 4,
        Arch::Aarch64 | Arch::Riscv32 | Arch::Riscv64 | Arch::Xtensa | Arch::Avr => 0,
    }
}

/// Returns the address of the first instruction, as a debugger or loader names it.
pub(super) fn entry(arch: Arch, start: u32) -> u32 {
    let first = start.wrapping_add(vectors(arch));
    // An odd address means Thumb.
    if arch == Arch::Arm { first | 1 } else { first }
}

/// Returns the bytes of the image from its first address on.
pub(super) fn body(arch: Arch, spec: &KnownGoodSpec, stack_top: u32) -> Vec<u8> {
    let mut words: Vec<u32> = Vec::new();
    let code = program(arch);
    if arch == Arch::Arm {
        // The last instruction of the program takes every exception. It is no part of the normal
        // flow, because a breakpoint on a fault handler shows a fault.
        let code_bytes = u32::try_from(code.len() * 4).unwrap_or(u32::MAX);
        let fault = entry(arch, spec.start).wrapping_add(code_bytes - 2);
        words.extend([stack_top, entry(arch, spec.start)]);
        words.extend(std::iter::repeat_n(fault, VECTORS as usize - 2));
    }
    words.extend_from_slice(code);
    let at = spec.start.wrapping_add(u32::try_from(words.len() * 4).unwrap_or(u32::MAX));
    // Without a status the program reads a word of its own under an empty mask.
    let (status, mask, idle) =
        spec.ready.as_ref().map_or((at, 0, 0), |ready| (ready.status, ready.mask, ready.value));
    let writes = u32::try_from(spec.setup.len()).unwrap_or(u32::MAX);
    words.extend([spec.send, status, mask, idle, u32::from(spec.bytes), writes]);
    words.extend(spec.setup.iter().flat_map(|(address, value)| [*address, *value]));
    let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    bytes.extend_from_slice(LINE.as_bytes());
    bytes.extend_from_slice(b"\n\0");
    // A flash is written in words.
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}
