//! The memory that registers point into.

use super::symbols::Symbols;
use crate::CoreSnapshot;

/// Memory as it was captured, with the image's constants where it was not.
#[derive(Clone, Copy)]
pub(crate) struct KnownMemory<'a> {
    snapshot: &'a CoreSnapshot,
    symbols: Option<&'a Symbols>,
}

impl<'a> KnownMemory<'a> {
    pub(crate) fn new(snapshot: &'a CoreSnapshot, symbols: Option<&'a Symbols>) -> Self {
        Self { snapshot, symbols }
    }

    /// Reads a little-endian word of what was captured: never of the image.
    pub(crate) fn word(&self, address: u32) -> Option<u32> {
        self.snapshot.word(address)
    }

    /// Returns what was captured, without the image.
    pub(super) fn snapshot(&self) -> &'a CoreSnapshot {
        self.snapshot
    }

    /// Reads a byte of what was captured, or of the image's constants.
    pub(crate) fn byte(&self, address: u32) -> Option<u8> {
        let start = u64::from(address);
        let constant = || self.symbols.and_then(|symbols| symbols.constant(start, 1));
        self.snapshot.read(start, 1).or_else(constant)?.first().copied()
    }

    /// Reads half an instruction.
    pub(crate) fn instruction(&self, address: u32) -> Option<u16> {
        let start = u64::from(address);
        let bytes = self
            .snapshot
            .read(start, 2)
            .or_else(|| self.symbols.and_then(|symbols| symbols.constant(start, 2)))?;
        Some(u16::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Tells whether nothing was captured.
    pub(crate) fn is_empty(&self) -> bool {
        self.snapshot.memory.is_empty()
    }

    /// Returns the first captured address at or above the given one.
    pub(crate) fn first_above(&self, address: u32) -> Option<u32> {
        self.snapshot
            .memory
            .iter()
            .filter_map(|range| {
                let end = range.start.checked_add(range.bytes.len() as u64)?;
                let first = range.start.max(u64::from(address));
                (first < end).then_some(first)
            })
            .min()
            .and_then(|first| u32::try_from(first).ok())
    }
}
