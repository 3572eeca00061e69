//! A chip's own flash algorithm, running in its RAM.
//!
//! # Design
//! probe-rs has a loader of its own. It cannot stop between two sectors, and it halts and
//! resumes the core for each of the two calls a page takes. The algorithm, its place in RAM
//! and its entry points are probe-rs' (`FlashAlgorithm`); what is here is how the entry points
//! are called. There are three ways, and the first that is possible is taken:
//!
//! - *By letter box*, on Cortex-M: the core runs a [dispatcher](DISPATCHER) of seven words
//!   beside the algorithm, and never halts between calls. A call is three words of arguments
//!   and one of address, written while it runs; it is over when the address reads as zero. On
//!   a wire where each word costs the same this is a fifth of the traffic of a halting call.
//! - *By halting*, on Cortex-M where RAM has no room for that: registers, run, and a wait for
//!   the breakpoint that the return address leads to, by the debug registers directly.
//!   probe-rs' `run` steps first in case the core stands on a breakpoint, and its `status`
//!   reads memory to recognise semihosting, which cost more than the call.
//! - *By probe-rs' means* on every other core.

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

/// How long the small entry points may take, and what every function is granted at least. The
/// limits of the descriptions are those of silicon; an emulated core on a busy host is slower,
/// and a chip that is broken is found out a little later.
const SMALL: Duration = Duration::from_secs(10);
/// How long reading a page of external flash may take; as in probe-rs.
const READ: Duration = Duration::from_secs(30);

/// How often the core is asked without a pause whether it is done: a fast chip is, and on a
/// slow wire asking is pause enough.
const EAGER: u32 = 3;
/// Then it is left alone for so long; an emulated core gets the host's time.
const PAUSE: Duration = Duration::from_micros(100);
/// After how many questions, and again, it is also asked whether it is still alive.
const ALIVE: u32 = 16;

/// The dispatcher, in Thumb code that every Cortex-M has. It may stand anywhere; the word
/// behind it is the address of the letter box: function, three arguments, the first of which
/// becomes the result.
///
/// ```text
/// 00  ldr  r4, [pc, #24]    ; the letter box
/// 02  ldr  r5, [r4]         ; a function?
/// 04  cmp  r5, #0
/// 06  beq  02
/// 08  ldr  r0, [r4, #4]
/// 0a  ldr  r1, [r4, #8]
/// 0c  ldr  r2, [r4, #12]
/// 0e  blx  r5
/// 10  ldr  r4, [pc, #8]
/// 12  str  r0, [r4, #4]     ; the result, and only then
/// 14  movs r5, #0
/// 16  str  r5, [r4]         ; that it is there
/// 18  b    02
/// 1a  nop
/// ```
pub(crate) const DISPATCHER: [u32; 7] =
    [0x6825_4c06, 0xd0fc_2d00, 0x68a1_6860, 0x47a8_68e2, 0x6060_4c02, 0x6025_2500, 0xbf00_e7f3];

/// Where the letter box is behind the start of the dispatcher, and where both end.
const LETTER_BOX: u64 = 0x20;
/// How much RAM the dispatcher takes, its letter box included.
pub(crate) const ROOM: u64 = LETTER_BOX + 0x10;

/// How functions of the algorithm are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By the letter box at this address.
    LetterBox(u64),
    /// By halting, with the debug registers of Cortex-M.
    Halting,
    /// By probe-rs' means.
    Generic,
}

/// What the algorithm is prepared for: the numbers are those of CMSIS' `Init`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Erase = 1,
    Program = 2,
    Verify = 3,
}

/// An algorithm, the core that runs it, and RAM for the dispatcher, if there is any.
#[derive(Clone, Copy)]
pub(crate) struct Runner<'a> {
    pub(crate) core: usize,
    pub(crate) algorithm: &'a FlashAlgorithm,
    pub(crate) room: Option<u64>,
}

/// A core with a flash algorithm in its RAM.
pub(crate) struct Loaded<'a> {
    core: Core<'a>,
    algorithm: &'a FlashAlgorithm,
    pulse: &'a Pulse,
    way: Way,
    thumb: bool,
    /// The page that is being programmed.
    programming: Option<u64>,
}

impl<'a> Loaded<'a> {
    /// Resets and halts a core and loads an algorithm into its RAM.
    pub(crate) fn load(
        session: &'a mut Session,
        runner: Runner<'a>,
        pulse: &'a Pulse,
    ) -> Result<Self, ProbeError> {
        let Runner { core, algorithm, room } = runner;
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
        let way = match room {
            _ if !is_cortex_m(kind_of(core.core_type())) => Way::Generic,
            Some(start) => Way::LetterBox(start + LETTER_BOX),
            None => Way::Halting,
        };
        // The registers that every call relies on.
        let registers = core.registers();
        let (base, stack) = (registers.core_register(9).id(), core.stack_pointer().id());
        core.write_core_reg(base, algorithm.static_base).map_err(failed)?;
        core.write_core_reg(stack, algorithm.stack_top).map_err(failed)?;
        if let Way::LetterBox(letter_box) = way {
            dispatch(&mut core, letter_box).map_err(failed)?;
        }
        pulse.beat();
        Ok(Self { core, algorithm, pulse, way, thumb, programming: None })
    }

