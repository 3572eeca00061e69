//! Functions that the linker dropped, and whose debug information it kept.
//!
//! A linker that drops a section writes a tombstone for each of its addresses. GNU ld's is 0,
//! which on a Cortex-M is where the code begins: a dropped function seems to lie over live
//! ones. Here such addresses become the tombstone that DWARF 6 reserves and readers skip.

use std::ops::Range;
use std::sync::Arc;

use gimli::{EndianReader, LittleEndian, Relocate, RelocateReader, SectionId};

/// Shared bytes.
pub(super) type SectionBytes = EndianReader<LittleEndian, Arc<[u8]>>;

/// Reads DWARF without the dead.
pub(super) type SectionReader = RelocateReader<SectionBytes, Tombstones>;

/// The tombstone of DWARF 6 for 32-bit addresses.
const TOMBSTONE: u64 = 0xffff_ffff;

/// Which zeros of a section are tombstones.
#[derive(Debug, Clone)]
pub(super) struct Tombstones {
    bury: bool,
    /// Bytes of `.debug_info` that describe whole units. Their zero is a base, not an address.
    units: Arc<[Range<usize>]>,
}

impl Tombstones {
    /// Takes every address as it is.
    pub(super) fn none() -> Self {
        Self { bury: false, units: Arc::from([]) }
    }

    /// Buries zeros in sections whose addresses are those of functions; in others a zero may
    /// end a list.
    pub(super) fn of(section: SectionId, units: &Arc<[Range<usize>]>) -> Self {
        let bury = matches!(
            section,
            SectionId::DebugInfo | SectionId::DebugLine | SectionId::DebugRngLists
        );
        let units = if section == SectionId::DebugInfo { Arc::clone(units) } else { Arc::from([]) };
        Self { bury, units }
    }
}

impl Relocate for Tombstones {
    fn relocate_address(&self, offset: usize, value: u64) -> gimli::Result<u64> {
        if !self.bury || value != 0 {
            return Ok(value);
        }
        let after = self.units.partition_point(|unit| unit.start <= offset);
        let in_unit = self.units[..after].last().is_some_and(|unit| unit.contains(&offset));
        Ok(if in_unit { 0 } else { TOMBSTONE })
    }

    fn relocate_offset(&self, _offset: usize, value: usize) -> gimli::Result<usize> {
        Ok(value)
    }
}
