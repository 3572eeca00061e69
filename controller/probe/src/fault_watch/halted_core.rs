//! Ways in which a core has halted for good though it is in no fault. Pure.
//!
//! # Design
//! Besides the functions in which systems wait after a fatal error ([`crate::fatal_halt`]) some states
//! are known from which no program goes on as it was meant to:
//!
//! - *an interrupt whose handler does not return*: two looks find the same entry open. The start files of
//!   most vendors have such a handler for each interrupt that a program does not handle, and a handler
//!   that waits for what another interrupt would bring is one. So is one that was left for a thread without
//!   a return from it: the core holds it active, and takes no other of its priority;
//! - *a stack pointer that lies in no RAM of the board*, behind a recursion without end. The bus of
//!   some boards ignores such accesses, so that no fault is ever taken. On a Cortex-M, one without room
//!   for the registers that an exception pushes is as bad, and on RISC-V one that is no multiple of 4;
//! - *a stack pointer that lies in a function*, where code is in RAM;
//! - *a program counter that lies in no memory of the board*, behind a call of what is no function. The bus
//!   of some boards answers there, too, and the core executes what it reads;
//! - *a program counter that lies in data, in code that was overwritten or within an instruction*, for the
//!   same reason ([`crate::code_map`]);
//! - *a call of `exit` with a code other than 0*, where nothing ends the emulator ([`crate::exit_code`]);
//! - *a loop with interrupts masked* ([`crate::masked_loop`]);
//! - *a stack that has grown into a variable* ([`crate::stack_overrun`]).
//!
//! What an interrupt has interrupted is looked at as well: a tick may come at each look.
//!
//! None is proof: a program may end its tests in an interrupt, and a profile may not list all memory.
//! So nothing passes with them, and nothing fails.

use jig_drivers::qemu::{Exceptions, OpenException};
use jig_model::Cause;
use jig_model::post_mortem::StackFrame;
use jig_model::profile::{MemoryKind, MemoryRegion};

use crate::code_map::{CodeMap, NoCode};
use crate::debug_info::{Symbols, Unwound, exception_name};
use crate::fatal_halt::fatal_function;
use crate::fault_status::FaultStatus;
use crate::post_mortem::exception_of;
use crate::riscv::{interrupted_at, masked_interrupt};
use crate::stack_overrun::StackPlace;
use crate::{CoreKind, CoreSnapshot};

/// What a Cortex-M pushes at least when it takes an exception.
const FRAME: u64 = 32;

/// A core that has halted for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HaltedCore {
    /// In a function where its system waits after a fatal error.
    Fatal(String),
    /// In `exit`, which was called with a code that is not 0.
    Exited(i32),
    /// In the handler of an exception, or in one that has interrupted it.
    InHandler {
        /// The numbers of the exceptions that are active for sure.
        active: Vec<u32>,
        /// The exceptions that were entered and not left.
        open: Vec<OpenException>,
    },
    /// In a thread, with an exception that is still active: its number.
    LeftActive(u32),
    /// In the trap handler of a RISC-V core.
    InTrap {
        /// The number of the interrupt that has entered it.
        interrupt: u32,
        /// How many traps the core had taken by then.
        traps: u64,
    },
    /// With a stack pointer that lies in no RAM of the board.
    StackOutside(u32),
    /// With a stack pointer that lies in a function.
    StackInCode(u32),
    /// With a stack pointer that is not aligned.
    StackUnaligned(u32),
    /// With a stack pointer in a variable, above the end of which those of its callers lie.
    StackOverrun(u32),
    /// With a program counter that lies in no memory of the board.
    CodeOutside(u32),
    /// With a program counter that lies in what is no code.
    InNoCode(u32, NoCode),
    /// In a loop with interrupts masked.
    InMaskedLoop {
        /// Where the loop begins.
        at: u32,
        /// The interrupt that is pending, where the mask alone proves nothing.
        pending: Option<String>,
    },
}

/// A stopped core, and what the image and the profile say of it.
pub(super) struct StoppedCore<'a> {
    pub(super) core: &'a CoreSnapshot,
    pub(super) unwound: &'a Unwound,
    pub(super) symbols: Option<&'a Symbols>,
    pub(super) memory: &'a [MemoryRegion],
}

