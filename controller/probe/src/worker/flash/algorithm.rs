//! A chip's own flash algorithm, running in its RAM.
//!
//! # Design
//! probe-rs has a loader of its own. It cannot stop between two sectors, and it lets the core
//! go with an extra single step for each of the two calls a page takes. The algorithm, its
//! place in RAM and its entry points are probe-rs' (`FlashAlgorithm`); what is here is how the
//! entry points are called: registers, run, wait for the breakpoint that the return address
//! leads to.
//!
//! On Cortex-M the core is let go, and waited for, by its debug registers directly.
//! probe-rs' `run` steps first in case the core stands on a breakpoint, which costs as much as
//! the whole call, and its `status` reads memory to recognise semihosting at each halt.

use std::time::{Duration, Instant};

use probe_rs::flashing::{FlashAlgorithm, FlashError};
use probe_rs::{Core, CoreStatus, Error, InstructionSet, MemoryInterface, RegisterId, Session};

use super::super::attach::RESET;
use super::super::bench::Pulse;
use super::super::core::{is_cortex_m, kind_of};
use super::super::translate;
use crate::ProbeError;

/// Debug halting control and status register: ARMv6-M manual C1.6.3.
const DHCSR: u64 = 0xE000_EDF0;
/// Its key, and `C_DEBUGEN`: lets the core run.
const GO: u32 = 0xA05F_0001;
const S_HALT: u32 = 1 << 17;
const S_LOCKUP: u32 = 1 << 19;
/// Debug fault status register, and all its bits, which are cleared by writing them.
const DFSR: (u64, u32) = (0xE000_ED30, 0x1f);

/// How long the small entry points may take; probe-rs grants them as much.
const SMALL: Duration = Duration::from_secs(2);
/// How long reading a page of external flash may take; as in probe-rs.
const READ: Duration = Duration::from_secs(30);

/// For how long the core is asked without a pause whether it is done: most calls on a fast
/// or emulated chip are over by then. Later a pause costs less than it saves the bus.
const EAGER: Duration = Duration::from_millis(2);
const PAUSE: Duration = Duration::from_micros(200);

/// What the algorithm is prepared for: the numbers are those of CMSIS' `Init`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Erase = 1,
    Program = 2,
    Verify = 3,
}

/// A core with a flash algorithm in its RAM.
pub(crate) struct Loaded<'a> {
    core: Core<'a>,
    algorithm: &'a FlashAlgorithm,
    pulse: &'a Pulse,
    /// Whether the debug registers of Cortex-M are used directly.
    direct: bool,
    thumb: bool,
    /// The page that is being programmed.
    programming: Option<u64>,
}

impl<'a> Loaded<'a> {
    /// Resets and halts a core and loads an algorithm into its RAM.
    pub(crate) fn load(
        session: &'a mut Session,
        core: usize,
        algorithm: &'a FlashAlgorithm,
        pulse: &'a Pulse,
    ) -> Result<Self, ProbeError> {
        let failed = |error| translate::flash_core("prepared".to_owned(), error);
        let mut core = session.core(core).map_err(failed)?;
        core.reset_and_halt(RESET).map_err(failed)?;
        pulse.beat();
        core.write_32(algorithm.load_address, &algorithm.instructions).map_err(failed)?;
        let mut read = vec![0; algorithm.instructions.len()];
        core.read_32(algorithm.load_address, &mut read).map_err(failed)?;
        if read != algorithm.instructions {
            let what = "prepared: RAM does not hold the flash algorithm".to_owned();
            return Err(translate::flash(what, FlashError::FlashAlgorithmNotLoaded));
        }
        let thumb = core.instruction_set().map_err(failed)? == InstructionSet::Thumb2;
        let direct = is_cortex_m(kind_of(core.core_type()));
        pulse.beat();
        Ok(Self { core, algorithm, pulse, direct, thumb, programming: None })
    }

