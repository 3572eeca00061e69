//! The registers of an emulated core at this moment, read while it runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jig_drivers::qemu::{Exceptions, Machine, TrapTaken};
use jig_model::Cause;
use jig_model::post_mortem::{FaultProof, FaultSighting, PostMortem};
use jig_model::profile::MemoryRegion;
use jig_model::protocol::{BoxFuture, DebugPort, DriverError, PostMortemRequest};
use tokio::task::{JoinHandle, spawn_blocking};

use super::halted_core::{is_lost, physical_pc};
use super::telling::told;
use super::trap_watch::is_emulated;
use crate::code_map::CodeMap;
use crate::debug_info::{exception_name, is_fault};
use crate::fatal_halt::{FatalRanges, STACK_WORDS};
use crate::image_ranges::ImageRanges;
use crate::post_mortem::exception_of;
use crate::riscv::{Trap, interrupt, masked_interrupt, parse_registers};
use crate::{CoreKind, CoreSnapshot, Why, parse_register_dump};

/// What an image says of addresses, as far as a glance at registers needs it.
#[derive(Default)]
pub(super) struct ImageFacts {
    fatal: FatalRanges,
    ranges: ImageRanges,
}

impl ImageFacts {
    /// Reads an image; one that cannot be read says nothing.
    pub(super) fn load(image: &Path) -> Self {
        let Ok(elf) = fs::read(image) else { return Self::default() };
        let Ok(file) = object::File::parse(elf.as_slice()) else { return Self::default() };
        Self { fatal: FatalRanges::of(&file), ranges: ImageRanges::of(&file, elf.len()) }
    }
}

/// An image that is read ahead of the look that wants it.
pub(super) struct ImageAhead {
    path: PathBuf,
    /// Its length, and when it was written: it may be another one by now.
    state: Option<(u64, SystemTime)>,
    facts: JoinHandle<ImageFacts>,
}

impl ImageAhead {
    /// Begins to read an image.
    pub(super) fn begin(path: &Path) -> Self {
        let image = path.to_owned();
        let facts = spawn_blocking(move || ImageFacts::load(&image));
        Self { path: path.to_owned(), state: Self::state_of(path), facts }
    }

    fn state_of(path: &Path) -> Option<(u64, SystemTime)> {
        let file = fs::metadata(path).ok()?;
        Some((file.len(), file.modified().ok()?))
    }

    /// Takes what was read ahead, or reads the image where it was not.
    pub(super) async fn take(
        ahead: &mut Option<Self>,
        path: &Path,
    ) -> Result<ImageFacts, DriverError> {
        let state = Self::state_of(path);
        let known = ahead.take().filter(|ahead| ahead.path == path && ahead.state == state);
        let Self { facts, .. } = known.unwrap_or_else(|| Self::begin(path));
        facts.await.map_err(|error| {
            DriverError::new(Cause::InternalError, "read the image").with_source(error)
        })
    }
}

/// What an emulator tells of its core at one moment.
struct Glance {
    registers: Option<String>,
    /// The first words at the program counter, and their address.
    code: Option<(u32, Vec<u32>)>,
}

/// How many words the instruction at a program counter is in, at most.
const CODE_WORDS: usize = 2;

impl Glance {
    /// Takes the registers, and then the code.
    async fn take(machine: Machine) -> Result<Self, DriverError> {
        let registers = machine.registers().await?;
        let core = registers.as_deref().and_then(parse);
        let code = match core.as_ref().and_then(physical_pc) {
            Some(pc) => Some((pc & !3, machine.words(pc & !3, CODE_WORDS).await?)),
            None => None,
        };
        Ok(Self { registers, code })
    }
}

fn parse(registers: &str) -> Option<CoreSnapshot> {
    parse_register_dump(registers).or_else(|| parse_registers(registers))
}

/// Asks the emulator for registers: the debug port of a machine of which nothing else is known.
///
/// Needs no debug channel and does not stop the machine; a question takes half a millisecond.
/// Tells nothing of a core whose registers do not show the exception that it executes.
pub(super) struct CurrentRegisters {
    machine: Machine,
    /// What was read last, until it is taken.
    last: Option<String>,
    /// The code at its program counter, where that was read ahead.
    code: Option<(u32, Vec<u32>)>,
    /// What is being read of a halted machine.
    ahead: Option<JoinHandle<Result<Glance, DriverError>>>,
}

