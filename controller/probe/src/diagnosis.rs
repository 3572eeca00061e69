//! What went wrong, in a few words, from status registers, registers and the instruction.
//!
//! The status registers do not tell whether a refused access read or wrote, and the smallest
//! cores have none at all: the instruction tells, with the registers it used.

use crate::debug_info::{
    Context, ExcReturn, Interrupted, KnownMemory, Symbols, exception_name, is_fault,
};
use crate::fault_status::{FaultStatus, cfsr, hfsr, sfsr};
use crate::thumb::{self, Instruction};

/// Says in a few words what an instruction did to fault, such as
/// `bus fault writing 0x00000004`; nothing if nothing can be said.
pub(crate) fn fault_at<'a>(
    context: &'a Context,
    status: &FaultStatus,
    memory: KnownMemory<'a>,
    symbols: Option<&Symbols>,
) -> Option<String> {
    let site = Site::read(context, memory, symbols);
    by_status(&site, status).or_else(|| match status.cfsr {
        // A core that has status registers, and none of them is set: nothing faulted.
        Some(0) if status.hfsr.is_none_or(|hfsr| hfsr == 0) => None,
        // An escalated call has no status of its own.
        Some(0) => site.forbidden_call().or_else(|| site.by_instruction()),
        _ => site.by_instruction(),
    })
}

/// Where the registers of a Cortex-M core begin; no stack lies there.
const SYSTEM_REGION: u32 = 0xe000_0000;

/// Says what it means that the registers of what was interrupted could not be saved.
pub(crate) fn lost_frame(lost: &Interrupted, memory: KnownMemory<'_>) -> String {
    if memory.is_empty() {
        // What an emulator prints when it ends has registers only.
        return format!("fault of unknown cause (registers at {:#010x}, not captured)", lost.at);
    }
    // Below the lowest memory that is known above it: a stack that grew out of its memory.
    match memory.first_above(lost.at) {
        Some(above) if lost.at < SYSTEM_REGION && above - lost.at <= 64 * 1024 => {
            format!("stack overflow: the stack pointer {:#010x} lies below {above:#010x}", lost.at)
        }
        _ => format!("stack pointer {:#010x} outside of memory", lost.at),
    }
}

/// Names conditions of exception handling that are worth a sentence.
pub(crate) fn exception_sentences(interrupted: &[Interrupted]) -> Vec<String> {
    let mut said = Vec::new();
    for entry in interrupted {
        let name = exception_name(entry.number);
        let Some(exc_return) = entry.exc_return else {
            said.push(format!("{name} interrupted what was found at {:#010x}", entry.at));
            continue;
        };
        let stack = if exc_return.uses_psp() { "process" } else { "main" };
        let float = if exc_return.is_extended() { ", with floating point registers" } else { "" };
        said.push(format!(
            "{name} returns by {:#010x}: to the {stack} stack at {:#010x}{float}",
            exc_return.bits(),
            entry.at
        ));
    }
    said
}

/// First byte of `svc`.
const SUPERVISOR_CALL: u16 = 0xdf;

/// An instruction and what is known around it.
struct Site<'a> {
    context: &'a Context,
    memory: KnownMemory<'a>,
    before: Option<u16>,
    first: Option<u16>,
    second: Option<u16>,
    instruction: Option<Instruction>,
    is_code: bool,
}

impl<'a> Site<'a> {
    fn read(context: &'a Context, memory: KnownMemory<'a>, symbols: Option<&Symbols>) -> Self {
        let before = memory.instruction(context.pc.wrapping_sub(2));
        let first = memory.instruction(context.pc);
        let second = memory.instruction(context.pc.wrapping_add(2));
        let is_code = symbols.map_or(first.is_some(), |s| s.is_code(u64::from(context.pc)));
        let instruction = first.map(|first| thumb::decode(first, second.unwrap_or(0)));
        Self { context, memory, before, first, second, instruction, is_code }
    }