/// Where a core stands, or stood when it was interrupted.
#[derive(Debug, Clone, Copy)]
struct Stand {
    pc: u32,
    stack: Option<u32>,
    /// Whether the program counter lies in a function that has a name.
    named: bool,
}

impl StoppedCore<'_> {
    /// Lists the program counters, innermost first, and the stack pointers that are known with them.
    pub(super) fn places(&self) -> impl Iterator<Item = (u32, Option<u32>)> {
        self.stands().into_iter().map(|stand| (stand.pc, stand.stack))
    }

    /// Returns the code other than 0 with which the program has called `exit`, where that call tells: of several,
    /// the first one, as some run-time libraries end by other calls within it.
    fn exit_code(&self) -> Option<i32> {
        let (symbols, frames) = (self.symbols?, &self.unwound.frames);
        let ends = |frame: &StackFrame| {
            u32::try_from(frame.pc).is_ok_and(|pc| symbols.ranges().exits.hold(pc.wrapping_sub(1)))
        };
        let stands = frames
            .first()
            .filter(|top| u32::try_from(top.pc).is_ok_and(|pc| symbols.ranges().exits.hold(pc)));
        let callers = frames.get(1..)?;
        let outermost = callers.iter().rposition(ends).map_or(0, |at| at + 1);
        let caller = stands.and(callers.get(outermost))?;
        symbols.ranges().exits.code_handed(u32::try_from(caller.pc).ok()?, symbols.code_map())
    }

    /// Tells of the loop in which the core stands with interrupts masked, or goes on so behind an interrupt.
    fn in_masked_loop(&self) -> Option<HaltedCore> {
        let masked = self.in_loop_with_priority_masked();
        masked.map(|at| HaltedCore::InMaskedLoop { at, pending: None }).or_else(|| {
            let name = match self.core.kind {
                CoreKind::Riscv32 => interrupt_name(masked_interrupt(self.core)?),
                _ if self.core.register("primask")? == 0 => return None,
                _ => exception_name(FaultStatus::read(self.core).pending()?),
            };
            let at =
                self.symbols?.ranges().masked_loops.without_interrupts(physical_pc(self.core)?)?;
            Some(HaltedCore::InMaskedLoop { at, pending: Some(name) })
        })
    }

    /// Returns the address of such a loop, where `BASEPRI` or `FAULTMASK` is set.
    fn in_loop_with_priority_masked(&self) -> Option<u32> {
        let loops = &self.symbols?.ranges().masked_loops;
        let register = |name: &str| self.core.register(name).and_then(|v| u32::try_from(v).ok());
        let Some(base_priority) = register("basepri") else {
            // A core that waits for an interrupt copies none of these registers.
            let has_masks = matches!(self.core.kind, CoreKind::Armv7m | CoreKind::Armv8m);
            let pc = pc_of(self.core).filter(|_| has_masks)?;
            return loops.that_masks_before(pc);
        };
        let faults_masked = register("faultmask").is_some_and(|mask| mask != 0);
        if base_priority == 0 && !faults_masked {
            return None;
        }
        // A handler may raise it, too: one that was entered above the mask goes back to it.
        let running = exception_of(&self.core.registers).unwrap_or(0);
        let was_above = || {
            let priority = FaultStatus::priority_of(self.core, running);
            priority.is_some_and(|priority| priority < base_priority)
        };
        let all = faults_masked || running == 0 || was_above();
        let most = if all { usize::MAX } else { 1 };
        self.places().take(most).find_map(|(pc, _)| loops.of_pc(pc))
    }

    /// Lists where the core stands, and where each exception has interrupted it; nothing where addresses are
    /// translated.
    fn stands(&self) -> Vec<Stand> {
        let Self { core, unwound, symbols, .. } = self;
        if translates(core) {
            return Vec::new();
        }
        let register = |name: &str| core.register(name).and_then(|value| u32::try_from(value).ok());
        let named = |frame: usize| {
            let frame: Option<&StackFrame> = unwound.frames.get(frame);
            frame.is_some_and(|frame| frame.function.is_some())
        };
        let top = register("pc").map(|pc| Stand { pc, stack: register("sp"), named: named(0) });
        // A frame that was found by searching is likely, and no more.
        let below = unwound.interrupted.iter().filter(|below| below.exc_return.is_some());
        let below = below.filter_map(|below| {
            let context = below.context.as_ref()?;
            Some(Stand { pc: context.pc, stack: context.sp(), named: named(below.frame) })
        });
        let trapped = interrupted_at(core).map(|pc| {
            let named = symbols.is_some_and(|symbols| symbols.function_at(pc.into()).is_some());
            Stand { pc, stack: None, named }
        });
        top.into_iter().chain(below).chain(trapped).collect()
    }
}

