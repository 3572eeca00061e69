//! The code with which a program has called `exit`, where that waits in a loop instead of ending an emulator.
//! Pure.
//!
//! # Design
//! Start files for boards without an operating system end `exit` in a loop. By then, the registers that held the
//! code may hold something else, so the call is read: `exit(1)` loads a constant in front of it, with at most an
//! instruction between that saves a register. A jump may lead between the two, so it is likely, and no proof. A code that was computed is not known.

use std::ops::Range;

use object::{Architecture, Object as _, ObjectSymbol as _, SymbolKind};

use crate::code_map::CodeMap;
use crate::riscv::call_length;
use crate::thumb::{self, ThumbCall};

/// The functions by which a program ends.
pub(crate) const ENDS: [&str; 4] = ["exit", "_exit", "__exit", "_Exit"];

/// Reads a halfword of code.
type Code<'a> = &'a dyn Fn(u32) -> Option<u16>;

/// Where an image has such functions.
#[derive(Debug, Default)]
pub(crate) struct ExitFunctions {
    is_thumb: bool,
    functions: Vec<Range<u64>>,
}

impl ExitFunctions {
    /// Finds them by the symbol table.
    pub(crate) fn of(file: &object::File<'_>) -> Self {
        let is_thumb = file.architecture() == Architecture::Arm;
        let ends = file.symbols().filter(|symbol| {
            let name = symbol.name().unwrap_or_default();
            let name = name.split('.').next().unwrap_or(name);
            symbol.kind() == SymbolKind::Text && symbol.is_definition() && ENDS.contains(&name)
        });
        let range = |symbol: object::Symbol<'_, '_>| {
            let start = symbol.address() & if is_thumb { !1 } else { !0 };
            start..start.saturating_add(symbol.size())
        };
        Self { is_thumb, functions: ends.map(range).collect() }
    }

    /// Tells whether code lies in one.
    pub(crate) fn hold(&self, pc: u32) -> bool {
        self.functions.iter().any(|function| function.contains(&pc.into()))
    }

    /// Returns the code other than 0 that a call hands to one of them, by where it returns to.
    pub(crate) fn code_handed(&self, return_to: u32, map: &CodeMap) -> Option<i32> {
        let code = |at: u32| map.halfword(at);
        let handed = match self.is_thumb {
            true => match thumb::call_before(return_to, code)? {
                ThumbCall::Direct(target) if self.starts_at(target) => {
                    thumb_constant((return_to & !1).wrapping_sub(4), &code)
                }
                _ => None,
            },
            false => {
                let starts = self.functions.iter().filter_map(|f| u32::try_from(f.start).ok());
                let len = starts.into_iter().find_map(|start| call_length(return_to, start, code));
                riscv_constant(return_to.wrapping_sub(len?), &code)
            }
        };
        handed.filter(|&handed| handed != 0)
    }

    fn starts_at(&self, target: u32) -> bool {
        self.functions.iter().any(|function| function.start == u64::from(target))
    }
}

/// Most instructions between the constant and the call: those that save a register, which compilers put there.
const MOST_BETWEEN: usize = 2;

/// Returns the constant that is loaded into `r0` in front of an address.
///
/// Source: ARMv7-M manual A7.7.76 (MOV), A7.7.85 (MVN), A7.7.99 (PUSH), A7.7.161 (STR).
fn thumb_constant(mut at: u32, code: Code<'_>) -> Option<i32> {
    for _ in 0..=MOST_BETWEEN {
        let (first, second) = (code(at.wrapping_sub(4)), code(at.wrapping_sub(2))?);
        at = match (first, second) {
            // `mov.w r0, #...` and `mov.w r0, #-1`
            (Some(0xf04f), 0x0000..=0x00ff) => return Some(second.into()),
            (Some(0xf04f), 0x30ff) => return Some(-1),
            // `mvn r0, #...`
            (Some(0xf06f), 0x0000..=0x00ff) => return Some(!i32::from(second)),
            // What may be the second half of another one is none.
            (Some(first), _) if thumb::is_wide(first) => return None,
            // `movs r0, #...`
            (_, 0x2000..=0x20ff) => return Some(i32::from(second & 0xff)),
            // `push` and `str`
            (_, 0xb400..=0xb5ff | 0x6000..=0x67ff | 0x9000..=0x97ff) => at.wrapping_sub(2),
            _ => return None,
        };
    }
    None
}

