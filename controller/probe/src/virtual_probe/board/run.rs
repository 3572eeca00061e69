//! Run control: halting, stepping, running, reset, and what a stop was.

use std::time::{Duration, Instant};

use jig_drivers::qemu::debug::{Access, DebugMonitor, Stop};

use super::core_registers::{LR, PC, SP, XPSR};
use super::debug_registers::fault_cause;
use super::{
    BusError, CoreRunState, EmulatedBoard, POLL_TIMEOUT, Peeked, STEP_TIMEOUT, WAITING_STEP_TIMEOUT,
};

/// Instructions that may wait for as long as they like.
const WFE: u16 = 0xbf20;
const WFI: u16 = 0xbf30;

const THUMB: u32 = 1 << 24;
const EXCEPTION: u32 = 0x1ff;
const HARD_FAULT: u32 = 3;
/// Bit of EXC_RETURN: the exception's frame is on the process stack.
const FRAME_ON_PSP: u32 = 1 << 2;
/// Offset of the return address in an exception's frame.
const FRAME_PC: u32 = 24;

/// Number of the exception that nothing but itself and a reset can hold off.
const NMI: u32 = 2;
/// Largest frame of an exception: 26 words with floating point, and one to align it.
const FRAME: u32 = 27 * 4;

const ICSR: u32 = 0xe000_ed04;
const ICSR_NMIPENDSET: u32 = 1 << 31;
const HFSR: u32 = 0xe000_ed2c;
const HFSR_DEBUGEVT: u32 = 1 << 31;

impl EmulatedBoard {
    /// Lets a halted core run.
    pub(super) fn resume(&mut self) -> Result<(), BusError> {
        match self.state {
            CoreRunState::Running => return Ok(()),
            CoreRunState::LockedUp { .. } => {
                self.state = CoreRunState::LockedUp { halted: false };
                return Ok(());
            }
            CoreRunState::Halted => {}
        }
        if self.would_lock_up()? {
            self.state = CoreRunState::LockedUp { halted: false };
            return Ok(());
        }
        let pc = self.general()?[PC];
        if self.owes_step() && self.breakpoints.matches(pc) {
            self.settle()?;
            return self.resume();
        }
        if self.debug.is_attached() && self.is_halting_bkpt(pc)? {
            self.debug.cause(fault_cause::BKPT);
            return Ok(());
        }
        let breakpoints = self.sync_breakpoints()?;
        self.with_gdb(|gdb| gdb.perform(&breakpoints))?;
        self.pass_guard()?;
        self.run_on()
    }

    /// Lets the core run with the breakpoints the emulator has.
    fn run_on(&mut self) -> Result<(), BusError> {
        let packets = self.flush();
        self.with_gdb(|gdb| gdb.resume(packets))?;
        self.state = CoreRunState::Running;
        self.stats.resumes += 1;
        Ok(())
    }

    /// Tells whether a core that starts here locks up at once: it cannot fetch its first
    /// instruction, and there is no handler that could say so. The emulator would abort.
    fn would_lock_up(&mut self) -> Result<bool, BusError> {
        let general = self.general()?;
        let thumb = general[XPSR] & THUMB != 0;
        let fetches = thumb && self.map.is_memory(general[PC], 2);
        Ok(!fetches && self.find_hard_fault()?.is_none())
    }

    /// Executes one instruction of a halted core.
    pub(super) fn step(&mut self) -> Result<(), BusError> {
        if self.state != CoreRunState::Halted {
            return Ok(());
        }
        self.settle()?;
        let pc = self.general()?[PC];
        if self.is_halting_bkpt(pc)? {
            // It halts where it stands; debuggers know and step over it themselves.
            self.debug.cause(fault_cause::BKPT);
            return Ok(());
        }
        if self.would_lock_up()? {
            self.state = CoreRunState::LockedUp { halted: false };
            return Ok(());
        }
        if self.debug.masks_interrupts() && self.owe_step(pc)? {
            self.debug.cause(fault_cause::HALTED);
            return Ok(());
        }
        self.bare_step(self.debug.masks_interrupts())?;
        self.wake()?;
        if self.state == CoreRunState::Halted {
            self.debug.cause(fault_cause::HALTED);
        }
        Ok(())
    }

    /// Executes one instruction, breakpoints or not.
    pub(super) fn bare_step(&mut self, masked: bool) -> Result<(), BusError> {
        if self.steps_masked != Some(masked) {
            self.with_gdb(|gdb| gdb.mask_interrupts_in_steps(masked))?;
            self.steps_masked = Some(masked);
        }
        let pc = self.general()?[PC];
        let waits = matches!(self.instruction(pc)?, Some(WFE | WFI));
        let timeout = if waits { WAITING_STEP_TIMEOUT } else { STEP_TIMEOUT };
        let packets = self.flush();
        self.stats.steps += 1;
        self.with_gdb(|gdb| gdb.step(packets, timeout)).map(drop)
    }