impl CurrentRegisters {
    pub(super) fn new(machine: Machine) -> Self {
        Self { machine, last: None, code: None, ahead: None }
    }

    /// Returns what the emulator prints of its core; nothing if the machine has ended.
    pub(super) async fn read(&mut self) -> Result<Option<&str>, DriverError> {
        self.code = None;
        self.last = match self.ahead.take() {
            Some(ahead) => {
                let read = ahead.await.map_err(|error| {
                    DriverError::new(Cause::InternalError, "read registers").with_source(error)
                });
                let Glance { registers, code } = read??;
                self.code = code;
                registers
            }
            None => self.machine.registers().await?,
        };
        Ok(self.last.as_deref())
    }

    /// Tells whether the memory at the program counter of a function holds other code than the image.
    async fn is_in_overwritten(&mut self, code: &CodeMap, pc: u32) -> Result<bool, DriverError> {
        if !code.has_function(pc) {
            return Ok(false);
        }
        let first = pc & !3;
        let words = match self.code.take().filter(|(address, _)| *address == first) {
            Some((_, words)) => words,
            None => self.machine.words(first, CODE_WORDS).await?,
        };
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        let now = bytes.get((pc - first) as usize..).unwrap_or_default();
        Ok(code.was_overwritten(pc, now))
    }

    /// Tells whether the core may stand in a fatal function, or in what one has called, in a trap handler
    /// that an interrupt has entered, or in a loop that waits, executes no code of its image, or has its stack
    /// in a variable. Takes what was read last.
    pub(super) async fn may_have_halted(
        &mut self,
        image: &ImageFacts,
        memory: &[MemoryRegion],
    ) -> Result<bool, DriverError> {
        if self.last.is_none() {
            self.read().await?;
        }
        let Some(text) = self.last.take() else { return Ok(false) };
        let ImageFacts { fatal, ranges: ImageRanges { code, masked_loops, exits, variables } } =
            image;
        let Some(core) = parse(&text) else { return Ok(false) };
        if is_lost(&core, memory, code) || interrupt(&core).is_some() {
            return Ok(true);
        }
        if let Some(pc) = physical_pc(&core)
            && self.is_in_overwritten(code, pc).await?
        {
            return Ok(true);
        }
        let register = |name| core.register(name).and_then(|value| u32::try_from(value).ok());
        // The emulator tells no mask of a Cortex-M without a look.
        let may_mask = core.kind != CoreKind::Riscv32 || masked_interrupt(&core).is_some();
        if may_mask && register("pc").is_some_and(|pc| masked_loops.of_pc(pc).is_some()) {
            return Ok(true);
        }
        if register("sp").is_some_and(|stack| variables.hold_stack(stack)) {
            return Ok(true);
        }
        let in_exit = register("pc").is_some_and(|pc| exits.hold(pc));
        if fatal.is_empty() && !in_exit {
            return Ok(false);
        }
        let matters = |at: u32| fatal.hold(at) || in_exit && exits.code_handed(at, code).is_some();
        let interrupted = exception_of(&core.registers).is_some_and(|number| number != 0);
        let mut returns = ["pc", "lr", "ra"].into_iter().filter_map(register);
        if interrupted || returns.any(matters) {
            return Ok(true);
        }
        let Some(stack) = register("sp") else { return Ok(false) };
        let words = self.machine.words(stack, STACK_WORDS).await?;
        Ok(words.into_iter().any(matters))
    }
}

/// Tells of a core, whose faults are watched, that it may be in one: it executes an exception, above
/// which a fault's handler may be active, or it has `taken` faults in this boot and may do so again.
pub(super) fn suspicion(text: &str, seen: &Exceptions) -> Option<FaultSighting> {
    let Some(snapshot) = parse_register_dump(text) else {
        return sighting(text).or_else(|| reported(seen));
    };
    let taken = seen.faults;
    let number = exception_of(&snapshot.registers)?;
    let name = suspicion_name(number);
    let sighting = FaultSighting { name, proof: FaultProof::Suspected, taken: Some(taken) };
    (number != 0 || taken > 0).then_some(sighting)
}