/// Returns the constant that is loaded into `a0` in front of an address.
///
/// Source: The RISC-V Instruction Set Manual, Volume I, `addi`, `sw`, `c.li`, `c.sw` and `c.swsp`.
fn riscv_constant(mut at: u32, code: Code<'_>) -> Option<i32> {
    for _ in 0..=MOST_BETWEEN {
        let (first, second) = (code(at.wrapping_sub(4)), code(at.wrapping_sub(2))?);
        at = match (first, second) {
            // `addi a0, zero, ...`
            (Some(0x0513), _) if second & 0xf == 0 => return Some(i32::from(second as i16) >> 4),
            // `sw`
            (Some(first), _) if first & 0x707f == 0x2023 => at.wrapping_sub(4),
            (Some(first), _) if first & 3 == 3 => return None,
            // `c.li a0, ...`
            (_, _) if second & 0xef83 == 0x4501 => {
                let bits = second >> 7 & 0x20 | second >> 2 & 0x1f;
                return Some(i32::from(bits as i16) << 26 >> 26);
            }
            (_, _) if matches!(second & 0xe003, 0xc000 | 0xc002) => at.wrapping_sub(2),
            _ => return None,
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before(code: &[u16], constant: fn(u32, Code<'_>) -> Option<i32>) -> Option<i32> {
        let at = |at: u32| code.get(usize::try_from(at / 2).ok()?).copied();
        constant(2 * code.len() as u32, &at)
    }

    #[test]
    fn a_constant_in_front_of_a_call_is_read() {
        for (code, constant) in [
            (&[0xbf00, 0x2001][..], Some(1)),
            (&[0x2003], Some(3)),
            (&[0xf04f, 0x0002], Some(2)),
            (&[0xf04f, 0x30ff], Some(-1)),
            (&[0xf06f, 0x0004], Some(-5)),
            // `movs r0, #1; push {r3, lr}`
            (&[0xbf00, 0x2001, 0xb508], Some(1)),
            (&[0xbf00, 0x2001, 0xb508, 0x9001, 0x9002], None),
            // `movs r1, #1`, `mov r0, r4`, and `ldr.w r2, [r3, #4]`
            (&[0xbf00, 0x2101], None),
            (&[0xbf00, 0x4620], None),
            (&[0xf8d3, 0x2004], None),
            (&[], None),
        ] {
            assert_eq!(before(code, thumb_constant), constant, "{code:x?}");
        }
        for (code, constant) in [
            // `c.li a0, 1` and `c.li a0, -1`
            (&[0x0001, 0x4505][..], Some(1)),
            (&[0x0001, 0x557d], Some(-1)),
            // `addi a0, zero, 134` and `addi a0, zero, -1`
            (&[0x0513, 0x0860], Some(134)),
            (&[0x0513, 0xfff0], Some(-1)),
            // `c.li a0, 1; c.swsp ra, 12(sp)`, and the wide `sw ra, 12(sp)`
            (&[0x0001, 0x4505, 0xc606], Some(1)),
            (&[0x0001, 0x4505, 0x2623, 0x0011], Some(1)),
            // `c.li a1, 1`, `c.mv a0, s0`, `addi a0, a1, 1`
            (&[0x0001, 0x4585], None),
            (&[0x0001, 0x8522], None),
            (&[0x8513, 0x0015], None),
            (&[], None),
        ] {
            assert_eq!(before(code, riscv_constant), constant, "{code:x?}");
        }
    }
}