    /// Prepares the algorithm for a purpose.
    pub(crate) fn init(&mut self, purpose: Purpose) -> Result<(), ProbeError> {
        let what = || "prepared".to_owned();
        // The registers that every call relies on.
        let registers = self.core.registers();
        let base = registers.core_register(9).id();
        let stack = self.core.stack_pointer().id();
        for (register, value) in
            [(base, self.algorithm.static_base), (stack, self.algorithm.stack_top)]
        {
            self.core
                .write_core_reg(register, value)
                .map_err(|error| translate::flash_core(what(), error))?;
        }
        let Some(entry) = self.algorithm.pc_init else { return Ok(()) };
        let flash = self.algorithm.flash_properties.address_range.start;
        self.call(entry, &[flash, 0, purpose as u64])
            .and_then(|()| self.result(SMALL))
            .and_then(|code| succeeded("init", code))
            .map_err(|error| translate::flash(what(), error))
    }

    /// Ends what the algorithm was prepared for.
    pub(crate) fn uninit(&mut self, purpose: Purpose) -> Result<(), ProbeError> {
        if self.direct {
            // What halted the core was us; who looks next shall not take it for news.
            let _ = self.core.write_word_32(DFSR.0, DFSR.1);
        }
        let Some(entry) = self.algorithm.pc_uninit else { return Ok(()) };
        self.call(entry, &[purpose as u64])
            .and_then(|()| self.result(SMALL))
            .and_then(|code| succeeded("uninit", code))
            .map_err(|error| translate::flash("finished".to_owned(), error))
    }

    /// Erases a sector.
    pub(crate) fn erase_sector(&mut self, address: u64) -> Result<(), ProbeError> {
        let within = self.algorithm.flash_properties.erase_sector_timeout;
        self.call(self.algorithm.pc_erase_sector, &[address])
            .and_then(|()| self.result(Duration::from_millis(within.into())))
            .and_then(|code| succeeded("erase_sector", code))
            .map_err(|error| translate::flash(format!("erased at {address:#x}"), error))
    }

    /// Tells whether the algorithm can erase the whole chip at once.
    pub(crate) fn can_erase_all(&self) -> bool {
        self.algorithm.pc_erase_all.is_some()
    }

    /// Erases the whole chip.
    pub(crate) fn erase_all(&mut self) -> Result<(), ProbeError> {
        /// As in probe-rs; the largest chips take half of it.
        const ALL: Duration = Duration::from_secs(40);
        let Some(entry) = self.algorithm.pc_erase_all else { return Ok(()) };
        self.call(entry, &[])
            .and_then(|()| self.result(ALL))
            .and_then(|code| succeeded("chip_erase", code))
            .map_err(|error| translate::flash("erased".to_owned(), error))
    }

    /// Starts to program a page; the one before is waited for. While the core programs from
    /// one buffer the next page is carried to the other, where there are two.
    pub(crate) fn program_page(&mut self, address: u64, bytes: &[u8]) -> Result<(), ProbeError> {
        let what = || format!("programmed at {address:#x}");
        let page = u64::from(self.algorithm.flash_properties.page_size).max(1);
        let buffers = &self.algorithm.page_buffers;
        let nth = (address / page) as usize % buffers.len().max(1);
        let Some(buffer) = buffers.get(nth).copied() else {
            return Err(translate::flash(what(), FlashError::FlashAlgorithmNotLoaded));
        };
        // Two pages apart share a buffer.
        let free = buffers.len() > 1 && self.programming == address.checked_sub(page);
        if !free {
            self.finish_page()?;
        }
        self.core.write(buffer, bytes).map_err(|error| translate::flash_core(what(), error))?;
        self.finish_page()?;
        self.call(self.algorithm.pc_program_page, &[address, bytes.len() as u64, buffer])
            .map_err(|error| translate::flash(what(), error))?;
        self.programming = Some(address);
        Ok(())
    }

