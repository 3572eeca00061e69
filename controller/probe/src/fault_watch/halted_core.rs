//! Ways in which a core has halted for good though it is in no fault. Pure.
//!
//! # Design
//! Besides the functions in which systems wait after a fatal error ([`crate::fatal_halt`]) some states
//! are known from which no program goes on as it was meant to:
//!
//! - *an interrupt whose handler is an endless loop*, as the start files of most vendors have it for each
//!   interrupt that a program does not handle. A RISC-V core shows it until its handler returns;
//! - *the handler of NMI*, which nothing interrupts: one that two looks find there does not return;
//! - *a stack pointer that lies in no memory of the board*, behind a recursion without end. The bus of
//!   some boards ignores such accesses, so that no fault is ever taken. On a Cortex-M, one without room
//!   for the registers that an exception pushes is as bad;
//! - *a program counter that lies in no memory of the board*, behind a call of what is no function. The bus
//!   of some boards answers there, too, and the core executes what it reads.
//!
//! None is proof: a program may end its tests in an interrupt, and a profile may not list all memory.
//! So nothing passes with them, and nothing fails.

use jig_model::Cause;
use jig_model::post_mortem::StackFrame;
use jig_model::profile::MemoryRegion;

use crate::debug_info::exception_name;
use crate::fatal_halt::fatal_function;
use crate::post_mortem::exception_of;
use crate::{CoreKind, CoreSnapshot};

/// Number of the exception that nothing masks.
const NMI: u32 = 2;

/// What a Cortex-M pushes at least when it takes an exception.
const FRAME: u64 = 32;

/// A core that has halted for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HaltedCore {
    /// In a function where its system waits after a fatal error.
    Fatal(String),
    /// In a loop of few instructions, in the handler of an exception of this number.
    HandlerLoop(u32),
    /// In such a loop, in the trap handler of a RISC-V core, for an interrupt of this number.
    InterruptLoop(u32),
    /// In the handler of NMI.
    InNmi,
    /// With a stack pointer that lies in no memory of the board.
    StackOutside(u32),
    /// With a program counter that lies in no memory of the board.
    CodeOutside(u32),
}

impl HaltedCore {
    /// Tells how a stopped core has halted, by its chain of calls, the code around its program
    /// counter and the memory of its board; nothing if it may go on.
    pub(super) fn of(
        core: &CoreSnapshot,
        frames: &[StackFrame],
        code: Option<CodeAround>,
        memory: &[MemoryRegion],
    ) -> Option<Self> {
        if let Some(name) = fatal_function(frames) {
            return Some(Self::Fatal(name.to_owned()));
        }
        let exception = exception_of(&core.registers).filter(|&number| number != 0);
        if let Some(number) = exception.filter(|_| code.is_some_and(|code| code.loops())) {
            return Some(Self::HandlerLoop(number));
        }
        if exception == Some(NMI) {
            return Some(Self::InNmi);
        }
        // A function that has a name is one, wherever it lies.
        let named = frames.first().is_some_and(|frame| frame.function.is_some());
        let code = code_outside(core, memory).filter(|_| !named).map(Self::CodeOutside);
        code.or_else(|| stack_outside(core, memory).map(Self::StackOutside))
    }

    /// Tells whether it is the state of an earlier look. A stack without end has grown meanwhile, and a
    /// lost program counter has moved on.
    pub(super) fn is_still(&self, first: &Self) -> bool {
        let moved = matches!(
            (self, first),
            (Self::StackOutside(_), Self::StackOutside(_))
                | (Self::CodeOutside(_), Self::CodeOutside(_))
        );
        self == first || moved
    }

    /// Returns what it proves.
    pub(super) fn proves(&self) -> Cause {
        match self {
            Self::Fatal(_) => Cause::GuestPanic,
            Self::HandlerLoop(_)
            | Self::InterruptLoop(_)
            | Self::InNmi
            | Self::StackOutside(_)
            | Self::CodeOutside(_) => Cause::Unconfirmed,
        }
    }

    /// Describes it.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Fatal(name) => format!("{name} is where the system waits after a fatal error"),
            Self::HandlerLoop(number) => {
                format!("the handler of {} is an endless loop", exception_name(*number))
            }
            Self::InterruptLoop(number) => {
                let name = match number {
                    3 => "the machine software interrupt".to_owned(),
                    7 => "the machine timer interrupt".to_owned(),
                    11 => "a machine external interrupt".to_owned(),
                    number => format!("interrupt {number}"),
                };
                format!("the trap handler is in an endless loop, entered by {name}")
            }
            Self::InNmi => "the handler of NMI does not return".to_owned(),
            Self::StackOutside(at) => format!(
                "the stack pointer {at:#010x} lies in no memory of the profile, or leaves an interrupt \
                 no room in it (if the board has memory there, add it to `memory`)"
            ),
            Self::CodeOutside(at) => format!(
                "the program counter {at:#010x} lies in no memory of the profile (if the board has memory \
                 there, add it to `memory`)"
            ),
        }
    }
}

/// Tells whether the program counter or the stack pointer of a core lies in no memory.
pub(super) fn has_left_memory(core: &CoreSnapshot, memory: &[MemoryRegion]) -> bool {
    code_outside(core, memory).is_some() || stack_outside(core, memory).is_some()
}