    /// Spells the instruction as a disassembler lists it.
    fn opcode(&self) -> String {
        match (self.first, self.second) {
            (Some(first), Some(second)) if thumb::is_wide(first) => {
                format!(" {first:#06x} {second:#06x}")
            }
            (Some(first), _) => format!(" {first:#06x}"),
            (None, _) => String::new(),
        }
    }

    /// Returns `reading 0x...`, with an address that the core kept before one that is computed.
    fn access(&self, kept: Option<u32>) -> String {
        let (verb, computed) = match self.instruction {
            Some(Instruction::Access(access)) => (
                if access.writes { "writing" } else { "reading" },
                access.address(self.context.pc, |number| self.context.get(number)),
            ),
            _ => ("accessing", None),
        };
        match kept.or(computed) {
            Some(address) => format!("{verb} {address:#010x}"),
            None => format!("{verb} an unknown address"),
        }
    }

    /// Says that the core went to address 0: by a call, or by the vector of an exception, at whose entry the
    /// link register says how to return.
    fn jump_to_null(&self) -> String {
        let exception = self.context.exception();
        match self.context.lr().and_then(ExcReturn::of) {
            // A handler may end in a jump by a null pointer, too.
            Some(_) if exception != 0 && !self.has_vector(exception) => {
                format!("null vector of {}", exception_name(exception))
            }
            _ => "call of a null pointer".to_owned(),
        }
    }

    /// Tells whether an exception is known to have a handler.
    fn has_vector(&self, exception: u32) -> bool {
        const VTOR: u32 = 0xe000_ed08;
        let vector = |table: u32| {
            let at = table.checked_add(4 * exception)?;
            let halves =
                [self.memory.instruction(at)?, self.memory.instruction(at.checked_add(2)?)?];
            Some(halves != [0; 2])
        };
        self.memory.word(VTOR).and_then(vector).unwrap_or(false)
    }

    fn jump_without_thumb(&self) -> String {
        match self.context.pc {
            0 => self.jump_to_null(),
            pc => format!("jump to {pc:#010x} without the Thumb bit"),
        }
    }

    fn by_instruction(&self) -> Option<String> {
        if self.context.xpsr.is_some_and(|xpsr| xpsr & (1 << 24) == 0) {
            return Some(self.jump_without_thumb());
        }
        if !self.is_code {
            return Some(match self.context.pc {
                0 => self.jump_to_null(),
                pc => format!("jump to {pc:#010x}, which holds no code"),
            });
        }
        match self.instruction? {
            Instruction::Access(access) => {
                let address = access.address(self.context.pc, |n| self.context.get(n));
                // Single bytes are never unaligned, but they are the exception.
                let odd = address.is_some_and(|address| address % 4 != 0 && self.is_word_access());
                let kind = if odd { "unaligned access" } else { "bus fault" };
                Some(format!("{kind} {}", self.access(None)))
            }
            Instruction::Undefined => Some(format!("undefined instruction{}", self.opcode())),
            Instruction::Breakpoint(number) => {
                Some(format!("breakpoint {number} without a debugger"))
            }
            Instruction::Supervisor(number) => {
                Some(format!("supervisor call {number} where none is allowed"))
            }
            Instruction::Divide => Some("division".to_owned()),
            Instruction::JumpTo(_) | Instruction::Other => {
                let fault = || format!("fault at instruction{}", self.opcode());
                Some(self.forbidden_call().unwrap_or_else(fault))
            }
        }
    }

    /// Tells of a supervisor call that has escalated, where the core goes on behind it.
    fn forbidden_call(&self) -> Option<String> {
        let code = self.before.filter(|code| code >> 8 == SUPERVISOR_CALL)?;
        Some(format!("supervisor call {} where none is allowed", code & 0xff))
    }

    /// Tells of the narrow instructions, all that the smallest cores have, whether one
    /// accesses whole words.
    fn is_word_access(&self) -> bool {
        self.first.is_some_and(|code| match code >> 12 {
            0b0101 => matches!(code >> 9 & 7, 0 | 4),
            0b0110 | 0b1001 | 0b1100 => true,
            _ => false,
        })
    }
}