    /// Waits until the page that is being programmed is done.
    pub(crate) fn finish_page(&mut self) -> Result<(), ProbeError> {
        let Some(address) = self.programming.take() else { return Ok(()) };
        let within = self.algorithm.flash_properties.program_page_timeout;
        self.result(Duration::from_millis(within.into()))
            .and_then(|code| succeeded("program_page", code))
            .map_err(|error| translate::flash(format!("programmed at {address:#x}"), error))
    }

    /// Reads flash that is not in the address space, by the algorithm.
    pub(crate) fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), ProbeError> {
        let failed = |error| translate::flash(format!("read at {address:#x}"), error);
        let (Some(entry), Some(buffer)) =
            (self.algorithm.pc_read, self.algorithm.page_buffers.first().copied())
        else {
            return self
                .core
                .read(address, bytes)
                .map_err(|error| translate::access("read", address, error));
        };
        let page = self.algorithm.flash_properties.page_size.max(1) as usize;
        let mut here = address;
        for part in bytes.chunks_mut(page) {
            self.call(entry, &[here, part.len() as u64, buffer])
                .and_then(|()| self.result(READ))
                .and_then(|code| succeeded("read_flash", code))
                .map_err(failed)?;
            self.core.read(buffer, part).map_err(|error| failed(FlashError::Core(error)))?;
            here += part.len() as u64;
        }
        Ok(())
    }

    /// Lets the core run a function of the algorithm.
    fn call(&mut self, entry: u64, arguments: &[u64]) -> Result<(), FlashError> {
        let registers = self.core.registers();
        // In Thumb state a return address is odd.
        let back = self.algorithm.load_address + u64::from(self.thumb);
        let own =
            [(self.core.program_counter().id(), entry), (self.core.return_address().id(), back)];
        let arguments = arguments.iter().enumerate();
        let arguments =
            arguments.map(|(nth, value)| (registers.argument_register(nth).id(), *value));
        let all: Vec<(RegisterId, u64)> = arguments.chain(own).collect();
        for (register, value) in all {
            self.core.write_core_reg(register, value).map_err(FlashError::Core)?;
        }
        if self.direct {
            self.core.write_word_32(DHCSR, GO).map_err(FlashError::Run)?;
            self.core.flush().map_err(FlashError::Run)
        } else {
            self.core.run().map_err(FlashError::Run)
        }
    }

    /// Waits until the function has returned, and returns its result.
    fn result(&mut self, within: Duration) -> Result<u32, FlashError> {
        let started = Instant::now();
        while !self.returned()? {
            // It answers: the probe is alive, whatever the chip does.
            self.pulse.beat();
            let elapsed = started.elapsed();
            if elapsed >= within {
                self.core.halt(RESET).map_err(FlashError::Core)?;
                return Err(FlashError::Core(Error::Timeout));
            }
            if elapsed > EAGER {
                std::thread::sleep(PAUSE);
            }
        }
        let register = self.core.registers().result_register(0).id();
        let value: u64 = self.core.read_core_reg(register).map_err(FlashError::Core)?;
        Ok(value as u32)
    }

    fn returned(&mut self) -> Result<bool, FlashError> {
        let locked_up = || FlashError::UnexpectedCoreStatus { status: CoreStatus::LockedUp };
        if self.direct {
            let status =
                self.core.read_word_32(DHCSR).map_err(FlashError::UnableToReadCoreStatus)?;
            return if status & S_LOCKUP != 0 {
                Err(locked_up())
            } else {
                Ok(status & S_HALT != 0)
            };
        }
        match self.core.status().map_err(FlashError::UnableToReadCoreStatus)? {
            CoreStatus::Halted(_) => Ok(true),
            CoreStatus::LockedUp => Err(locked_up()),
            _ => Ok(false),
        }
    }
}

fn succeeded(name: &str, error_code: u32) -> Result<(), FlashError> {
    match error_code {
        0 => Ok(()),
        _ => Err(FlashError::RoutineCallFailed { name: name.to_owned(), error_code }),
    }
}