/// Returns the program counter of a core if it lies in no memory.
fn code_outside(core: &CoreSnapshot, memory: &[MemoryRegion]) -> Option<u32> {
    if translates(core) || memory.is_empty() {
        return None;
    }
    let pc = core.register("pc").and_then(|value| u32::try_from(value).ok())?;
    let holds = |region: &MemoryRegion| {
        u64::from(pc).checked_sub(region.start).is_some_and(|offset| offset < region.size)
    };
    (!memory.iter().any(holds)).then_some(pc)
}

/// Tells whether a core translates its addresses: then they say nothing.
fn translates(core: &CoreSnapshot) -> bool {
    core.register("satp").is_some_and(|satp| satp != 0)
}

/// Returns the stack pointer of a core if it lies in no memory, and not just behind one, or if an
/// exception of a Cortex-M would push below that memory.
fn stack_outside(core: &CoreSnapshot, memory: &[MemoryRegion]) -> Option<u32> {
    if translates(core) || memory.is_empty() {
        return None;
    }
    let stack = core.register("sp").and_then(|value| u32::try_from(value).ok())?;
    let holds = |at: u64| {
        let inside = |region: &MemoryRegion| {
            at.checked_sub(region.start).is_some_and(|offset| offset <= region.size)
        };
        memory.iter().any(inside)
    };
    let pushed = if matches!(core.kind, CoreKind::Riscv32) { 0 } else { FRAME };
    let at = u64::from(stack);
    // A core that was never started has none.
    (stack != 0 && !(holds(at) && holds(at.saturating_sub(pushed)))).then_some(stack)
}

/// The halfwords of Thumb code before, at and behind a program counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeAround(pub(super) [u16; 3]);

impl CodeAround {
    /// Returns where the code around the program counter of a Cortex-M begins.
    pub(super) fn start(core: &CoreSnapshot) -> Option<u32> {
        let arm = !matches!(core.kind, CoreKind::Riscv32);
        let pc = core.register("pc").filter(|_| arm)?;
        u32::try_from(pc).ok()?.checked_sub(2)
    }

    /// Makes it of six bytes.
    pub(super) fn of(bytes: [u8; 6]) -> Self {
        let at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Self([at(0), at(2), at(4)])
    }

    /// Tells whether it is a branch to itself, also with one instruction that waits in front of it.
    fn loops(self) -> bool {
        /// `b .`
        const SELF: u16 = 0xe7fe;
        /// `b` to the halfword in front of it.
        const BACK: u16 = 0xe7fd;
        // `nop`, `yield`, `wfe`, `wfi`, `sev`; and `bkpt`.
        let waits = |code: u16| code & 0xff0f == 0xbf00 || code & 0xff00 == 0xbe00;
        match self.0 {
            [_, SELF, _] => true,
            [_, at, BACK] => waits(at),
            [before, BACK, _] => waits(before),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use jig_model::profile::MemoryKind;

    use super::*;
    use crate::RegisterValue;

    fn core(sp: u32, satp: Option<u128>) -> CoreSnapshot {
        let register = |name: &str, value| RegisterValue { name: name.into(), value, bits: 32 };
        let mut registers = vec![register("sp", u128::from(sp))];
        registers.extend(satp.map(|value| register("satp", value)));
        CoreSnapshot { kind: CoreKind::Armv7m, registers, memory: Vec::new() }
    }

    #[test]
    fn a_stack_pointer_below_the_memory_is_told() {
        let region =
            |start, size| MemoryRegion { name: "ram".into(), kind: MemoryKind::Ram, start, size };
        let memory = [region(0x2000_0000, 0x1000), region(0x1000_0000, 0x100)];
        for (sp, outside) in [
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
            HaltedCore::of(&core, &[], None, memory)
        };
        let memory = [region];
        assert_eq!(told(0x3ffe, None, &memory), None);
        let lost = HaltedCore::CodeOutside(0x4141_4140);
        assert_eq!(told(0x4141_4140, None, &memory), Some(lost.clone()));
        assert!(HaltedCore::CodeOutside(0x4141_4142).is_still(&lost));
        assert_eq!(told(0x4141_4140, Some(1), &memory), None);
        assert_eq!(told(0x4141_4140, None, &[]), None);
    }

    #[test]
    fn a_core_in_the_handler_of_nmi_is_told() {
        for (number, halted) in [(NMI, Some(HaltedCore::InNmi)), (15, None), (0, None)] {
            let mut core = core(0x2000_0800, None);
            let value = u128::from(0x0100_0000 | number);
            core.registers.push(RegisterValue { name: "xpsr".into(), value, bits: 32 });
            assert_eq!(HaltedCore::of(&core, &[], None, &[]), halted, "{number}");
        }
    }

    #[test]
    fn loops_of_one_instruction_are_told() {
        for (code, loops) in [
            ([0x4770, 0xe7fe, 0x4770], true),
            ([0x4770, 0xbf30, 0xe7fd], true),
            ([0xbf30, 0xe7fd, 0x4770], true),
            ([0xbe00, 0xe7fd, 0x4770], true),
            ([0xbf00, 0xbf00, 0xe7fc], false),
            ([0x6818, 0xe7fd, 0x4770], false),
            ([0xe7fe, 0x4770, 0x4770], false),
        ] {
            assert_eq!(CodeAround(code).loops(), loops, "{code:04x?}");
        }
        assert_eq!(CodeAround::of([0x70, 0x47, 0xfe, 0xe7, 0, 0]).0, [0x4770, 0xe7fe, 0]);
    }
}