    /// Halts a core that runs.
    pub(super) fn halt(&mut self) -> Result<(), BusError> {
        match self.state {
            CoreRunState::Halted => return Ok(()),
            CoreRunState::LockedUp { .. } => {
                // A core that is still there can be given another program counter and run.
                self.state = match self.channels {
                    Some(_) => CoreRunState::Halted,
                    None => CoreRunState::LockedUp { halted: true },
                };
                self.debug.cause(fault_cause::HALTED);
                return Ok(());
            }
            CoreRunState::Running => {}
        }
        let stop = self.with_gdb(|gdb| gdb.interrupt())?;
        self.stopped(stop, true)
    }

    /// Notices a running core's stop, after waiting for one if asked to.
    pub(super) fn notice_stop(&mut self, wait: bool) -> Result<(), BusError> {
        if self.state != CoreRunState::Running {
            return Ok(());
        }
        let began = Instant::now();
        let timeout = if wait { POLL_TIMEOUT } else { Duration::ZERO };
        let stop = self.with_gdb(|gdb| gdb.wait(timeout));
        self.stats.waits += 1;
        self.stats.wait_time += began.elapsed();
        let stop = match stop {
            // It may have locked up, which is a state and no fault of this access.
            Err(BusError::Fault) => return Ok(()),
            other => other?,
        };
        match stop {
            Some(stop) => self.stopped(stop, false),
            // Looked at only while nothing else happens: it costs a system call.
            None => self.notice_resets(),
        }
    }

    fn notice_resets(&mut self) -> Result<(), BusError> {
        let seen = match self.with_monitor(DebugMonitor::resets) {
            Err(BusError::Fault) => return Ok(()),
            seen => seen?,
        };
        if seen.by_target || seen.by_host {
            self.debug.was_reset = true;
        }
        Ok(())
    }