impl HaltedCore {
    /// Tells how a stopped core may have halted, by what it executes instead of code, and by what the
    /// emulator has reported; nothing if it goes on.
    pub(super) fn of(
        stopped: &StoppedCore<'_>,
        no_code: Option<(u32, NoCode)>,
        seen: Exceptions,
    ) -> Option<Self> {
        if let Some(name) = fatal_function(&stopped.unwound.frames) {
            return Some(Self::Fatal(name.to_owned()));
        }
        if let Some(code) = stopped.exit_code() {
            return Some(Self::Exited(code));
        }
        let (stands, memory) = (stopped.stands(), stopped.memory);
        // A function that has a name is one, wherever it lies.
        let mut outside =
            stands.iter().filter(|stand| !stand.named && lies_outside(stand.pc, memory));
        let outside = outside.next().map(|stand| Self::CodeOutside(stand.pc));
        let data = || no_code.map(|(pc, what)| Self::InNoCode(pc, what));
        let pushed = pushed_by(stopped.core);
        let leaves = |stand: &Stand| stand.stack.filter(|&at| has_no_room(at, pushed, memory));
        let stack = || stands.iter().find_map(leaves).map(Self::StackOutside);
        let enters = |stand: &Stand| {
            let code = stopped.symbols?.code_map();
            stand.stack.filter(|&at| code.holds_stack(at))
        };
        let is_odd = |stand: &Stand| stand.stack.filter(|&at| is_unaligned(stopped.core, at));
        let unaligned = || stands.iter().find_map(is_odd).map(Self::StackUnaligned);
        let in_code = || stands.iter().find_map(enters).map(Self::StackInCode);
        let overrun = || Self::with_overrun_stack(stopped.unwound, stopped.symbols?);
        let stack = || stack().or_else(in_code).or_else(unaligned).or_else(overrun);
        let masked = || stopped.in_masked_loop();
        outside.or_else(data).or_else(stack).or_else(masked).or_else(|| {
            let running = exception_of(&stopped.core.registers)?;
            if running == 0 {
                return FaultStatus::read(stopped.core).active().map(Self::LeftActive);
            }
            // Around a fault, one may be reported twice and left once.
            let active = match seen.faults {
                0 => seen.open.iter().map(|open| open.number).chain([running]).collect(),
                _ => vec![running],
            };
            Some(Self::InHandler { active, open: seen.open })
        })
    }

    /// Tells of a thread whose stack has grown out of its variable.
    fn with_overrun_stack(unwound: &Unwound, symbols: &Symbols) -> Option<Self> {
        let overrun = |stack: &Vec<StackPlace>| symbols.overrun_stack(stack);
        unwound.stacks.iter().find_map(overrun).map(Self::StackOverrun)
    }

    /// Returns the state if it is that of an earlier look. A stack without end has grown meanwhile, and a
    /// lost program counter has moved on.
    pub(super) fn since(self, first: &Self) -> Option<Self> {
        match (&self, first) {
            (Self::InHandler { active, open }, Self::InHandler { active: before, open: known }) => {
                let stays = |one: &&OpenException| {
                    let is_active = active.contains(&one.number) || before.contains(&one.number);
                    known.contains(one) && is_active
                };
                let stays = open.iter().rev().find(stays)?.number;
                Some(Self::InHandler { active: vec![stays], open: Vec::new() })
            }
            // Another interrupt may be pending by now.
            (Self::InMaskedLoop { at, .. }, Self::InMaskedLoop { at: before, .. }) => {
                (at == before).then_some(self)
            }
            (now, first) if now.is_lost() && first.is_lost() => Some(self),
            (now, first) => (now == first).then_some(self),
        }
    }

