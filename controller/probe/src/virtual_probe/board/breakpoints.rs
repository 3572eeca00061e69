//! The breakpoints that the emulator really has.

use std::collections::BTreeSet;

use jig_drivers::qemu::debug::{Access, Packets};

use super::core_registers::{LR, PC};
use super::{BusError, CoreRunState, EmulatedBoard};

impl EmulatedBoard {
    /// Returns packets that make the emulator's breakpoints what they must be for the core to
    /// run on from where it stands.
    pub(super) fn sync_breakpoints(&mut self) -> Result<Packets, BusError> {
        let attached = self.debug.is_attached();
        self.guards.trap = if attached { self.find_trap()? } else { None };
        self.guards.hard_fault = if attached { self.find_hard_fault()? } else { None };
        let unit = &mut self.breakpoints;
        let mut wanted = BTreeSet::new();
        if unit.enabled {
            let addresses = unit.comparators.iter().flat_map(|&value| unit.addresses(value));
            wanted.extend(addresses.flatten());
        }
        wanted.extend(self.guards.trap);
        wanted.extend(self.guards.hard_fault);
        let mut packets = Packets::default();
        for &gone in unit.inserted.difference(&wanted) {
            packets.remove_breakpoint(gone);
        }
        for &new in wanted.difference(&unit.inserted) {
            packets.insert_breakpoint(new);
        }
        unit.inserted = wanted;
        Ok(packets)
    }

    /// Makes a change of breakpoints hold for a core that runs.
    pub(super) fn sync_live(&mut self) -> Result<(), BusError> {
        if self.state != CoreRunState::Running {
            return Ok(());
        }
        self.while_standing(|board| {
            let packets = board.sync_breakpoints()?;
            board.with_gdb(|gdb| gdb.perform(&packets))
        })
    }

    /// Finds the `BKPT` a function was called to return to.
    fn find_trap(&mut self) -> Result<Option<u32>, BusError> {
        let general = self.general()?;
        let back = general[LR] & !1;
        Ok((back != general[PC] && self.is_halting_bkpt(back)?).then_some(back))
    }

    /// Finds where the HardFault handler begins.
    pub(super) fn find_hard_fault(&mut self) -> Result<Option<u32>, BusError> {
        let vector = match self.peeked.hard_fault {
            Some((_, vector)) => vector,
            None => {
                let table = if self.is_v6m() { 0 } else { self.peek_word(VTOR)? };
                let at = table.wrapping_add(HARD_FAULT_VECTOR);
                let vector = match self.peek_word(at) {
                    Ok(vector) => vector,
                    Err(BusError::Fault) => 0,
                    Err(lost) => return Err(lost),
                };
                self.peeked.hard_fault = Some((at, vector));
                vector
            }
        };
        let entry = vector & !1;
        Ok((vector & 1 != 0 && self.map.is_memory(entry, 2)).then_some(entry))
    }

    /// Tells whether a `BKPT` lies at an address that halts a core with a debugger attached.
    pub(super) fn is_halting_bkpt(&mut self, address: u32) -> Result<bool, BusError> {
        let Some(code) = self.instruction(address)? else { return Ok(false) };
        let semihosting = self.semihosting && code == BKPT_SEMIHOSTING;
        Ok(code & 0xff00 == BKPT && !semihosting)
    }

    /// Returns the first 16 bits of the instruction at an address, if memory is there.
    pub(super) fn instruction(&mut self, address: u32) -> Result<Option<u16>, BusError> {
        if !address.is_multiple_of(2) || !self.map.is_memory(address, 2) {
            return Ok(None);
        }
        if let Some(code) = self.peeked.code.get(&address) {
            return Ok(Some(*code));
        }
        let code = self.with_qtest(|qtest| qtest.read(address, Access::Half))? as u16;
        self.peeked.code.insert(address, code);
        Ok(Some(code))
    }
}

const BKPT: u16 = 0xbe00;
const BKPT_SEMIHOSTING: u16 = 0xbeab;

const VTOR: u32 = 0xe000_ed08;
const HARD_FAULT_VECTOR: u32 = 12;