    /// Does something while the core stands, and lets it run on unless it stopped by itself.
    pub(super) fn while_standing<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, BusError>,
    ) -> Result<T, BusError> {
        if self.state != CoreRunState::Running {
            return work(self);
        }
        let stop = self.with_gdb(|gdb| gdb.interrupt())?;
        self.core_moved();
        self.state = CoreRunState::Halted;
        if stop != Stop::Interrupted && self.stopped_by_itself(stop)? {
            return work(self);
        }
        let done = work(self);
        if self.state == CoreRunState::Halted && self.channels.is_some() {
            self.pass_guard()?;
            self.run_on()?;
        }
        done
    }

    /// Tells whether a stop that came when one was asked for has a reason of its own, and
    /// notes the reason if so. Without one the core passes through a guard.
    fn stopped_by_itself(&mut self, stop: Stop) -> Result<bool, BusError> {
        let before = self.debug.take_causes();
        let outcome = self.stopped(stop, true);
        let causes = self.debug.take_causes();
        let by_itself = causes & !fault_cause::HALTED != 0;
        self.debug.cause(before | if by_itself { causes } else { 0 });
        outcome.map(|()| by_itself)
    }

    /// Steps over the guard at the HardFault handler, if the core stands at it: it would
    /// stop there again.
    fn pass_guard(&mut self) -> Result<(), BusError> {
        let pc = self.general()?[PC];
        if self.guards.hard_fault == Some(pc) && !self.breakpoints.matches(pc) {
            self.bare_step(false)?;
        }
        Ok(())
    }

    /// Wakes a core that stands behind a `WFI`. On a chip a request to halt ends the wait; the
    /// emulator's core sleeps on, whatever its program counter becomes, and executes no step.
    ///
    /// What wakes it in any handler and under any mask is an NMI. It is left at once: the
    /// registers come back with its frame. That is below the scratch memory, because the
    /// program's stack may point nowhere, and the memory is put back.
    fn wake(&mut self) -> Result<(), BusError> {
        if self.state != CoreRunState::Halted || self.channels.is_none() {
            return Ok(());
        }
        let general = self.general()?;
        let behind = general[PC].wrapping_sub(2);
        // Nothing comes in between in an NMI.
        if self.instruction(behind)? != Some(WFI) || general[XPSR] & EXCEPTION == NMI {
            return Ok(());
        }
        let stack = self.spec.scratch & !7;
        let bottom = stack.wrapping_sub(FRAME);
        let mut saved = [0; FRAME as usize];
        self.with_qtest(|qtest| qtest.read_bytes(bottom, &mut saved))?;
        self.set_general(SP, stack)?;
        let woken = self.pass_nmi();
        self.with_qtest(|qtest| qtest.write_bytes(bottom, &saved))?;
        self.set_general(SP, general[SP])?;
        woken
    }

    fn pass_nmi(&mut self) -> Result<(), BusError> {
        let pend = (ICSR, Access::Word, ICSR_NMIPENDSET);
        self.with_qtest(|qtest| qtest.write_each(&[pend]))?;
        self.bare_step(false)?;
        let entered = self.general()?;
        if entered[XPSR] & EXCEPTION == NMI {
            // The vector may be none; its handler is not executed.
            self.set_general(XPSR, entered[XPSR] | THUMB)?;
            self.leave_exception()?;
        }
        Ok(())
    }

    /// Finds out why the core stopped. It runs on if neither debugger nor program asked for it.
    fn stopped(&mut self, stop: Stop, halt_requested: bool) -> Result<(), BusError> {
        self.state = CoreRunState::Halted;
        self.core_moved();
        if stop == Stop::Interrupted {
            self.peeked = Peeked::default();
            self.debug.cause(fault_cause::HALTED);
            return self.wake();
        }
        let pc = self.general()?[PC];
        if self.guards.trap == Some(pc) {
            // It came back from a call: what was read before the call still holds.
            self.debug.cause(fault_cause::BKPT);
            return Ok(());
        }
        self.peeked = Peeked::default();
        // On a chip a `BKPT` halts the core and no handler is entered, so it comes before a
        // breakpoint at the handler.
        if self.guards.hard_fault == Some(pc) && self.leave_bkpt()? {
            return Ok(());
        }
        if self.breakpoints.matches(pc) {
            self.debug.cause(fault_cause::BKPT);
            return Ok(());
        }
        if self.guards.hard_fault != Some(pc) {
            self.debug.cause(fault_cause::HALTED);
            return Ok(());
        }
        self.at_hard_fault(halt_requested)
    }

    /// Tells whether the core, which stands at the entry of the HardFault handler, has entered it.
    fn entered_hard_fault(&mut self) -> Result<bool, BusError> {
        let general = self.general()?;
        Ok(general[LR] >> 28 == 0xf && general[XPSR] & EXCEPTION == HARD_FAULT)
    }

    /// Undoes the entry of the HardFault handler if a `BKPT` has led there; tells whether.
    fn leave_bkpt(&mut self) -> Result<bool, BusError> {
        if !self.entered_hard_fault()? {
            return Ok(false);
        }
        let general = self.general()?;
        let frame = match general[LR] & FRAME_ON_PSP {
            0 => general[SP],
            _ => self.process_stack()?,
        };
        let came_from = match self.peek_word(frame.wrapping_add(FRAME_PC)) {
            Ok(pc) => pc,
            // A stack that is nowhere holds no return address.
            Err(BusError::Fault) => u32::MAX,
            Err(lost) => return Err(lost),
        };
        if !self.is_halting_bkpt(came_from)? {
            return Ok(false);
        }
        self.leave_exception()?;
        if !self.is_v6m() {
            let event = (HFSR, Access::Word, HFSR_DEBUGEVT);
            self.with_qtest(|qtest| qtest.write_each(&[event]))?;
        }
        self.debug.cause(fault_cause::BKPT);
        Ok(true)
    }

    /// The core reached the entry of the HardFault handler, and no `BKPT` has led there: by a fault, or
    /// because a handler of something else begins there too.
    fn at_hard_fault(&mut self, halt_requested: bool) -> Result<(), BusError> {
        if self.entered_hard_fault()? {
            self.stats.hard_faults += 1;
            if self.debug.catches_hard_faults() {
                self.debug.cause(fault_cause::VCATCH);
                return Ok(());
            }
        }
        if halt_requested {
            self.debug.cause(fault_cause::HALTED);
            return Ok(());
        }
        self.bare_step(false)?;
        self.run_on()
    }

    /// Resets the chip, and launches a new emulator if a lock-up took the old one.
    pub(super) fn reset(&mut self) -> Result<(), BusError> {
        self.check_lost()?;
        if self.state == CoreRunState::Running {
            match self.with_gdb(|gdb| gdb.interrupt()) {
                // It may lock up at this very moment.
                Ok(_) | Err(BusError::Fault) => {}
                Err(lost) => return Err(lost),
            }
        }
        if self.channels.is_some() {
            self.keep_program()?;
            self.with_monitor(DebugMonitor::system_reset)?;
        } else {
            self.launch().map_err(|error| {
                self.machine.let_go();
                self.lose(error.to_string())
            })?;
        }
        self.core_moved();
        self.peeked = Peeked::default();
        self.state = CoreRunState::Halted;
        self.debug.clear_causes();
        self.debug.was_reset = true;
        if self.in_reset { Ok(()) } else { self.leave_reset() }
    }

    /// Detaches the debugger, resets the chip and lets it run.
    pub(crate) fn run_free(&mut self) -> Result<(), BusError> {
        self.debug.detach();
        self.breakpoints.disable();
        self.in_reset = false;
        self.reset()
    }

    /// The core is about to execute its first instruction.
    fn leave_reset(&mut self) -> Result<(), BusError> {
        // A debugger that attaches under reset may ask for the vector catch before it
        // enables debug, so that alone is enough.
        if self.debug.catches_reset() {
            self.debug.cause(fault_cause::VCATCH);
            self.debug.set_halted(true);
            return Ok(());
        }
        self.debug.set_halted(false);
        self.resume()
    }

    /// Drives the reset pin.
    pub(super) fn drive_reset_pin(&mut self, level: bool) -> Result<(), BusError> {
        if level != self.in_reset {
            return self.check_lost();
        }
        if !level {
            self.in_reset = true;
            return match self.halt() {
                Err(BusError::Fault) => Ok(()),
                other => other,
            };
        }
        self.in_reset = false;
        self.reset()
    }

    /// Returns the level of the reset pin.
    pub(super) fn reset_pin(&self) -> bool {
        !self.in_reset
    }
}