    /// Tells whether the program has left its code or its stack.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Self::StackOutside(_)
            | Self::StackInCode(_)
            | Self::StackUnaligned(_)
            | Self::StackOverrun(_)
            | Self::CodeOutside(_)
            | Self::InNoCode(..) => true,
            Self::Fatal(_)
            | Self::Exited(_)
            | Self::InHandler { .. }
            | Self::LeftActive(_)
            | Self::InTrap { .. }
            | Self::InMaskedLoop { .. } => false,
        }
    }

    /// Returns what it proves.
    pub(super) fn proves(&self) -> Cause {
        match self {
            Self::Fatal(_) => Cause::GuestPanic,
            Self::Exited(_)
            | Self::InHandler { .. }
            | Self::LeftActive(_)
            | Self::InTrap { .. }
            | Self::StackOutside(_)
            | Self::StackInCode(_)
            | Self::StackUnaligned(_)
            | Self::StackOverrun(_)
            | Self::CodeOutside(_)
            | Self::InNoCode(..)
            | Self::InMaskedLoop { .. } => Cause::Unconfirmed,
        }
    }

    /// Describes it.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Fatal(name) => format!("{name} is where the system waits after a fatal error"),
            Self::Exited(code) => {
                format!("the program has called exit({code}), which ends nothing here")
            }
            Self::InHandler { active, .. } => {
                let names: Vec<String> = active.iter().copied().map(exception_name).collect();
                format!("the handler of {} does not return", names.join(", "))
            }
            Self::LeftActive(number) => format!(
                "the handler of {} has not returned: it is still active, though the core executes a thread",
                exception_name(*number)
            ),
            Self::InTrap { interrupt, .. } => {
                let name = interrupt_name(*interrupt);
                format!("the trap handler does not return from {name}")
            }
            Self::StackOutside(at) => format!(
                "the stack pointer {at:#010x} lies in no RAM of the profile, or leaves an interrupt \
                 no room in it (if the board has RAM there, add it to `memory` with kind = \"ram\")"
            ),
            Self::StackInCode(at) => format!(
                "the stack pointer {at:#010x} lies in a function: what is pushed would overwrite its code"
            ),
            Self::StackUnaligned(at) => {
                format!(
                    "the stack pointer {at:#010x} is no multiple of 4, though the ABI keeps it one"
                )
            }
            Self::StackOverrun(at) => format!(
                "the stack pointer {at:#010x} lies in a variable, and those of the calling functions lie \
                 above its end: the stack may be too small"
            ),
            Self::InNoCode(at, NoCode::Data) => format!(
                "the program counter {at:#010x} lies in data, heap or stack, where the image has no code"
            ),
            Self::InNoCode(at, NoCode::Overwritten) => format!(
                "the code at {at:#010x} is not that of the image any more: it was overwritten"
            ),
            Self::InNoCode(at, NoCode::WithinInstruction) => format!(
                "the program counter {at:#010x} lies within an instruction, the second half of which is \
                 executed as another one"
            ),
            Self::InMaskedLoop { at, pending: None } => format!(
                "it stays in a loop at {at:#010x} with interrupts masked by BASEPRI or \
                 FAULTMASK, as an assertion that prints nothing does"
            ),
            Self::InMaskedLoop { at, pending: Some(name) } => format!(
                "it stays in a loop at {at:#010x} with interrupts masked, and {name} is pending, as behind \
                 an assertion that prints nothing"
            ),
            Self::CodeOutside(at) => format!(
                "the program counter {at:#010x} lies in no memory of the profile (if the board has memory \
                 there, add it to `memory`)"
            ),
        }
    }
}

/// Names an interrupt of RISC-V.
fn interrupt_name(number: u32) -> String {
    match number {
        3 => "the machine software interrupt".to_owned(),
        7 => "the machine timer interrupt".to_owned(),
        11 => "a machine external interrupt".to_owned(),
        number => format!("interrupt {number}"),
    }
}

