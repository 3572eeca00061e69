//! Core registers: a cache over the stub, and what only an executed instruction can reach.

use jig_drivers::qemu::debug::{Access, Packets};

use super::core_registers::{PC, R0, Registers, SP, Special, XPSR};
use super::{BusError, CoreRunState, EmulatedBoard};

/// Number of xPSR in the stub; the others are numbered as they are called.
const STUB_XPSR: u32 = 25;

/// Numbers of special registers in `MRS` and `MSR`.
mod sysm {
    pub(super) const MSP: u8 = 8;
    pub(super) const PSP: u8 = 9;
    pub(super) const PRIMASK: u8 = 16;
    pub(super) const BASEPRI: u8 = 17;
    pub(super) const FAULTMASK: u8 = 19;
    pub(super) const CONTROL: u8 = 20;
}

/// Selectors of the core register transfer, besides 0 to 16.
mod selector {
    pub(super) const MSP: u32 = 17;
    pub(super) const PSP: u32 = 18;
    pub(super) const MASKS: u32 = 20;
    pub(super) const FPSCR: u32 = 0x21;
    pub(super) const S0: u32 = 0x40;
    pub(super) const S31: u32 = 0x5f;
}

/// How often an instruction is stepped that the core has not executed.
const STEPS: usize = 3;

const THUMB: u32 = 1 << 24;
const EXCEPTION: u32 = 0x1ff;
/// Bits of xPSR that say where in an interruptible instruction or IT block the core is.
const ICI_IT: u32 = 0x0600_fc00;
/// CONTROL: thread mode uses the process stack.
const SPSEL: u32 = 1 << 1;
const UNPRIVILEGED: u32 = 1;

impl EmulatedBoard {
    /// Forgets what the registers held: the core moved. What was written is lost.
    pub(super) fn core_moved(&mut self) {
        self.registers = Registers::default();
        self.read_ahead.clear();
    }

    /// Returns the general registers of a core that does not run.
    pub(super) fn general(&mut self) -> Result<[u32; 17], BusError> {
        if let Some(values) = self.registers.values {
            return Ok(values);
        }
        let values = self.with_gdb(|gdb| gdb.registers::<17>())?;
        self.registers.values = Some(values);
        Ok(values)
    }

    /// Writes a general register; the core gets it when it moves.
    pub(super) fn set_general(&mut self, index: usize, value: u32) -> Result<(), BusError> {
        let mut values = self.general()?;
        values[index] = match index {
            SP => value & !3,
            PC => value & !1,
            // The stub cannot change which exception is handled.
            XPSR => value & !EXCEPTION | values[XPSR] & EXCEPTION,
            _ => value,
        };
        self.registers.values = Some(values);
        self.registers.dirty |= 1 << index;
        if index == SP || index == XPSR {
            self.registers.special = None;
        }
        Ok(())
    }

    /// Returns packets that tell the core what was written, and forgets the registers: it is
    /// about to move.
    pub(super) fn flush(&mut self) -> Packets {
        self.read_ahead.clear();
        let mut packets = Packets::default();
        let Registers { values, dirty, .. } = std::mem::take(&mut self.registers);
        for (index, value) in values.iter().flatten().enumerate() {
            if dirty & 1 << index != 0 {
                let number = if index == XPSR { STUB_XPSR } else { index as u32 };
                packets.write_register(number, *value);
            }
        }
        packets
    }

    /// Reports a step done without executing it, where the debugger cannot tell: the first
    /// instruction of a function that a debugger calls, where it neither branches nor faults.
    /// Debuggers step before they run, and each stop of the emulator costs as much as all else in
    /// the call of a flash algorithm. An access to another register than the program counter, or to
    /// memory, has it executed first.
    pub(super) fn owe_step(&mut self, pc: u32) -> Result<bool, BusError> {
        if self.registers.dirty & 1 << PC == 0 || self.breakpoints.matches(pc) {
            return Ok(false);
        }
        let general = self.general()?;
        let Some(code) = self.instruction(pc)? else { return Ok(false) };
        let plain = match code {
            // Immediate shifts, additions, moves and comparisons; operations on low registers.
            0x0000..=0x43ff => true,
            // PUSH: all it writes must be memory.
            0xb400..=0xb5ff => {
                let len = 4 * (code & 0x1ff).count_ones();
                let bottom = general[SP].wrapping_sub(len);
                self.map.is_memory(bottom, len as usize)
            }
            _ => false,
        };
        // A `BKPT` that is not returned to is found only where the core stands.
        let plain = plain && !self.is_halting_bkpt(pc.wrapping_add(2))?;
        let owed = plain && general[XPSR] & ICI_IT == 0 && general[XPSR] & THUMB != 0;
        self.registers.owed = owed;
        Ok(owed)
    }

