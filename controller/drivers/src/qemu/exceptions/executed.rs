//! The code that an emulator was about to execute, from its list of translated instructions. Pure.
//!
//! # Design
//! QEMU translates a block of instructions when the core is about to enter it, and with `-d in_asm`
//! lists each block once: `0x00000104:  f000 f801  bl  #0x10a`. So what is listed is what was executed,
//! with the instructions behind an exception in the middle of a block.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::trace::{BlockTrace, TraceSpan};

/// Most instructions that are kept. An image with 16 MiB of code has as many.
const MAX_INSTRUCTIONS: usize = 8 << 20;

/// The instructions that an emulator was about to execute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutedCode {
    instructions: HashMap<u32, ExecutedInstruction>,
    truncated: bool,
    spans: Vec<TraceSpan>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ExecutedInstruction {
    len: u8,
    after_fault: bool,
}

impl ExecutedCode {
    /// Takes in a line of the emulator; one that lists no instruction changes nothing.
    pub(super) fn take(&mut self, line: &[u8], after_fault: bool, trace: Option<&mut BlockTrace>) {
        let Some((address, len)) = instruction_of(line) else { return };
        if let Some(trace) = trace {
            trace.listed(address, len);
        }
        self.add(address, ExecutedInstruction { len, after_fault });
    }

    fn add(&mut self, address: u32, new: ExecutedInstruction) {
        let full = self.instructions.len() >= MAX_INSTRUCTIONS;
        match self.instructions.entry(address) {
            Entry::Occupied(mut known) => known.get_mut().after_fault &= new.after_fault,
            Entry::Vacant(_) if full => self.truncated = true,
            Entry::Vacant(free) => drop(free.insert(new)),
        }
    }

    /// Adds what another launch has executed.
    pub fn merge(&mut self, other: &Self) {
        other.instructions.iter().for_each(|(&address, &new)| self.add(address, new));
        self.truncated |= other.truncated;
        // The verdict is that of the last attempt.
        if !other.spans.is_empty() {
            self.spans.clone_from(&other.spans);
        }
    }

    /// Adds when what was executed.
    pub(super) fn with_trace(mut self, trace: &BlockTrace) -> Self {
        let (spans, truncated) = trace.spans();
        self.spans = spans;
        self.truncated |= truncated;
        self
    }

    /// Lists what the last launch executed in its first boot, in spans of time; empty where that was
    /// not traced.
    pub fn spans(&self) -> &[TraceSpan] {
        &self.spans
    }

    /// Lists the addresses of the instructions in ascending order, each with whether it was executed
    /// behind a fault only.
    pub fn instructions(&self) -> Vec<(Range<u64>, bool)> {
        let range = |at: u32, len: u8| u64::from(at)..u64::from(at) + u64::from(len);
        let of = |(&at, one): (&u32, &ExecutedInstruction)| (range(at, one.len), one.after_fault);
        let mut all: Vec<_> = self.instructions.iter().map(of).collect();
        all.sort_unstable_by_key(|(range, _)| range.start);
        all
    }

    /// Tells whether there were more instructions than are kept.
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }
}

/// Reads `0x00000104:  f000 f801  bl  #0x10a`: address and length of an instruction.
fn instruction_of(line: &[u8]) -> Option<(u32, u8)> {
    let (address, rest) = line.strip_prefix(b"0x")?.split_at_checked(8)?;
    // A number may have a sign, and an address has none.
    let digits = str::from_utf8(address).ok().filter(|text| !text.starts_with('+'))?;
    let address = u32::from_str_radix(digits, 16).ok()?;
    let bytes = rest.strip_prefix(b":  ")?;
    // Two groups of four digits, or one of eight; two spaces end them.
    let mut digits = 0;
    for (at, &byte) in bytes.iter().take(MAX_DIGITS + 1).enumerate() {
        match byte {
            b'0'..=b'9' | b'a'..=b'f' => digits += 1,
            b' ' if bytes.get(at + 1) != Some(&b' ') => {}
            _ => break,
        }
    }
    matches!(digits, 4 | 8).then_some((address, digits / 2))
}