/// Tells whether the program counter or the stack pointer of a core lies in no memory, the program counter may
/// lie in data or within an instruction, or the stack pointer lies in a function or is not aligned.
pub(super) fn is_lost(core: &CoreSnapshot, memory: &[MemoryRegion], code: &CodeMap) -> bool {
    let in_code = |at| code.holds_stack(at) || is_unaligned(core, at);
    code_outside(core, memory).is_some()
        || stack_outside(core, memory).is_some()
        || physical_stack(core).is_some_and(in_code)
        || may_be_in_data(core, memory, code).is_some()
}

/// Returns the program counter of a core if it may lie in data.
fn may_be_in_data(core: &CoreSnapshot, memory: &[MemoryRegion], code: &CodeMap) -> Option<u32> {
    physical_pc(core).filter(|&pc| code.may_be_data(pc, memory))
}

/// Returns the program counter of a core that does not translate its addresses.
pub(super) fn physical_pc(core: &CoreSnapshot) -> Option<u32> {
    pc_of(core).filter(|_| !translates(core))
}

fn pc_of(core: &CoreSnapshot) -> Option<u32> {
    core.register("pc").and_then(|value| u32::try_from(value).ok())
}

/// Returns the program counter of a core if it lies in no memory.
fn code_outside(core: &CoreSnapshot, memory: &[MemoryRegion]) -> Option<u32> {
    physical_pc(core).filter(|&pc| lies_outside(pc, memory))
}

fn lies_outside(at: u32, memory: &[MemoryRegion]) -> bool {
    !memory.is_empty() && !memory.iter().any(|region| region.contains(u64::from(at)))
}

/// Tells whether a core translates its addresses: then they say nothing.
fn translates(core: &CoreSnapshot) -> bool {
    core.register("satp").is_some_and(|satp| satp != 0)
}

/// Returns the stack pointer of a core that does not translate its addresses.
fn physical_stack(core: &CoreSnapshot) -> Option<u32> {
    let stack = core.register("sp").and_then(|value| u32::try_from(value).ok());
    stack.filter(|_| !translates(core))
}

/// Returns the stack pointer of a core if it lies in no RAM, and not just behind one, or if an
/// exception of a Cortex-M would push below that RAM.
fn stack_outside(core: &CoreSnapshot, memory: &[MemoryRegion]) -> Option<u32> {
    let stack = physical_stack(core)?;
    has_no_room(stack, pushed_by(core), memory).then_some(stack)
}

/// Tells whether a stack pointer is one that the ABI of a RISC-V core rules out; others ignore its last bits.
fn is_unaligned(core: &CoreSnapshot, stack: u32) -> bool {
    core.kind == CoreKind::Riscv32 && !stack.is_multiple_of(4)
}

/// Returns what an exception pushes at least.
fn pushed_by(core: &CoreSnapshot) -> u64 {
    if matches!(core.kind, CoreKind::Riscv32) { 0 } else { FRAME }
}