    /// Executes a step that is owed.
    pub(super) fn settle(&mut self) -> Result<(), BusError> {
        if !self.registers.owed {
            return Ok(());
        }
        self.registers.owed = false;
        self.bare_step(true)
    }

    /// Tells whether a step is owed.
    pub(super) fn owes_step(&self) -> bool {
        self.registers.owed
    }

    /// Reads a register by its selector; 0 if there is none.
    pub(super) fn read_selected(&mut self, selected: u32) -> Result<u32, BusError> {
        self.stats.registers += 1;
        if self.registers.owed && selected as usize == PC {
            return self.general().map(|values| values[PC].wrapping_add(2));
        }
        self.settle()?;
        let special = match selected {
            0..=16 => return self.general().map(|values| values[selected as usize]),
            selector::FPSCR => return self.read_float("fpscr", 0),
            selector::S0..=selector::S31 => {
                let single = selected - selector::S0;
                return self.read_float(&format!("d{}", single / 2), single as usize % 2);
            }
            selector::MSP | selector::PSP | selector::MASKS => self.special()?,
            _ => return Ok(0),
        };
        Ok(match selected {
            selector::MSP => special.msp,
            selector::PSP => special.psp,
            _ => {
                special.control << 24
                    | special.faultmask << 16
                    | special.basepri << 8
                    | special.primask
            }
        })
    }

    /// Writes a register by its selector.
    pub(super) fn write_selected(&mut self, selected: u32, value: u32) -> Result<(), BusError> {
        self.stats.registers += 1;
        self.settle()?;
        match selected {
            0..=16 => self.set_general(selected as usize, value),
            selector::FPSCR => self.write_float("fpscr", 0, value),
            selector::S0..=selector::S31 => {
                let single = selected - selector::S0;
                self.write_float(&format!("d{}", single / 2), single as usize % 2, value)
            }
            selector::MSP => self.write_special(&[(sysm::MSP, value)]),
            selector::PSP => self.write_special(&[(sysm::PSP, value)]),
            selector::MASKS if self.is_v6m() => {
                self.write_special(&[(sysm::PRIMASK, value & 1), (sysm::CONTROL, value >> 24)])
            }
            selector::MASKS => self.write_special(&[
                (sysm::PRIMASK, value & 1),
                (sysm::BASEPRI, value >> 8 & 0xff),
                (sysm::FAULTMASK, value >> 16 & 1),
                (sysm::CONTROL, value >> 24),
            ]),
            _ => Ok(()),
        }
    }

    fn read_float(&mut self, name: &str, half: usize) -> Result<u32, BusError> {
        let Some(number) = self.numbers.get(name).filter(|_| self.channels.is_some()) else {
            return Ok(0);
        };
        let bytes = self.with_gdb(|gdb| gdb.register(number))?;
        let word = bytes.get(half * 4..half * 4 + 4).and_then(|word| word.try_into().ok());
        word.map(u32::from_le_bytes).ok_or(BusError::Fault)
    }

    fn write_float(&mut self, name: &str, half: usize, value: u32) -> Result<(), BusError> {
        let Some(number) = self.numbers.get(name).filter(|_| self.channels.is_some()) else {
            return Ok(());
        };
        let mut bytes = self.with_gdb(|gdb| gdb.register(number))?;
        let word = bytes.get_mut(half * 4..half * 4 + 4).ok_or(BusError::Fault)?;
        word.copy_from_slice(&value.to_le_bytes());
        let mut packets = Packets::default();
        packets.write_wide_register(number, &bytes);
        self.with_gdb(|gdb| gdb.perform(&packets))
    }

    /// Reads the registers that only instructions reach, all at once.
    fn special(&mut self) -> Result<Special, BusError> {
        if let Some(special) = self.registers.special {
            return Ok(special);
        }
        let before = self.general()?;
        if self.channels.is_none() {
            // Only a dump is left of the core: it was in a handler.
            return Ok(Special { msp: before[SP], ..Special::default() });
        }
        let mut special = Special::default();
        let v7m = !self.is_v6m();
        let mut reads = vec![sysm::CONTROL, sysm::PRIMASK, sysm::MSP, sysm::PSP];
        if v7m {
            reads.extend([sysm::BASEPRI, sysm::FAULTMASK]);
        }
        let code: Vec<[u8; 4]> = reads.iter().map(|&sysm| mrs(sysm)).collect();
        let values = self.borrow_core(&code, &[])?;
        for (sysm, value) in reads.iter().zip(values) {
            match *sysm {
                sysm::CONTROL => special.control = value,
                sysm::PRIMASK => special.primask = value,
                sysm::MSP => special.msp = value,
                sysm::PSP => special.psp = value,
                sysm::BASEPRI => special.basepri = value,
                _ => special.faultmask = value,
            }
        }
        // An unprivileged program may not read its own stack pointers; the active one is known.
        let thread = before[XPSR] & EXCEPTION == 0;
        if thread && special.control & SPSEL != 0 {
            special.psp = before[SP];
        } else {
            special.msp = before[SP];
        }
        self.registers.special = Some(special);
        Ok(special)
    }

