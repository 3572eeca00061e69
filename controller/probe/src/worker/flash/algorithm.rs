//! A chip's own flash algorithm, running in its RAM.
//!
//! # Design
//! probe-rs has a loader of its own. It cannot stop between two sectors, and it halts and
//! resumes the core for each of the two calls a page takes. The algorithm, its place in RAM
//! and its entry points are probe-rs' (`FlashAlgorithm`); what is here is how the entry points
//! are called. There are three ways, and the first that is possible is taken:
//!
//! - *By queue*, on Cortex-M: the core works off [lists of calls](super::call_queue), and never
//!   halts between them.
//! - *By halting*, on Cortex-M where RAM has no room for that: registers, run, and a wait for
//!   the breakpoint that the return address leads to, by the debug registers directly.
//!   probe-rs' `run` steps first in case the core stands on a breakpoint, and its `status`
//!   reads memory to recognise semihosting, which cost more than the call.
//! - *By probe-rs' means* on every other core.
//!
//! Calls come in lots, and a lot takes little time, whatever the chip: how many calls it holds
//! follows from how long the last ones took. So a request to stop is heard soon. While the
//! core works on one lot the next is carried to the other buffer, where there are two.

use std::ops::Range;
use std::time::{Duration, Instant};

use probe_rs::flashing::{FlashAlgorithm, FlashError};
use probe_rs::{Core, CoreStatus, Error, InstructionSet, MemoryInterface, RegisterId, Session};

use super::super::attach::RESET;
use super::super::bench::Pulse;
use super::super::core::{is_cortex_m, kind_of};
use super::super::translate;
use super::call_queue::{self, Call, CallQueue, Progress};
use crate::ProbeError;

/// Debug halting control and status register: ARMv6-M manual C1.6.3.
pub(super) const DHCSR: u64 = 0xE000_EDF0;
/// Its key, and `C_DEBUGEN`: lets the core run.
pub(super) const GO: u32 = 0xA05F_0001;
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

/// How long a lot should take.
const LOT: Duration = Duration::from_millis(50);

/// How functions of the algorithm are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By a queue in RAM.
    Queue(CallQueue),
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

/// An algorithm, the core that runs it, and RAM that neither uses.
#[derive(Clone)]
pub(crate) struct Runner<'a> {
    pub(crate) core: usize,
    pub(crate) algorithm: &'a FlashAlgorithm,
    pub(crate) room: Range<u64>,
}