/// Names why a Cortex-M that executes an exception, 0 for none, may be in a fault.
pub(crate) fn suspicion_name(number: u32) -> String {
    match number {
        0 => "it took a fault, and whether that is over is not known".to_owned(),
        _ => exception_name(number),
    }
}

/// Tells of the fault whose handler a Cortex-M has not left when its emulator ended, or which a RISC-V core
/// took behind the last output: of that core, returns are not reported. Those of a Cortex-M are not, either,
/// and the watch may have seen where its handler has returned to.
pub(crate) fn at_end(seen: &Exceptions) -> Option<FaultSighting> {
    let taken = Some(seen.faults);
    let open = |wanted: fn(u32) -> bool| {
        seen.open.iter().rev().map(|open| open.number).find(|&number| wanted(number))
    };
    if let Some(fault) = open(is_fault) {
        let name = ended_in_handler(fault);
        return Some(FaultSighting { name, proof: FaultProof::InHandler, taken });
    }
    if let Some(failure) = open(is_failure_of_the_board) {
        let name = ended_in_handler(failure);
        return Some(FaultSighting { name, proof: FaultProof::Ended, taken });
    }
    if seen.faults == 0 || seen.printed {
        return None;
    }
    let Some(fault) = &seen.fault else {
        let name = suspicion_name(0);
        return Some(FaultSighting { name, proof: FaultProof::Suspected, taken });
    };
    let &TrapTaken { cause, at, value, .. } = fault;
    // Of an illegal instruction, the value is the instruction.
    if is_emulated(cause, Some(value)) {
        return None;
    }
    let what = Trap { cause, at, value, handler: 0 }.what();
    let name = format!("{what} at {at:#010x}, behind which the target has ended");
    Some(FaultSighting { name, proof: FaultProof::Ended, taken })
}

/// Tells whether an exception is NMI, by which boards report that a clock or a memory has failed.
fn is_failure_of_the_board(number: u32) -> bool {
    number == 2
}

/// Names a fault whose handler has ended the program.
pub(crate) fn ended_in_handler(fault: u32) -> String {
    format!("{}, from whose handler the target has ended", exception_name(fault))
}

/// Calls that follow each other, from which on they may be one that is never answered.
const CALLS: u32 = 3;

/// Tells of the last fault that a RISC-V core has reported, and of a call that it has not got over.
fn reported(seen: &Exceptions) -> Option<FaultSighting> {
    let unanswered = |call: &&TrapTaken| call.in_a_row >= CALLS || call.interrupted.is_empty();
    let taken = seen.fault.as_ref().or_else(|| seen.call.as_ref().filter(unanswered))?;
    let TrapTaken { cause, at, value, .. } = *taken;
    let what = Trap { cause, at, value, handler: 0 }.what();
    let name = format!("{what} at {at:#010x}");
    Some(FaultSighting { name, proof: FaultProof::Suspected, taken: None })
}

/// Tells of the fault in which a core is; of a RISC-V core, which fault it took last.
pub(super) fn sighting(text: &str) -> Option<FaultSighting> {
    if let Some(snapshot) = parse_registers(text) {
        let trap = Trap::last(&snapshot).into_iter().next().or_else(|| Trap::call(&snapshot))?;
        let name = format!("{} at {:#010x}", trap.what(), trap.at);
        return Some(FaultSighting { name, proof: FaultProof::Suspected, taken: None });
    }
    let (_, number) = fault_in(text)?;
    Some(FaultSighting { name: exception_name(number), proof: FaultProof::InHandler, taken: None })
}

/// Returns the registers of a Cortex-M if it executes the handler of a fault.
fn fault_in(text: &str) -> Option<(CoreSnapshot, u32)> {
    let snapshot = parse_register_dump(text)?;
    let number = exception_of(&snapshot.registers).filter(|&number| is_fault(number))?;
    Some((snapshot, number))
}