    /// Writes special registers. The masks come before CONTROL, which may take the right to
    /// write them away.
    fn write_special(&mut self, writes: &[(u8, u32)]) -> Result<(), BusError> {
        if self.channels.is_none() {
            return Ok(());
        }
        let before = self.general()?;
        let control = self.special()?.control;
        let thread = before[XPSR] & EXCEPTION == 0;
        let active = if thread && control & SPSEL != 0 { sysm::PSP } else { sysm::MSP };
        for &(sysm, value) in writes {
            if sysm == active {
                self.set_general(SP, value)?;
            } else if thread && control & UNPRIVILEGED != 0 {
                // The core would ignore it.
                return Err(BusError::Fault);
            } else {
                self.borrow_core(&[msr(sysm)], &[value])?;
            }
            self.registers.special = None;
        }
        if let [.., (sysm::CONTROL, _)] = writes {
            // The stack pointer may be another one now.
            let flushed = self.flush();
            self.with_gdb(|gdb| gdb.perform(&flushed))?;
        }
        Ok(())
    }

    /// Executes instructions of 4 bytes each, with `inputs` in r0, and returns what r0 held
    /// after each. Registers and memory are put back, the instructions' effects stay.
    fn borrow_core(&mut self, code: &[[u8; 4]], inputs: &[u32]) -> Result<Vec<u32>, BusError> {
        let before = self.general()?;
        let scratch = self.spec.scratch;
        let mut saved = vec![0; code.len() * 4];
        self.with_qtest(|qtest| qtest.read_bytes(scratch, &mut saved))?;
        self.with_qtest(|qtest| qtest.write_bytes(scratch, code.as_flattened()))?;
        let executed = self.execute_borrowed(scratch, code.len(), inputs);
        // Put back whatever happened.
        let restored = self.with_qtest(|qtest| qtest.write_bytes(scratch, &saved));
        // Nothing was moved into SP here but by an instruction that was meant to.
        for index in [R0, PC, XPSR] {
            self.set_general(index, before[index])?;
        }
        restored.and(executed)
    }

    fn execute_borrowed(
        &mut self,
        at: u32,
        count: usize,
        inputs: &[u32],
    ) -> Result<Vec<u32>, BusError> {
        let xpsr = self.general()?[XPSR];
        self.set_general(XPSR, xpsr & !ICI_IT | THUMB)?;
        let mut outputs = Vec::with_capacity(count);
        for step in 0..count {
            let pc = at + 4 * step as u32;
            self.set_general(PC, pc)?;
            if let Some(&input) = inputs.get(step) {
                self.set_general(R0, input)?;
            }
            let mut after = [pc; 17];
            for _ in 0..STEPS {
                self.bare_step(true)?;
                after = self.general()?;
                if after[PC] != pc {
                    break;
                }
                // The core stopped before the instruction, such as for a stop that was on its way.
            }
            if after[PC] != pc + 4 {
                // It faulted, or memory there does not execute.
                return Err(BusError::Fault);
            }
            outputs.push(after[R0]);
        }
        Ok(outputs)
    }

    /// Executes `bx lr` once, which leaves an exception.
    pub(super) fn leave_exception(&mut self) -> Result<(), BusError> {
        const BX_LR: [u8; 4] = [0x70, 0x47, 0x70, 0x47];
        let scratch = self.spec.scratch;
        let mut saved = [0; 4];
        self.with_qtest(|qtest| qtest.read_bytes(scratch, &mut saved))?;
        self.with_qtest(|qtest| qtest.write_bytes(scratch, &BX_LR))?;
        self.set_general(PC, scratch)?;
        let left = self.bare_step(true);
        self.with_qtest(|qtest| qtest.write_bytes(scratch, &saved)).and(left)
    }

    /// Returns the process stack pointer.
    pub(super) fn process_stack(&mut self) -> Result<u32, BusError> {
        self.special().map(|special| special.psp)
    }

    /// Tells whether registers can be transferred now.
    pub(super) fn registers_answer(&self) -> bool {
        matches!(self.state, CoreRunState::Halted | CoreRunState::LockedUp { halted: true })
    }

    /// Reads a word of memory, for the core's own use.
    pub(super) fn peek_word(&mut self, address: u32) -> Result<u32, BusError> {
        if self.map.kind(address, 4).is_none() {
            return Err(BusError::Fault);
        }
        self.with_qtest(|qtest| qtest.read(address, Access::Word))
    }
}

/// Encodes `MRS r0, special`.
fn mrs(sysm: u8) -> [u8; 4] {
    [0xef, 0xf3, sysm, 0x80]
}

/// Encodes `MSR special, r0`.
fn msr(sysm: u8) -> [u8; 4] {
    [0x80, 0xf3, sysm, 0x88]
}
