//! The words of the system control space that a debugger works with and the emulator lacks.

use super::debug_registers::{C_DEBUGEN, C_HALT, C_STEP};
use super::{BusError, CoreRunState, EmulatedBoard, rom_table};

const C_BITS: u32 = 0xf;
const S_REGRDY: u32 = 1 << 16;
const S_HALT: u32 = 1 << 17;
const S_LOCKUP: u32 = 1 << 19;
const S_RETIRE_ST: u32 = 1 << 24;
const S_RESET_ST: u32 = 1 << 25;
const DHCSR_KEY: u32 = 0xa05f;

const AIRCR_KEY: u32 = 0x05fa;
/// SYSRESETREQ and VECTRESET.
const AIRCR_RESETS: u32 = 0b101;

const REGISTER_WRITE: u32 = 1 << 16;
const REGISTER: u32 = 0x7f;

const AIRCR: u32 = 0xe000_ed0c;
const DFSR: u32 = 0xe000_ed30;
const DHCSR: u32 = 0xe000_edf0;
const DCRSR: u32 = 0xe000_edf4;
const DCRDR: u32 = 0xe000_edf8;
const DEMCR: u32 = 0xe000_edfc;
const BP_CTRL: u32 = 0xe000_2000;
const BP_COMP0: u32 = 0xe000_2008;
const BP_COMP_LAST: u32 = 0xe000_2024;
const ROM_TABLE_LAST: u32 = rom_table::BASE + 0xffc;

/// A word that is imitated here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Imitated {
    Aircr,
    Dfsr,
    Dhcsr,
    Dcrsr,
    Dcrdr,
    Demcr,
    BreakpointControl,
    Comparator(usize),
    RomTable(u32),
}

impl Imitated {
    /// Returns which word an address lies in.
    pub(super) fn at(address: u32) -> Option<Self> {
        Some(match address & !3 {
            AIRCR => Self::Aircr,
            DFSR => Self::Dfsr,
            DHCSR => Self::Dhcsr,
            DCRSR => Self::Dcrsr,
            DCRDR => Self::Dcrdr,
            DEMCR => Self::Demcr,
            BP_CTRL => Self::BreakpointControl,
            word @ BP_COMP0..=BP_COMP_LAST => Self::Comparator(((word - BP_COMP0) / 4) as usize),
            word @ rom_table::BASE..=ROM_TABLE_LAST => Self::RomTable(word - rom_table::BASE),
            _ => return None,
        })
    }
}

impl EmulatedBoard {
    /// Reads an imitated word; nothing if the emulator has it.
    pub(super) fn read_imitated(&mut self, word: Imitated) -> Result<Option<u32>, BusError> {
        Ok(Some(match word {
            Imitated::Aircr => return Ok(None),
            Imitated::Dfsr => self.debug.dfsr,
            Imitated::Dhcsr => self.read_dhcsr()?,
            Imitated::Dcrsr => 0,
            Imitated::Dcrdr => self.debug.dcrdr,
            Imitated::Demcr => self.debug.demcr,
            Imitated::BreakpointControl => self.breakpoints.control(),
            Imitated::Comparator(index) => self.breakpoints.comparator(index),
            Imitated::RomTable(offset) => rom_table::word(&self.spec, offset),
        }))
    }

    /// Writes an imitated word; false if the emulator is to get it.
    pub(super) fn write_imitated(&mut self, word: Imitated, value: u32) -> Result<bool, BusError> {
        match word {
            Imitated::Aircr => {
                if value >> 16 != AIRCR_KEY || value & AIRCR_RESETS == 0 {
                    return Ok(false);
                }
                self.reset()?;
            }
            Imitated::Dfsr => self.debug.dfsr &= !value,
            Imitated::Dhcsr if value >> 16 == DHCSR_KEY => self.write_dhcsr(value & C_BITS)?,
            Imitated::Dhcsr => {}
            Imitated::Dcrsr => self.transfer_register(value)?,
            Imitated::Dcrdr => self.debug.dcrdr = value,
            Imitated::Demcr => self.debug.demcr = value,
            Imitated::BreakpointControl => {
                if self.breakpoints.set_control(value) {
                    self.sync_live()?;
                }
            }
            Imitated::Comparator(index) => {
                if self.breakpoints.set_comparator(index, value) {
                    self.sync_live()?;
                }
            }
            Imitated::RomTable(_) => {}
        }
        Ok(true)
    }

    fn read_dhcsr(&mut self) -> Result<u32, BusError> {
        self.notice_stop(true)?;
        self.check_lost()?;
        let mut value = self.debug.control | S_REGRDY;
        let halted = if self.debug.is_attached() { S_HALT | C_HALT } else { 0 };
        value |= match self.state {
            // Whatever halts the core also sets C_HALT: debuggers write back what they read.
            CoreRunState::Halted | CoreRunState::LockedUp { halted: true } => halted,
            CoreRunState::Running => S_RETIRE_ST,
            CoreRunState::LockedUp { halted: false } => S_LOCKUP,
        };
        if std::mem::take(&mut self.debug.was_reset) {
            value |= S_RESET_ST;
        }
        Ok(value)
    }

    fn write_dhcsr(&mut self, control: u32) -> Result<(), BusError> {
        let before = self.debug.control;
        self.notice_stop(false)?;
        self.debug.control = control;
        let attached = control & C_DEBUGEN != 0;
        if attached && before & (C_DEBUGEN | C_HALT) == C_HALT && control == C_DEBUGEN {
            // The core was caught at its reset vector before debug was enabled: it stays.
            self.debug.set_halted(true);
            return Ok(());
        }
        if !attached {
            if before & C_DEBUGEN != 0 {
                self.debug.control = 0;
                // Detached cores run without breakpoints.
                if self.state == CoreRunState::Running {
                    return self.sync_live();
                }
                return self.resume();
            }
            return Ok(());
        }
        if before & C_DEBUGEN == 0 && control & C_HALT == 0 {
            self.sync_live()?;
        }
        if control & C_HALT != 0 {
            return self.halt();
        }
        if control & C_STEP != 0 {
            self.step()?;
            self.debug.set_halted(true);
            return Ok(());
        }
        self.resume()?;
        if self.state == CoreRunState::Halted {
            self.debug.set_halted(true);
        }
        Ok(())
    }

    fn transfer_register(&mut self, command: u32) -> Result<(), BusError> {
        if !self.registers_answer() {
            return Ok(());
        }
        let selected = command & REGISTER;
        if command & REGISTER_WRITE != 0 {
            self.write_selected(selected, self.debug.dcrdr)
        } else {
            self.debug.dcrdr = self.read_selected(selected)?;
            Ok(())
        }
    }
}