/// Digits of the longest instruction, and the space between two groups.
const MAX_DIGITS: usize = 9;

/// Collects what launches of an emulator execute, by the SHA-256 of the image that each was given.
#[derive(Debug, Clone, Default)]
pub struct CodeCollector {
    all: Arc<Mutex<HashMap<String, ExecutedCode>>>,
    what: CollectedCode,
}

/// What is collected of the code that an emulator executes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CollectedCode {
    /// Each instruction once.
    #[default]
    Instructions,
    /// When it was executed, too. The emulator is several times slower meanwhile.
    Spans,
}

impl CodeCollector {
    /// Makes one that has collected nothing.
    pub fn new(what: CollectedCode) -> Self {
        Self { what, ..Self::default() }
    }

    /// Returns what it collects.
    pub fn what(&self) -> CollectedCode {
        self.what
    }

    /// Adds what a launch has executed.
    pub(crate) fn add(&self, image: &str, code: &ExecutedCode) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(image.to_owned()).or_default().merge(code);
    }

    /// Returns what was executed of an image; nothing where it was never launched.
    pub fn of(&self, image: &str) -> Option<ExecutedCode> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).get(image).cloned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code(lines: &[(&str, bool)]) -> ExecutedCode {
        let mut code = ExecutedCode::default();
        lines.iter().for_each(|(line, fault)| code.take(line.as_bytes(), *fault, None));
        code
    }

    #[test]
    fn lines_of_instructions_are_read_and_others_are_not() {
        for (line, read) in [
            ("0x00000100:  b480       push     {r7}", Some((0x100, 2))),
            ("0x00000104:  f000 f801  bl       #0x10a", Some((0x104, 4))),
            ("0x80000000:  00000297          auipc           t0,0", Some((0x8000_0000, 4))),
            ("0x80000004:  4501              mv              a0,zero", Some((0x8000_0004, 2))),
            ("0x00000100:  b480", Some((0x100, 2))),
            ("0x0000010:  b480       push     {r7}", None),
            ("0x00000100: b480       push     {r7}", None),
            ("0x00000100:  b48       push     {r7}", None),
            ("0x0000000040080000:  d503201f  nop", None),
            ("0x00000100", None),
            ("IN: main", None),
            ("0x+0000100:  b480", None),
        ] {
            assert_eq!(instruction_of(line.as_bytes()), read, "{line}");
        }
    }

    #[test]
    fn what_runs_once_without_a_fault_is_not_behind_one() {
        let (a, b) = ("0x00000100:  b480  push", "0x00000102:  f000 f801  bl");
        let mut all = code(&[(a, true), (b, true)]);
        assert_eq!(all.instructions(), [(0x100..0x102, true), (0x102..0x106, true)]);
        all.merge(&code(&[(b, false)]));
        assert_eq!(all.instructions(), [(0x100..0x102, true), (0x102..0x106, false)]);
        let collector = CodeCollector::default();
        collector.add("x", &code(&[(a, false)]));
        collector.add("x", &code(&[(b, false)]));
        collector.add("known-good", &all);
        assert_eq!(collector.of("x").unwrap().instructions().len(), 2);
        assert_eq!(collector.of("y"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(line in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut code = ExecutedCode::default();
            code.take(&line, false, None);
            code.take(&[b"0x", &*line].concat(), false, None);
            prop_assert!(code.instructions().len() <= 1);
        }

        #[test]
        fn each_instruction_is_found(at in any::<u32>(), word in any::<u32>(), wide: bool) {
            let (bytes, len) = if wide {
                (format!("{:04x} {:04x}", word >> 16, word & 0xffff), 4)
            } else {
                (format!("{:04x}", word & 0xffff), 2)
            };
            let line = format!("{at:#010x}:  {bytes}  whatever");
            prop_assert_eq!(instruction_of(line.as_bytes()), Some((at, len)));
        }
    }
}
