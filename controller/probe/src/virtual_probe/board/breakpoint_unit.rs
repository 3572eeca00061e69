//! The breakpoint unit's registers.

use std::collections::BTreeSet;

use jig_model::profile::DebugCore;

/// Comparators: as many as the real units have.
const V6M_COMPARATORS: usize = 4;
const V7M_COMPARATORS: usize = 8;

/// The unit's registers.
#[derive(Debug)]
pub(super) struct BreakpointUnit {
    pub(super) v6m: bool,
    pub(super) enabled: bool,
    pub(super) comparators: Vec<u32>,
    /// What the emulator has now.
    pub(super) inserted: BTreeSet<u32>,
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
    pub(super) fn addresses(&self, comparator: u32) -> [Option<u32>; 2] {
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