impl DebugPort for CurrentRegisters {
    /// Explains a fault that the core is still in; other failures are not asked about.
    fn post_mortem<'a>(
        &'a mut self,
        request: &'a PostMortemRequest,
    ) -> BoxFuture<'a, Result<Option<PostMortem>, DriverError>> {
        Box::pin(async {
            if request.why != Cause::CoreFault {
                return Ok(None);
            }
            let found = self.read().await?.and_then(fault_in);
            Ok(found.map(|(snapshot, _)| told(&snapshot, Why::Fault, request)))
        })
    }

    fn current_fault(&mut self) -> BoxFuture<'_, Result<Option<FaultSighting>, DriverError>> {
        Box::pin(async { Ok(self.read().await?.and_then(sighting)) })
    }

    fn look_ahead(&mut self) {
        self.ahead = Some(tokio::spawn(Glance::take(self.machine.clone())));
    }

    fn runs_on(&mut self) {
        if let Some(ahead) = self.ahead.take() {
            ahead.abort();
        }
        (self.last, self.code) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use jig_drivers::qemu::OpenException;

    use super::*;

    /// As QEMU 7.2 prints it for an Armv8-M.
    const DUMP: &str = "\r\nCPU#0\r
R00=100000df R01=00000000 R02=50200000 R03=00000000\r
R04=38000000 R05=00000000 R06=00000000 R07=00000000\r
R08=00000000 R09=00000000 R10=00000000 R11=00000000\r
R12=00000000 R13=3800fec8 R14=100000b7 R15=100000ce\r
XPSR=81000003 N--- T S handler\r
FPSCR: 00000000\r
";

    #[test]
    fn only_the_exception_that_is_executed_counts() {
        for (xpsr, fault) in [
            ("81000003", Some(3)),
            ("81000006", Some(6)),
            ("81000000", None),
            ("8100000f", None),
            ("81000013", None),
        ] {
            let text = DUMP.replace("81000003", xpsr);
            assert_eq!(fault_in(&text).map(|(_, number)| number), fault, "{xpsr}");
        }
        for (xpsr, taken, suspected) in [
            ("81000000", 0, false),
            ("81000000", 1, true),
            ("8100000f", 0, true),
            ("81000003", 0, true),
        ] {
            let text = DUMP.replace("81000003", xpsr);
            let seen = Exceptions { faults: taken, ..Exceptions::default() };
            let found = suspicion(&text, &seen);
            assert_eq!(found.is_some(), suspected, "{xpsr} {taken}");
            // What is suspected has to be found by a post-mortem.
            assert!(found.is_none_or(|found| found.proof == FaultProof::Suspected));
        }
        let call = |in_a_row, interrupted| TrapTaken {
            cause: 8,
            in_a_row,
            interrupted,
            ..TrapTaken::default()
        };
        for (call, suspected) in
            [(call(1, vec![]), true), (call(1, vec![64]), false), (call(3, vec![64]), true)]
        {
            let seen = Exceptions { call: Some(call), ..Exceptions::default() };
            assert_eq!(reported(&seen).is_some(), suspected, "{seen:?}");
        }
        for (number, proof) in
            [(2, Some(FaultProof::Ended)), (3, Some(FaultProof::InHandler)), (15, None)]
        {
            let open = vec![OpenException { number, entry: 1 }];
            let found = at_end(&Exceptions { open, ..Exceptions::default() });
            assert_eq!(found.map(|found| found.proof), proof, "{number}");
        }
        // A Cortex-M: what its handler did, the watch may know.
        let left = at_end(&Exceptions { faults: 1, ..Exceptions::default() });
        assert_eq!(left.map(|found| found.proof), Some(FaultProof::Suspected));
        let fault = |cause, value, printed| {
            let fault = Some(TrapTaken { cause, value, ..TrapTaken::default() });
            at_end(&Exceptions { faults: 1, fault, printed, ..Exceptions::default() })
        };
        // `unimp` and a refused load; `csrr` is emulated, and a misaligned load.
        for (found, told) in [
            (fault(2, 0xc000_1073, false), true),
            (fault(5, 0, false), true),
            (fault(5, 0, true), false),
            (fault(2, 0xf110_2573, false), false),
            (fault(4, 0x8000_0001, false), false),
        ] {
            assert_eq!(found.map(|found| found.proof), told.then_some(FaultProof::Ended));
        }
        assert_eq!(fault_in(" pc       800000a8\r\n mcause   00000002\r\n"), None);
    }
}