/// Tells whether a stack pointer lies in no RAM, and not just behind one, or whether so many bytes below it
/// do. Where the profile has no RAM, nothing is known.
fn has_no_room(stack: u32, pushed: u64, memory: &[MemoryRegion]) -> bool {
    let ram = || memory.iter().filter(|region| region.kind == MemoryKind::Ram);
    let holds = |at: u64| {
        let inside = |region: &MemoryRegion| {
            at.checked_sub(region.start).is_some_and(|offset| offset <= region.size)
        };
        ram().any(inside)
    };
    let at = u64::from(stack);
    // A core that was never started has none.
    stack != 0 && ram().next().is_some() && !(holds(at) && holds(at.saturating_sub(pushed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug_info::tests::emulated::{M3, address_of, fixture};
    use crate::{MemoryRange, RegisterValue};

    fn core(sp: u32, satp: Option<u128>) -> CoreSnapshot {
        let register = |name: &str, value| RegisterValue { name: name.into(), value, bits: 32 };
        let mut registers = vec![register("sp", u128::from(sp))];
        registers.extend(satp.map(|value| register("satp", value)));
        CoreSnapshot { kind: CoreKind::Armv7m, registers, memory: Vec::new() }
    }

    #[test]
    fn a_stack_pointer_below_the_memory_is_told() {
        let region = |kind, start, size| MemoryRegion { name: "m".into(), kind, start, size };
        let flash = region(MemoryKind::Flash, 0, 0x4_0000);
        let memory = [
            region(MemoryKind::Ram, 0x2000_0000, 0x1000),
            region(MemoryKind::Ram, 0x1000_0000, 0x100),
            flash.clone(),
        ];
        for (sp, outside) in [
            (0x2_0000, true),
            // No room for a frame.
            (0x2000_0000, true),
            (0x2000_0010, true),
            (0x2000_0020, false),
            (0x2000_0ff8, false),
            (0x2000_1000, false),
            (0x2000_1008, true),
            (0x1fff_fff8, true),
            (0x1000_00f8, false),
            (0, false),
        ] {
            let found = stack_outside(&core(sp, None), &memory);
            assert_eq!(found, outside.then_some(sp), "{sp:#x}");
        }
        assert_eq!(stack_outside(&core(0x1fff_fff8, None), &[]), None);
        assert_eq!(stack_outside(&core(0x2000_0800, None), &[flash]), None);
        assert_eq!(stack_outside(&core(0x1fff_fff8, Some(1 << 31)), &memory), None);
        assert!(stack_outside(&core(0x1fff_fff8, Some(0)), &memory).is_some());
    }

    #[test]
    fn a_program_counter_in_no_memory_is_told() {
        let region =
            MemoryRegion { name: "flash".into(), kind: MemoryKind::Flash, start: 0, size: 0x4000 };
        let told = |pc: u32, satp, memory: &[MemoryRegion]| {
            let mut core = core(0, satp);
            let value = u128::from(pc);
            core.registers.push(RegisterValue { name: "pc".into(), value, bits: 32 });
            let unwound = &Unwound::default();
            let stopped = StoppedCore { core: &core, unwound, symbols: None, memory };
            HaltedCore::of(&stopped, None, Exceptions::default())
        };
        let memory = [region];
        assert_eq!(told(0x3ffe, None, &memory), None);
        let lost = HaltedCore::CodeOutside(0x4141_4140);
        assert_eq!(told(0x4141_4140, None, &memory), Some(lost.clone()));
        assert!(HaltedCore::CodeOutside(0x4141_4142).since(&lost).is_some());
        assert_eq!(told(0x4141_4140, Some(1), &memory), None);
        assert_eq!(told(0x4141_4140, None, &[]), None);
    }

    #[test]
    fn a_mask_that_a_handler_has_raised_is_not_that_of_what_it_has_interrupted() {
        let elf = std::fs::read(fixture(M3, "halt-masked")).unwrap();
        let symbols = Symbols::load(&elf).unwrap();
        let start = u32::try_from(address_of(&elf, "queue_send")).unwrap() & !1;
        let at = (start..start + 64)
            .step_by(2)
            .find(|&pc| symbols.ranges().masked_loops.of_pc(pc).is_some())
            .unwrap();
        for (priority, base_priority, told) in [(0x20, 0x50, true), (0xf0, 0x50, false)] {
            let mut core = core(0x2000_0800, None);
            let register = |name: &str, value: u32| RegisterValue {
                name: name.into(),
                value: value.into(),
                bits: 32,
            };
            let handler = u32::try_from(address_of(&elf, "print")).unwrap();
            core.registers.extend([
                register("pc", handler),
                register("lr", 0xffff_fff9),
                register("xpsr", 1 << 24 | 15),
                register("basepri", base_priority),
            ]);
            let frame = [0, 0, 0, 0, 0, 0, at, 1 << 24];
            let bytes = frame.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
            core.memory.push(MemoryRange { start: 0x2000_0800, bytes });
            core.memory.push(MemoryRange { start: 0xe000_ed23, bytes: vec![priority] });
            let unwound = &crate::debug_info::unwind(&core, Some(&symbols));
            let stopped =
                StoppedCore { core: &core, unwound, symbols: Some(&symbols), memory: &[] };
            let found = HaltedCore::of(&stopped, None, Exceptions::default()).unwrap();
            assert_eq!(matches!(found, HaltedCore::InMaskedLoop { .. }), told, "{found:?}");
        }
    }

    #[test]
    fn a_loop_counts_where_interrupts_are_masked_by_priority() {
        let elf = std::fs::read(fixture(M3, "halt-masked")).unwrap();
        let symbols = Symbols::load(&elf).unwrap();
        let loops = &symbols.ranges().masked_loops;
        let start = u32::try_from(address_of(&elf, "queue_send")).unwrap() & !1;
        let at = (start..start + 64).step_by(2).find(|&pc| loops.of_pc(pc).is_some()).unwrap();
        let by_priority = HaltedCore::InMaskedLoop { at, pending: None };
        let tick = HaltedCore::InMaskedLoop { at, pending: Some("SysTick".into()) };
        for (masks, pc, pending, told) in [
            (&[("basepri", 0x50), ("faultmask", 0)][..], at, 0_u32, Some(&by_priority)),
            (&[("basepri", 0), ("faultmask", 1)], at, 0, Some(&by_priority)),
            (&[("basepri", 0), ("primask", 1)], at, 0, None),
            (&[("basepri", 0), ("primask", 1)], at, 15, Some(&tick)),
            (&[("basepri", 0), ("primask", 0)], at, 15, None),
            (&[("basepri", 0), ("primask", 1)], start, 15, None),
            (&[("basepri", 0x50)], start, 0, None),
            // It waits, and the code in front of the loop raises the priority.
            (&[], at, 0, Some(&by_priority)),
        ] {
            let mut core = core(0x2000_0800, None);
            let register = |name: &str, value: u32| RegisterValue {
                name: name.into(),
                value: value.into(),
                bits: 32,
            };
            core.registers.push(register("pc", pc));
            core.registers.extend(masks.iter().map(|&(name, value)| register(name, value)));
            let icsr = (pending << 12).to_le_bytes().to_vec();
            core.memory.push(MemoryRange { start: 0xe000_ed04, bytes: icsr });
            let unwound = &Unwound::default();
            let stopped =
                StoppedCore { core: &core, unwound, symbols: Some(&symbols), memory: &[] };
            let found = HaltedCore::of(&stopped, None, Exceptions::default());
            assert_eq!(found.as_ref(), told, "{masks:?} {pc:#x} {pending}");
        }
        // Another interrupt has become pending.
        let other = HaltedCore::InMaskedLoop { at, pending: Some("IRQ3".into()) };
        assert!(tick.since(&other).is_some());
    }

    fn executing(number: u32, open: &[(u32, u64)], faults: u32) -> Option<HaltedCore> {
        let mut core = core(0x2000_0800, None);
        let value = u128::from(0x0100_0000 | number);
        core.registers.push(RegisterValue { name: "xpsr".into(), value, bits: 32 });
        let open = open.iter().map(|&(number, entry)| OpenException { number, entry }).collect();
        let seen = Exceptions { open, faults, ..Exceptions::default() };
        let unwound = &Unwound::default();
        let stopped = StoppedCore { core: &core, unwound, symbols: None, memory: &[] };
        HaltedCore::of(&stopped, None, seen)
    }

    #[test]
    fn a_handler_that_does_not_return_is_told() {
        let faulted = |first: (u32, &[(u32, u64)]), then: (u32, &[(u32, u64)]), faults| {
            let first = executing(first.0, first.1, faults).unwrap();
            match executing(then.0, then.1, faults)?.since(&first)? {
                HaltedCore::InHandler { active, .. } => active.first().copied(),
                other => panic!("{other:?}"),
            }
        };
        let stays = |first, then| faulted(first, then, 0);
        let stuck: &[(u32, u64)] = &[(25, 7)];
        assert_eq!(stays((25, stuck), (25, stuck)), Some(25));
        // A tick runs above it, at one of the looks or at both.
        assert_eq!(stays((15, &[(25, 7), (15, 8)]), (25, stuck)), Some(25));
        assert_eq!(stays((25, stuck), (15, &[(25, 7), (15, 9)])), Some(25));
        let (tick, next): (&[_], &[_]) = (&[(25, 7), (15, 8)], &[(25, 7), (15, 9)]);
        assert_eq!(stays((15, tick), (15, next)), Some(25));
        assert_eq!(faulted((15, tick), (15, next), 1), None);
        // It was left and entered again, and it was left.
        assert_eq!(stays((15, &[(15, 8)]), (15, &[(15, 9)])), None);
        assert_eq!(stays((15, &[(15, 8)]), (0, &[])), None);
    }
}
