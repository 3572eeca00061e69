//! The breakpoint unit, and the breakpoints the emulator really has.

use std::collections::BTreeSet;

use jig_drivers::qemu::debug::{Access, Packets};
use jig_model::profile::DebugCore;

use super::registers::{LR, PC};
use super::{Board, BusError, RunState};

/// Comparators: as many as the real units have.
const V6M_COMPARATORS: usize = 4;
const V7M_COMPARATORS: usize = 8;

/// The unit's registers.
#[derive(Debug)]
pub(super) struct BreakpointUnit {
    v6m: bool,
    enabled: bool,
    comparators: Vec<u32>,
    /// What the emulator has now.
    inserted: BTreeSet<u32>,
}

const ENABLE: u32 = 1;
const KEY: u32 = 1 << 1;

impl BreakpointUnit {
    pub(super) fn new(core: DebugCore) -> Self {
        let v6m = core == DebugCore::Armv6m;
        let count = if v6m { V6M_COMPARATORS } else { V7M_COMPARATORS };
        Self { v6m, enabled: false, comparators: vec![0; count], inserted: BTreeSet::new() }
    }

    /// Reads the control register. On ARMv7-M it is of the second revision, which can set
    /// breakpoints on all of the memory.
    pub(super) fn control(&self) -> u32 {
        let revision = if self.v6m { 0 } else { 1 << 28 };
        revision | (self.comparators.len() as u32) << 4 | u32::from(self.enabled)
    }

    /// Writes the control register; tells whether anything changed.
    pub(super) fn set_control(&mut self, value: u32) -> bool {
        let enabled = value & ENABLE != 0;
        let changes = value & KEY != 0 && enabled != self.enabled;
        self.enabled ^= changes;
        changes
    }

    /// Turns the unit off.
    pub(super) fn disable(&mut self) {
        self.enabled = false;
    }

    /// Reads a comparator; 0 if there is none.
    pub(super) fn comparator(&self, index: usize) -> u32 {
        self.comparators.get(index).copied().unwrap_or(0)
    }

    /// Writes a comparator; tells whether a breakpoint may have changed.
    pub(super) fn set_comparator(&mut self, index: usize, value: u32) -> bool {
        match self.comparators.get_mut(index) {
            Some(comparator) if *comparator != value => {
                *comparator = value;
                self.enabled
            }
            Some(_) | None => false,
        }
    }

    /// The emulator is a new one.
    pub(super) fn forget_inserted(&mut self) {
        self.inserted.clear();
    }

    /// Tells whether a comparator matches an address.
    pub(super) fn matches(&self, address: u32) -> bool {
        self.enabled
            && self.comparators.iter().any(|&value| self.addresses(value).contains(&Some(address)))
    }

    /// Returns the addresses that a comparator matches.
    fn addresses(&self, comparator: u32) -> [Option<u32>; 2] {
        if comparator & ENABLE == 0 {
            return [None, None];
        }
        if self.v6m {
            let word = comparator & 0x1fff_fffc;
            let half = |bit: u32, address| (comparator & 1 << bit != 0).then_some(address);
            [half(30, word), half(31, word | 2)]
        } else {
            [Some(comparator & !1), None]
        }
    }
}

impl Board {
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
        if self.state != RunState::Running {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparators_match_what_the_architecture_says() {
        let mut v6m = BreakpointUnit::new(DebugCore::Armv6m);
        assert_eq!(v6m.control(), 0x40);
        assert!(!v6m.set_comparator(0, 1 << 31 | 0x100 | 1));
        assert!(!v6m.matches(0x102));
        assert!(!v6m.set_control(ENABLE), "without the key");
        assert!(v6m.set_control(KEY | ENABLE));
        assert!(v6m.matches(0x102) && !v6m.matches(0x100));
        assert!(v6m.set_comparator(0, 0b11 << 30 | 0x100 | 1));
        assert!(v6m.matches(0x102) && v6m.matches(0x100));
        assert!(!v6m.set_comparator(9, 1));
        let mut v7m = BreakpointUnit::new(DebugCore::Armv7m);
        assert_eq!(v7m.control(), 0x1000_0080);
        v7m.set_control(KEY | ENABLE);
        assert!(v7m.set_comparator(7, 0x2000_0003));
        assert!(v7m.matches(0x2000_0002) && !v7m.matches(0x2000_0000));
    }
}