fn by_status(site: &Site<'_>, status: &FaultStatus) -> Option<String> {
    let has = |bits| status.has(bits);
    if has(cfsr::STKOF) {
        return Some("stack overflow: the stack pointer passed its limit".to_owned());
    }
    if has(cfsr::UNDEFINSTR) {
        return Some(format!("undefined instruction{}", site.opcode()));
    }
    if has(cfsr::INVSTATE) {
        return Some(site.jump_without_thumb());
    }
    if has(cfsr::INVPC) {
        return Some("invalid exception return".to_owned());
    }
    if has(cfsr::NOCP) {
        return Some(format!("instruction{} for a coprocessor that is off", site.opcode()));
    }
    if has(cfsr::UNALIGNED) {
        return Some(format!("unaligned access {}", site.access(None)));
    }
    if has(cfsr::DIVBYZERO) {
        return Some("division by zero".to_owned());
    }
    if has(cfsr::PRECISERR) {
        return Some(format!("bus fault {}", site.access(status.bus_address())));
    }
    if has(cfsr::DACCVIOL) {
        return Some(format!(
            "memory protection fault {}",
            site.access(status.protected_address())
        ));
    }
    if has(cfsr::IBUSERR) {
        return Some(format!("bus fault fetching the instruction at {:#010x}", site.context.pc));
    }
    if has(cfsr::IACCVIOL) {
        return Some(format!("execution of {:#010x}, which is forbidden", site.context.pc));
    }
    if has(cfsr::IMPRECISERR) {
        return Some("bus fault of an earlier write, seen".to_owned());
    }
    if has(cfsr::STKERR | cfsr::MSTKERR | cfsr::LSPERR | cfsr::MLSPERR) {
        return Some("fault while saving registers on the stack".to_owned());
    }
    if has(cfsr::UNSTKERR | cfsr::MUNSTKERR) {
        return Some("fault while restoring registers from the stack".to_owned());
    }
    if let Some(told) = by_secure_status(site, status) {
        return Some(told);
    }
    let hard = status.hfsr.unwrap_or(0);
    if hard & hfsr::VECTTBL != 0 {
        return Some("fault reading the vector table".to_owned());
    }
    if hard & hfsr::DEBUGEVT != 0 {
        return Some("breakpoint without a debugger".to_owned());
    }
    None
}

fn by_secure_status(site: &Site<'_>, status: &FaultStatus) -> Option<String> {
    let has = |bits| status.has_secure(bits);
    if has(sfsr::AUVIOL) {
        let access = site.access(status.secure_address());
        return Some(format!("security fault {access}, which is secure"));
    }
    if has(sfsr::INVEP) {
        return Some("security fault: call of secure code where no entry is".to_owned());
    }
    if has(sfsr::INVTRAN) {
        return Some("security fault: branch from secure to non-secure code".to_owned());
    }
    (has(sfsr::INVIS | sfsr::INVER)).then(|| "security fault: invalid exception return".to_owned())
}

/// Tells whether the core stands in a handler that reports faults.
pub(crate) fn in_fault_handler(context: Option<&Context>) -> bool {
    context.is_some_and(|context| is_fault(context.exception()))
}

#[cfg(test)]
mod tests {
    use jig_model::post_mortem::PostMortem;

    use crate::{CoreKind, CoreSnapshot, MemoryRange, RegisterValue, Symbols, Why, explain};

    const STACK: u64 = 0x2000_0000;
    const CODE: u64 = 0x100;

    /// Tells the summary of a core that has just entered HardFault, from registers, one
    /// instruction and status registers: no image.
    fn summary(kind: CoreKind, frame: [u32; 8], code: [u16; 2], status: &[(u64, u32)]) -> String {
        story(kind, frame, code, status).summary
    }

