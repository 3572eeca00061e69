//! The bus as the memory access port sees it.

use super::map::RegionKind;
use super::read_ahead::ReadAhead;
use super::system_space::Imitated;
use super::{BusError, CoreRunState, EmulatedBoard};
use crate::virtual_probe::bus::{Access, Bus};

/// The private peripheral bus, in which some words are imitated.
const PRIVATE: std::ops::Range<u32> = 0xe000_0000..0xe010_0000;

/// Bytes that are read together while the machine stands: to move them takes less time than
/// another trip over the channel.
const READ_AHEAD: usize = 8 << 10;

impl Bus for EmulatedBoard {
    fn read(&mut self, address: u32, access: Access, out: &mut [u8]) -> Result<(), BusError> {
        self.check_lost()?;
        self.stats.accesses += 1;
        if PRIVATE.contains(&address) {
            for (at, value) in places(address, access).zip(out.chunks_mut(access.bytes())) {
                self.read_private(at, access, value)?;
            }
            return Ok(());
        }
        self.read_bus(address, access, out)?;
        self.overlay(address, out);
        Ok(())
    }

    fn write(&mut self, address: u32, access: Access, bytes: &[u8]) -> Result<(), BusError> {
        self.check_lost()?;
        self.stats.accesses += 1;
        if PRIVATE.contains(&address) && access == Access::Word {
            for (at, value) in places(address, access).zip(bytes.chunks_exact(4)) {
                self.write_private(at, value)?;
            }
            return Ok(());
        }
        self.write_bus(address, access, bytes)
    }

    fn drive_reset(&mut self, level: bool) -> Result<(), BusError> {
        self.drive_reset_pin(level)
    }

    fn reset_level(&self) -> bool {
        self.reset_pin()
    }
}

/// Returns the addresses of consecutive values.
fn places(start: u32, access: Access) -> impl Iterator<Item = u32> {
    (0_u32..).map(move |index| start.wrapping_add(index.wrapping_mul(access.bytes() as u32)))
}

impl EmulatedBoard {
    fn read_private(
        &mut self,
        address: u32,
        access: Access,
        out: &mut [u8],
    ) -> Result<(), BusError> {
        let imitated = match Imitated::at(address) {
            Some(word) => self.read_imitated(word)?,
            None => None,
        };
        match imitated {
            Some(word) => {
                let lane = word >> ((address & 3) * 8);
                out.copy_from_slice(&lane.to_le_bytes()[..out.len()]);
                Ok(())
            }
            None => self.read_bus(address, access, out),
        }
    }

    fn write_private(&mut self, address: u32, bytes: &[u8]) -> Result<(), BusError> {
        if let Some(word) = Imitated::at(address)
            && self.write_imitated(word, little_endian(bytes))?
        {
            return Ok(());
        }
        self.write_bus(address, Access::Word, bytes)
    }

    fn read_bus(&mut self, address: u32, access: Access, out: &mut [u8]) -> Result<(), BusError> {
        self.settle()?;
        if self.channels.is_none() && self.recall_program(address, out) {
            return Ok(());
        }
        let kind = self.kind(address, out.len())?;
        if kind == RegionKind::Memory && self.state == CoreRunState::Halted {
            return self.read_standing(address, out);
        }
        if kind == RegionKind::Memory && out.len() > access.bytes() {
            return self.with_qtest(|qtest| qtest.read_bytes(address, out));
        }
        let each: Vec<_> = places(address, access)
            .take(out.len() / access.bytes())
            .map(|at| (at, access))
            .collect();
        let mut values = vec![0; each.len()];
        self.with_qtest(|qtest| qtest.read_each(&each, &mut values))?;
        for (value, out) in values.iter().zip(out.chunks_mut(access.bytes())) {
            out.copy_from_slice(&value.to_le_bytes()[..out.len()]);
        }
        Ok(())
    }

    /// Reads memory of a machine that stands, and some that a debugger is likely to ask for next.
    fn read_standing(&mut self, address: u32, out: &mut [u8]) -> Result<(), BusError> {
        if !self.read_ahead.get(address, out) {
            let len = self.map.memory_from(address, READ_AHEAD).max(out.len());
            let mut bytes = vec![0; len];
            self.with_qtest(|qtest| qtest.read_bytes(address, &mut bytes))?;
            out.copy_from_slice(&bytes[..out.len()]);
            self.read_ahead = ReadAhead { start: address, bytes };
        }
        Ok(())
    }

    fn write_bus(&mut self, address: u32, access: Access, bytes: &[u8]) -> Result<(), BusError> {
        self.settle()?;
        self.read_ahead.clear();
        let kind = self.kind(address, bytes.len())?;
        self.forget_peeked(address, bytes.len());
        if self.is_plain_flash(address, bytes.len()) {
            self.while_standing(|board| board.with_gdb(|gdb| gdb.write_memory(address, bytes)))?;
        } else if kind == RegionKind::Memory && bytes.len() > access.bytes() {
            self.with_qtest(|qtest| qtest.write_bytes(address, bytes))?;
        } else {
            let values = bytes.chunks(access.bytes()).map(little_endian);
            let each: Vec<_> =
                places(address, access).zip(values).map(|(at, v)| (at, access, v)).collect();
            self.with_qtest(|qtest| qtest.write_each(&each))?;
        }
        if kind == RegionKind::Memory {
            self.note_program_write(address, bytes);
        }
        Ok(())
    }

    /// Returns what answers at some addresses.
    fn kind(&mut self, address: u32, len: usize) -> Result<RegionKind, BusError> {
        // Nothing answers once a lock-up took the emulator.
        self.channels()?;
        self.map.kind(address, len).ok_or(BusError::Fault)
    }

    /// Forgets instructions and vectors that a write may have changed.
    fn forget_peeked(&mut self, start: u32, len: usize) {
        let end = u64::from(start) + len as u64;
        let touches =
            |at: u32, size: u64| u64::from(at) + size > u64::from(start) && u64::from(at) < end;
        self.peeked.code.retain(|&at, _| !touches(at, 2));
        // The private bus has the register that moves the vectors.
        let private = PRIVATE.contains(&start);
        self.peeked.hard_fault.take_if(|&mut (at, _)| private || touches(at, 4));
    }

    /// Lays the chip's own words over what the emulator has there.
    fn overlay(&self, start: u32, out: &mut [u8]) {
        let start = u64::from(start);
        for (address, word) in &self.spec.overlay {
            for (at, byte) in (u64::from(*address)..).zip(word.to_le_bytes()) {
                let index = at.checked_sub(start).and_then(|index| usize::try_from(index).ok());
                if let Some(slot) = index.and_then(|index| out.get_mut(index)) {
                    *slot = byte;
                }
            }
        }
    }
}

fn little_endian(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte))
}