/// A core with a flash algorithm in its RAM.
pub(crate) struct Loaded<'a> {
    core: Core<'a>,
    algorithm: &'a FlashAlgorithm,
    pulse: &'a Pulse,
    way: Way,
    thumb: bool,
    /// How long one call of a lot has taken at best.
    pace: Option<Duration>,
    /// The tray, or page buffer, that is carried to next.
    tray: usize,
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
        let page = algorithm.flash_properties.page_size;
        let way = match CallQueue::within(&room, page) {
            _ if !is_cortex_m(kind_of(core.core_type())) => Way::Generic,
            Some(queue) => Way::Queue(queue),
            None => Way::Halting,
        };
        // The registers that every call relies on.
        let registers = core.registers();
        let (base, stack) = (registers.core_register(9).id(), core.stack_pointer().id());
        core.write_core_reg(base, algorithm.static_base).map_err(failed)?;
        core.write_core_reg(stack, algorithm.stack_top).map_err(failed)?;
        if let Way::Queue(queue) = way {
            queue.begin(&mut core).map_err(failed)?;
        }
        pulse.beat();
        Ok(Self { core, algorithm, pulse, way, thumb, pace: None, tray: 0 })
    }

    /// Prepares the algorithm for a purpose.
    pub(crate) fn init(&mut self, purpose: Purpose) -> Result<(), ProbeError> {
        let Some(entry) = self.algorithm.pc_init else { return Ok(()) };
        let flash = self.algorithm.flash_properties.address_range.start;
        let call = Call { entry, arguments: [flash, 0, purpose as u64], page: None };
        self.pace = None;
        self.single(call, "init", SMALL, || "prepared".to_owned())
    }

    /// Ends what the algorithm was prepared for.
    pub(crate) fn uninit(&mut self, purpose: Purpose) -> Result<(), ProbeError> {
        let Some(entry) = self.algorithm.pc_uninit else { return Ok(()) };
        let call = Call { entry, arguments: [purpose as u64, 0, 0], page: None };
        self.single(call, "uninit", SMALL, || "finished".to_owned())
    }

    /// Erases sectors. Before each lot `go_on` is told how many bytes of flash were erased
    /// since it was asked last, and says whether to go on. Returns whether all were erased.
    pub(crate) fn erase_sectors(
        &mut self,
        sectors: &[Range<u64>],
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, ProbeError> {
        let within = self.algorithm.flash_properties.erase_sector_timeout;
        let call = |sector: &Range<u64>| Call {
            entry: self.algorithm.pc_erase_sector,
            arguments: [sector.start, 0, 0],
            page: None,
        };
        let calls: Vec<Call<'_>> = sectors.iter().map(call).collect();
        let each = Each { name: "erase_sector", done: "erased", within };
        let mut sizes = sectors.iter().map(|sector| sector.end - sector.start);
        self.all(&calls, &each, &mut |count| go_on(sizes.by_ref().take(count).sum()))
    }

    /// Programs pages; `done` is told how many bytes were programmed since the last time.
    pub(crate) fn program_pages(
        &mut self,
        pages: &[(u64, &[u8])],
        done: &mut dyn FnMut(u64),
    ) -> Result<(), ProbeError> {
        let within = self.algorithm.flash_properties.program_page_timeout;
        let entry = self.algorithm.pc_program_page;
        let mut calls = Vec::with_capacity(pages.len());
        for (address, bytes) in pages {
            let arguments = [*address, bytes.len() as u64, 0];
            calls.push(Call { entry, arguments, page: Some(bytes) });
        }
        let each = Each { name: "program_page", done: "programmed", within };
        let mut sizes = pages.iter().map(|(_, bytes)| bytes.len() as u64);
        let told = &mut |count| {
            done(sizes.by_ref().take(count).sum());
            true
        };
        self.all(&calls, &each, told).map(drop)
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
        let call = Call { entry, ..Call::default() };
        self.single(call, "chip_erase", ALL, || "erased".to_owned())
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
            let arguments = [here, part.len() as u64, buffer];
            let call = Call { entry, arguments, page: None };
            self.single(call, "read_flash", READ, || format!("read at {address:#x}"))?;
            self.core.read(buffer, part).map_err(|error| failed(FlashError::Core(error)))?;
            here += part.len() as u64;
        }
        Ok(())
    }

    /// Makes one call and waits for it.
    fn single(
        &mut self,
        call: Call<'_>,
        name: &str,
        within: Duration,
        what: impl Fn() -> String,
    ) -> Result<(), ProbeError> {
        let failed = |error| translate::flash(what(), error);
        let started = self.carry(&[call]).and_then(|()| self.start(&[call])).map_err(failed)?;
        match self.wait(started, 1, within).map_err(failed)? {
            None => Ok(()),
            Some((_, error_code)) => {
                Err(failed(FlashError::RoutineCallFailed { name: name.to_owned(), error_code }))
            }
        }
    }

    /// Makes calls lot by lot. `told` learns how many calls are done since the last time, and
    /// says whether to go on; returns whether all were made.
    fn all(
        &mut self,
        calls: &[Call<'_>],
        each: &Each,
        told: &mut dyn FnMut(usize) -> bool,
    ) -> Result<bool, ProbeError> {
        let mut rest = calls;
        let mut under_way: Option<(&[Call<'_>], Started)> = None;
        let mut go_on = told(0);
        while go_on && !rest.is_empty() {
            let (lot, behind) = rest.split_at(self.lot(rest));
            let failed = |error| translate::flash(each.what(lot, 0), error);
            // With one buffer the lot before has to be done first.
            if self.buffers() < 2 {
                go_on = self.finish(under_way.take(), each, told)?;
            }
            self.carry(lot).map_err(failed)?;
            go_on &= self.finish(under_way.take(), each, told)?;
            if go_on {
                under_way = Some((lot, self.start(lot).map_err(failed)?));
                rest = behind;
            }
        }
        self.finish(under_way, each, told)?;
        Ok(rest.is_empty())
    }

    /// Waits for a lot, if there is one under way, and tells that it is done.
    fn finish(
        &mut self,
        under_way: Option<(&[Call<'_>], Started)>,
        each: &Each,
        told: &mut dyn FnMut(usize) -> bool,
    ) -> Result<bool, ProbeError> {
        let Some((lot, started)) = under_way else { return Ok(true) };
        let within = Duration::from_millis(each.within.into());
        let count = u32::try_from(lot.len()).unwrap_or(u32::MAX);
        match self.wait(started, count, within * count) {
            Ok(None) => Ok(told(lot.len())),
            Ok(Some((nth, error_code))) => {
                let error =
                    FlashError::RoutineCallFailed { name: each.name.to_owned(), error_code };
                Err(translate::flash(each.what(lot, nth), error))
            }
            Err(error) => Err(translate::flash(each.what(lot, 0), error)),
        }
    }

    /// Returns how many of some calls make the next lot.
    fn lot(&self, calls: &[Call<'_>]) -> usize {
        let Way::Queue(queue) = self.way else { return 1 };
        let pages = calls.first().is_some_and(|call| call.page.is_some());
        let most = if pages { queue.pages } else { call_queue::MOST };
        // The first is alone: it tells how long they take.
        let fit = self.pace.map_or(1, |pace| LOT.as_micros() / pace.as_micros().max(1));
        usize::try_from(fit).unwrap_or(most).clamp(1, most).min(calls.len())
    }

    fn buffers(&self) -> usize {
        match self.way {
            Way::Queue(_) => 2,
            Way::Halting | Way::Generic => self.algorithm.page_buffers.len(),
        }
    }

    /// Brings a lot to where the core takes it from, while it may be busy with another.
    fn carry(&mut self, calls: &[Call<'_>]) -> Result<(), FlashError> {
        self.tray = self.tray.wrapping_add(1);
        if let Way::Queue(queue) = self.way {
            return queue.carry(&mut self.core, self.tray, calls).map_err(FlashError::Core);
        }
        let Some(page) = calls.iter().find_map(|call| call.page) else { return Ok(()) };
        let buffer = self.buffer().ok_or(FlashError::FlashAlgorithmNotLoaded)?;
        self.core.write(buffer, page).map_err(FlashError::Core)
    }

    /// Returns the buffer of the page that was carried last.
    fn buffer(&self) -> Option<u64> {
        let buffers = &self.algorithm.page_buffers;
        buffers.get(self.tray.checked_rem(buffers.len())?).copied()
    }

    /// Lets the core do what was carried last.
    fn start(&mut self, calls: &[Call<'_>]) -> Result<Started, FlashError> {
        let started = Started { at: Instant::now(), tray: self.tray };
        if let Way::Queue(queue) = self.way {
            queue.start(&mut self.core, self.tray).map_err(FlashError::Run)?;
            return Ok(started);
        }
        for call in calls {
            let mut arguments = call.arguments;
            if let (Some(_), Some(buffer)) = (call.page, self.buffer()) {
                arguments[2] = buffer;
            }
            self.run(call.entry, arguments)?;
        }
        Ok(started)
    }

    /// Lets a halted core run one function.
    fn run(&mut self, entry: u64, arguments: [u64; 3]) -> Result<(), FlashError> {
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

    /// Waits until all calls of a lot have returned. Returns the one that failed and its
    /// result, if one did.
    fn wait(
        &mut self,
        started: Started,
        calls: u32,
        within: Duration,
    ) -> Result<Option<(usize, u32)>, FlashError> {
        let within = within.max(SMALL);

        // Asking earlier or more often would only disturb, on an emulated core above all. Half
        // of the time: a lot that seemed to take long must not make the next ones do so.
        let expected = self.pace.map_or(Duration::ZERO, |pace| pace * calls).min(LOT);
        std::thread::sleep((expected / 2).saturating_sub(started.at.elapsed()));
        let pause = (expected / 16).max(PAUSE);
        let mut asked: u32 = 0;
        loop {
            match self.look(started.tray)? {
                Progress::Busy => {}
                Progress::Done => {
                    let took = started.at.elapsed() / calls.max(1);
                    self.pace = Some(self.pace.map_or(took, |pace| pace.min(took)));
                    return Ok(None);
                }
                Progress::Failed { nth, code } => return Ok(Some((nth, code))),
            }
            // It answers: the probe is alive, whatever the chip does.
            self.pulse.beat();
            if started.at.elapsed() >= within {
                self.core.halt(RESET).map_err(FlashError::Core)?;
                return Err(FlashError::Core(Error::Timeout));
            }
            asked = asked.wrapping_add(1);
            if asked.is_multiple_of(ALIVE) {
                self.check_alive()?;
            }
            if asked > EAGER {
                std::thread::sleep(pause);
            }
        }
    }

    /// Looks how the core is getting on.
    fn look(&mut self, tray: usize) -> Result<Progress, FlashError> {
        let halted = match self.way {
            Way::Queue(queue) => {
                return queue.look(&mut self.core, tray).map_err(FlashError::Core);
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
            return Ok(Progress::Busy);
        }
        let register = self.core.registers().result_register(0).id();
        let value: u64 = self.core.read_core_reg(register).map_err(FlashError::Core)?;
        Ok(match value as u32 {
            0 => Progress::Done,
            code => Progress::Failed { nth: 0, code },
        })
    }

    /// Fails if the core has locked up, or has halted where it should not.
    fn check_alive(&mut self) -> Result<(), FlashError> {
        let status = match self.way {
            Way::Generic => return Ok(()),
            Way::Halting | Way::Queue(_) => self.debug_status()?,
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
        if let Way::Queue(_) = self.way {
            // A probe that cannot even do this says so at the next request.
            let _ = self.core.halt(RESET);
        } else if self.way == Way::Halting {
            // What halted the core was us; who looks next shall not take it for news.
            let _ = self.core.write_word_32(DFSR.0, DFSR.1);
        }
    }
}

/// What the calls of a list have in common.
struct Each {
    /// Name of the function, as in CMSIS.
    name: &'static str,
    /// What a call does to flash.
    done: &'static str,
    /// How long one may take, in ms.
    within: u32,
}

impl Each {
    /// Says what a call of a lot was to do.
    fn what(&self, lot: &[Call<'_>], nth: usize) -> String {
        let address = lot.get(nth).map_or(0, |call| call.arguments[0]);
        format!("{} at {address:#x}", self.done)
    }
}

/// A lot that the core works on.
#[derive(Debug, Clone, Copy)]
struct Started {
    at: Instant,
    tray: usize,
}