    fn story(kind: CoreKind, frame: [u32; 8], code: [u16; 2], status: &[(u64, u32)]) -> PostMortem {
        let register = |name: &str, value: u32| RegisterValue {
            name: name.to_owned(),
            bits: 32,
            value: value.into(),
        };
        let words = |start, words: &[u32]| MemoryRange {
            start,
            bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        };
        let mut memory = vec![
            MemoryRange {
                start: CODE,
                bytes: code.iter().flat_map(|half| half.to_le_bytes()).collect(),
            },
            words(STACK, &frame),
        ];
        memory.extend(status.iter().map(|&(start, word)| words(start, &[word])));
        let snapshot = CoreSnapshot {
            kind,
            registers: vec![
                register("r4", 0x3000_0000),
                register("sp", STACK as u32),
                register("lr", 0xffff_fff9),
                register("pc", 0x200),
                register("xpsr", 0x0100_0003),
            ],
            memory,
        };
        explain(&snapshot, None, Why::Fault)
    }

    const THUMB: u32 = 0x0100_0000;

    #[test]
    fn the_smallest_cores_are_told_by_the_instruction() {
        let told = |regs: [u32; 4], code| {
            let [r0, r1, r2, r3] = regs;
            let frame = [r0, r1, r2, r3, 0, 0x81, CODE as u32, THUMB];
            summary(CoreKind::Armv6m, frame, code, &[])
        };
        let chain = "in 0x00000100 <- 0x00000080";
        for (regs, code, expected) in [
            ([0, 0, 0, 0x6000_0000], [0x681a, 0], "bus fault reading 0x60000000"),
            ([0, 0, 0, 0x6000_0000], [0x601a, 0], "bus fault writing 0x60000000"),
            ([0, 0, 0, 0x2000_0001], [0x681a, 0], "unaligned access reading 0x20000001"),
            ([0, 0, 0, 0x2000_0001], [0x781a, 0], "bus fault reading 0x20000001"),
            ([0; 4], [0x6820, 0], "bus fault reading 0x30000000"),
            ([0; 4], [0xbe05, 0], "breakpoint 5 without a debugger"),
            ([0; 4], [0xdf01, 0], "supervisor call 1 where none is allowed"),
            ([0; 4], [0xde2a, 0], "undefined instruction 0xde2a"),
            ([0; 4], [0xf7f0, 0xa000], "undefined instruction 0xf7f0 0xa000"),
            ([0; 4], [0xbf00, 0], "fault at instruction 0xbf00"),
        ] {
            assert_eq!(told(regs, code), format!("HardFault: {expected} {chain}"));
        }
    }

    #[test]
    fn status_registers_come_before_the_instruction() {
        let told = |status: u32, more: &[(u64, u32)], xpsr: u32, pc: u32| {
            let mut words = vec![(0xe000_ed28, status), (0xe000_ed2c, 1 << 30)];
            words.extend(more);
            let frame = [0, 0, 0, 0x6000_0000, 0, 0x81, pc, xpsr];
            summary(CoreKind::Armv7m, frame, [0x681a, 0], &words)
        };
        let code = CODE as u32;
        let address = [(0xe000_ed34, 0x44), (0xe000_ed38, 0x48)];
        for (told, expected) in [
            (told(0x8200, &address, THUMB, code), "bus fault reading 0x00000048"),
            (told(0x0200, &address, THUMB, code), "bus fault reading 0x60000000"),
            (told(0x0082, &address, THUMB, code), "memory protection fault reading 0x00000044"),
            (told(1 << 25, &[], THUMB, code), "division by zero"),
            (told(1 << 24, &[], THUMB, code), "unaligned access reading 0x60000000"),
            (told(1 << 17, &[], 0, 0), "call of a null pointer"),
            (told(1 << 17, &[], 0, 0x42), "jump to 0x00000042 without the Thumb bit"),
            (told(1 << 18, &[], THUMB, code), "invalid exception return"),
            (told(1 << 19, &[], THUMB, code), "instruction 0x681a for a coprocessor that is off"),
            (told(1 << 10, &[], THUMB, code), "bus fault of an earlier write, seen"),
            (told(1 << 20, &[], THUMB, code), "stack overflow: the stack pointer passed its limit"),
            (told(1, &[], THUMB, code), "execution of 0x00000100, which is forbidden"),
        ] {
            assert!(told.starts_with(&format!("HardFault: {expected} in ")), "{told}: {expected}");
        }
        // What an interrupt has entered by its vector returns by the link register.
        let entered = [0, 0, 0, 0, 0, 0xffff_fff9, 0, 15];
        let told = summary(CoreKind::Armv7m, entered, [0, 0], &[(0xe000_ed28, 1 << 17)]);
        assert!(told.starts_with("HardFault: null vector of SysTick in "), "{told}");
    }