    /// Prepares the algorithm for a purpose.
    pub(crate) fn init(&mut self, purpose: Purpose) -> Result<(), ProbeError> {
        let Some(entry) = self.algorithm.pc_init else { return Ok(()) };
        let flash = self.algorithm.flash_properties.address_range.start;
        self.call(entry, &[flash, 0, purpose as u64])
            .and_then(|()| self.result(SMALL))
            .and_then(|code| succeeded("init", code))
            .map_err(|error| translate::flash("prepared".to_owned(), error))
    }

    /// Ends what the algorithm was prepared for.
    pub(crate) fn uninit(&mut self, purpose: Purpose) -> Result<(), ProbeError> {
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
        if let Way::LetterBox(letter_box) = self.way {
            let mut words = [0; 3];
            for (word, argument) in words.iter_mut().zip(arguments) {
                *word = *argument as u32;
            }
            // The address last, in an access of its own: the core looks at it all the time.
            self.core.write_32(letter_box + 4, &words).map_err(FlashError::Core)?;
            self.core.write_word_32(letter_box, entry as u32 | 1).map_err(FlashError::Run)?;
            return self.core.flush().map_err(FlashError::Run);
        }
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
        if self.way == Way::Halting {
            self.core.write_word_32(DHCSR, GO).map_err(FlashError::Run)?;
            self.core.flush().map_err(FlashError::Run)
        } else {
            self.core.run().map_err(FlashError::Run)
        }
    }

    /// Waits until the function has returned, and returns its result.
    fn result(&mut self, within: Duration) -> Result<u32, FlashError> {
        let within = within.max(SMALL);
        let started = Instant::now();
        let mut asked: u32 = 0;
        loop {
            if let Some(result) = self.returned()? {
                return Ok(result);
            }
            // It answers: the probe is alive, whatever the chip does.
            self.pulse.beat();
            if started.elapsed() >= within {
                self.core.halt(RESET).map_err(FlashError::Core)?;
                return Err(FlashError::Core(Error::Timeout));
            }
            asked = asked.wrapping_add(1);
            if asked.is_multiple_of(ALIVE) {
                self.check_alive()?;
            }
            if asked > EAGER {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Returns the function's result, if it has returned.
    fn returned(&mut self) -> Result<Option<u32>, FlashError> {
        let halted = match self.way {
            Way::LetterBox(letter_box) => {
                let mut words = [0; 2];
                self.core.read_32(letter_box, &mut words).map_err(FlashError::Core)?;
                let [function, result] = words;
                return Ok((function == 0).then_some(result));
            }
            Way::Halting => self.debug_status()? & S_HALT != 0,
            Way::Generic => {
                match self.core.status().map_err(FlashError::UnableToReadCoreStatus)? {
                    CoreStatus::Halted(_) => true,
                    status @ CoreStatus::LockedUp => {
                        return Err(FlashError::UnexpectedCoreStatus { status });
                    }
                    _ => false,
                }
            }
        };
        if !halted {
            return Ok(None);
        }
        let register = self.core.registers().result_register(0).id();
        let value: u64 = self.core.read_core_reg(register).map_err(FlashError::Core)?;
        Ok(Some(value as u32))
    }

    /// Fails if the core has locked up, or has halted where it should not.
    fn check_alive(&mut self) -> Result<(), FlashError> {
        let status = match self.way {
            Way::Generic => return Ok(()),
            Way::Halting | Way::LetterBox(_) => self.debug_status()?,
        };
        if status & S_LOCKUP != 0 {
            return Err(FlashError::UnexpectedCoreStatus { status: CoreStatus::LockedUp });
        }
        if status & S_HALT != 0 && self.way != Way::Halting {
            let status = CoreStatus::Halted(probe_rs::HaltReason::Unknown);
            return Err(FlashError::UnexpectedCoreStatus { status });
        }
        Ok(())
    }

    fn debug_status(&mut self) -> Result<u32, FlashError> {
        self.core.read_word_32(DHCSR).map_err(FlashError::UnableToReadCoreStatus)
    }
}

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        if let Way::LetterBox(_) = self.way {
            // A probe that cannot even do this says so at the next request.
            let _ = self.core.halt(RESET);
        } else if self.way == Way::Halting {
            // What halted the core was us; who looks next shall not take it for news.
            let _ = self.core.write_word_32(DFSR.0, DFSR.1);
        }
    }
}

/// Writes the dispatcher in front of its letter box, and lets a halted core run it.
fn dispatch(core: &mut Core<'_>, letter_box: u64) -> Result<(), Error> {
    let start = letter_box - LETTER_BOX;
    let mut words = DISPATCHER.to_vec();
    words.push(letter_box as u32);
    words.extend([0; 4]);
    core.write_32(start, &words)?;
    core.write_core_reg(core.program_counter().id(), start)?;
    core.write_word_32(DHCSR, GO)?;
    core.flush()
}

fn succeeded(name: &str, error_code: u32) -> Result<(), FlashError> {
    match error_code {
        0 => Ok(()),
        _ => Err(FlashError::RoutineCallFailed { name: name.to_owned(), error_code }),
    }
}
