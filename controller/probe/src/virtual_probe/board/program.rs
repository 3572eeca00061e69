//! The memory that keeps its content without power.

use jig_model::profile::FlashModel;

use super::map::RegionKind;
use super::{BusError, EmulatedBoard};
use crate::MemoryRange;

/// Bytes that are put back, or left as the emulator has them, together.
const PIECE: usize = 4096;

impl EmulatedBoard {
    /// Tells whether a debugger's writes there go past the bus.
    pub(super) fn is_plain_flash(&self, start: u32, len: usize) -> bool {
        self.program.model == FlashModel::Plain && self.program.holds(start, len)
    }

    /// Reads program memory as it was last seen, for a core whose lock-up took the emulator:
    /// a reset brings this back. Tells whether all of it is program memory.
    pub(super) fn recall_program(&self, start: u32, out: &mut [u8]) -> bool {
        let found = self.program.regions.iter().find_map(|(first, region)| {
            let from = start.checked_sub(*first)? as usize;
            region.get(from..from.checked_add(out.len())?)
        });
        found.is_some_and(|bytes| {
            out.copy_from_slice(bytes);
            true
        })
    }

    /// Takes note of a debugger's write. Flash with a controller decides by itself what it
    /// holds, and is read.
    pub(super) fn note_program_write(&mut self, start: u32, bytes: &[u8]) {
        if self.program.model != FlashModel::Modelled {
            self.program.overwrite(start, bytes);
        }
    }

    /// Reads what the flash holds now.
    pub(super) fn keep_program(&mut self) -> Result<(), BusError> {
        if self.program.model != FlashModel::Modelled {
            return Ok(());
        }
        let mut regions = std::mem::take(&mut self.program.regions);
        let read = regions
            .iter_mut()
            .try_for_each(|(start, bytes)| self.with_qtest(|q| q.read_bytes(*start, bytes)));
        self.program.regions = regions;
        read
    }

    /// Puts back into a new emulator what its memory held. The core stands.
    pub(super) fn restore_program(&mut self) -> Result<(), BusError> {
        let regions = std::mem::take(&mut self.program.regions);
        let restored = regions.iter().try_for_each(|(start, bytes)| self.restore(*start, bytes));
        self.program.regions = regions;
        restored
    }

    fn restore(&mut self, start: u32, bytes: &[u8]) -> Result<(), BusError> {
        if self.map.kind(start, bytes.len()) != Some(RegionKind::Memory) {
            return Err(BusError::Fault);
        }
        // A new emulator's memory is zero.
        let mut pieces = bytes.chunks(PIECE).enumerate().peekable();
        while let Some((first, piece)) = pieces.next() {
            if piece.iter().all(|&byte| byte == 0) {
                continue;
            }
            let mut end = first * PIECE + piece.len();
            while let Some((_, next)) = pieces.next_if(|(_, p)| p.iter().any(|&byte| byte != 0)) {
                end += next.len();
            }
            let from = first * PIECE;
            let (at, run) = (start + from as u32, &bytes[from..end]);
            if self.program.model == FlashModel::Ram {
                self.with_qtest(|qtest| qtest.write_bytes(at, run))?;
            } else {
                self.with_gdb(|gdb| gdb.write_memory(at, run))?;
            }
        }
        Ok(())
    }

    /// Returns what the program memory holds.
    pub(crate) fn program_image(&mut self) -> Result<Vec<MemoryRange>, BusError> {
        if self.channels.is_some() {
            self.keep_program()?;
        }
        let ranges = self.program.regions.iter();
        Ok(ranges
            .map(|(start, bytes)| MemoryRange { start: u64::from(*start), bytes: bytes.clone() })
            .collect())
    }

    /// Sets what the program memory holds; what is not given stays.
    pub(crate) fn set_program_image(&mut self, image: &[MemoryRange]) -> Result<(), BusError> {
        self.check_lost()?;
        let fits = |range: &MemoryRange| {
            u32::try_from(range.start)
                .is_ok_and(|start| self.program.holds(start, range.bytes.len()))
        };
        if !image.iter().all(fits) {
            return Err(BusError::Fault);
        }
        if self.channels.is_some() {
            self.keep_program()?;
        }
        for range in image {
            self.program.overwrite(range.start as u32, &range.bytes);
        }
        self.peeked = super::Peeked::default();
        self.read_ahead.clear();
        if self.channels.is_none() {
            // The next launch puts it there.
            return Ok(());
        }
        self.while_standing(|board| {
            image.iter().try_for_each(|range| {
                let start = range.start as u32;
                if board.program.model == FlashModel::Ram {
                    board.with_qtest(|qtest| qtest.write_bytes(start, &range.bytes))
                } else {
                    board.with_gdb(|gdb| gdb.write_memory(start, &range.bytes))
                }
            })
        })
    }
}