    #[test]
    fn a_core_that_hides_where_it_locked_up_tells_what_was_before() {
        let frame = [0, 0, 0, 0x6000_0000, 0, 0x81, CODE as u32, THUMB];
        let registers = [("sp", STACK as u32), ("lr", 0xffff_fff9), ("pc", 0xffff_fffe)];
        let mut registers: Vec<_> = registers
            .into_iter()
            .map(|(name, value)| RegisterValue {
                name: name.to_owned(),
                bits: 32,
                value: value.into(),
            })
            .collect();
        registers.push(RegisterValue { name: "xpsr".to_owned(), bits: 32, value: 0x0100_0003 });
        let snapshot = CoreSnapshot {
            kind: CoreKind::Armv6m,
            registers,
            memory: vec![
                MemoryRange { start: CODE, bytes: vec![0x1a, 0x60] },
                MemoryRange {
                    start: STACK,
                    bytes: frame.iter().flat_map(|word: &u32| word.to_le_bytes()).collect(),
                },
            ],
        };
        let story = explain(&snapshot, None, Why::LockUp);
        assert!(story.summary.starts_with("lock-up in "), "{story:#?}");
        let before = "before: bus fault writing 0x60000000";
        assert!(story.status.iter().any(|line| line == before), "{story:#?}");
    }

    #[test]
    fn a_lock_up_names_where_the_handler_has_failed() {
        use crate::debug_info::tests::emulated::{RISCV, fixture};
        use crate::post_mortem::Since;
        let elf = std::fs::read(fixture(RISCV, "fault-silent")).unwrap();
        let symbols = Symbols::load(&elf).unwrap();
        let at = symbols.address_of("trap_report").and_then(|at| u32::try_from(at).ok());
        let frame = [0, 0, 0, 0x6000_0000, 0, 0x81, CODE as u32, THUMB];
        let story = || story(CoreKind::Armv6m, frame, [0x601a, 0], &[]);
        let told = |at| Since::LockedUp(at).continue_story(story(), Some(&symbols)).summary;
        assert!(told(at).starts_with("lock-up in trap_report"), "{}", told(at));
        for hidden in [None, Some(0xffff_fffe)] {
            assert!(told(hidden).starts_with("lock-up after HardFault: "), "{}", told(hidden));
        }
    }

    #[test]
    fn a_stack_that_was_not_captured_is_not_called_outside_of_memory() {
        let dump = "R00=00000000 R01=00000000 R02=00000000 R03=00000000\n\
                    R04=00000000 R05=00000000 R06=00000000 R07=00000000\n\
                    R08=00000000 R09=00000000 R10=00000000 R11=00000000\n\
                    R12=00000000 R13=2000fed8 R14=fffffff9 R15=00000000\n\
                    XPSR=60000003 -ZC- A handler\n";
        let snapshot = crate::parse_register_dump(dump).unwrap();
        assert_eq!(
            explain(&snapshot, None, Why::LockUp).summary,
            "lock-up: null vector of HardFault in 0x00000000; after fault of unknown cause (registers at \
             0x2000fed8, not captured)"
        );
    }
}
