//! Requests to a core: run control, registers, memory, breakpoints, snapshots.

use std::ops::Range;
use std::time::Duration;

use probe_rs::{
    BreakpointError, Core, CoreInterface, CoreRegister, CoreStatus, CoreType, Error,
    HaltReason as Reason, MemoryInterface, RegisterId, RegisterRole, RegisterValue as Value,
};

use super::open_session::{OpenSession, WorkerPulse};
use super::translate;
use crate::ranges::merged;
use crate::{
    CoreKind, CoreSnapshot, CoreState, HaltReason, MemoryRange, MemoryWidth, ProbeError,
    RegisterValue, ResetInto,
};

/// How long a core may take to halt: it finishes one instruction, and a bus access at most.
const HALT: Duration = Duration::from_millis(500);

/// How long a reset may take to bring the core to its first instruction. Boot ROMs take part
/// of it; the drivers of probe-rs allow as much.
pub(crate) const RESET: Duration = Duration::from_millis(500);

/// How long probe-rs waits for a step.
pub(crate) const STEP: Duration = Duration::from_millis(100);

/// How much is read or written between two signs of life.
pub(crate) const CHUNK: usize = 16 * 1024;

/// The fault status registers of Cortex-M, with the vector table's address and the
/// configuration that explains them: system control block, ARMv7-M manual B3.2.
const FAULT_STATUS: Range<u64> = 0xE000_ED00..0xE000_ED40;

/// Where the special registers share one, as debuggers read it: ARMv7-M manual C1.6.3.
const SPECIAL: &str = "extra";

/// Returns the kind of a core, where it is one of those that this crate knows.
pub(crate) fn kind_of(core: CoreType) -> Option<CoreKind> {
    match core {
        CoreType::Armv6m => Some(CoreKind::Armv6m),
        CoreType::Armv7m | CoreType::Armv7em => Some(CoreKind::Armv7m),
        CoreType::Armv8m => Some(CoreKind::Armv8m),
        CoreType::Riscv => Some(CoreKind::Riscv32),
        _ => None,
    }
}

/// Tells whether a core has the debug registers of Cortex-M.
pub(crate) fn is_cortex_m(kind: Option<CoreKind>) -> bool {
    matches!(kind, Some(CoreKind::Armv6m | CoreKind::Armv7m | CoreKind::Armv8m))
}

impl OpenSession {
    /// Resets the chip.
    pub(crate) fn reset(&mut self, into: ResetInto) -> Result<(), ProbeError> {
        let mut core = self.core()?;
        match into {
            ResetInto::Run => core.reset(),
            ResetInto::Halt => core.reset_and_halt(RESET).map(drop),
        }
        .map_err(|error| translate::core("reset", RESET, error))
    }

    /// Halts the core.
    pub(crate) fn halt(&mut self) -> Result<u64, ProbeError> {
        let halted = self.core()?.halt(HALT);
        halted.map(|info| info.pc).map_err(|error| translate::core("halt", HALT, error))
    }

    /// Lets the core run; one that runs goes on.
    pub(crate) fn run(&mut self) -> Result<(), ProbeError> {
        let mut core = self.core()?;
        let halted = core.core_halted().map_err(|error| translate::failed("run", error))?;
        if halted {
            core.run().map_err(|error| translate::core("run", STEP, error))
        } else {
            Ok(())
        }
    }

    /// Executes one instruction.
    pub(crate) fn step(&mut self) -> Result<u64, ProbeError> {
        let mut core = self.halted_core()?;
        let stepped = core.step();
        stepped.map(|info| info.pc).map_err(|error| translate::core("step", STEP, error))
    }

    /// Returns what the core does.
    pub(crate) fn state(&mut self) -> Result<CoreState, ProbeError> {
        let mut core = self.core()?;
        let failed = |error| translate::failed("reading the core's state", error);
        // It fails where a program calls its host with a parameter that points nowhere, but
        // not a second time.
        let status = core.status().or_else(|_| core.status());
        Ok(match status.map_err(failed)? {
            CoreStatus::Running | CoreStatus::Unknown => CoreState::Running,
            CoreStatus::LockedUp => CoreState::LockedUp,
            CoreStatus::Sleeping => CoreState::Sleeping,
            CoreStatus::Halted(reason) => {
                let counter = core.program_counter().id();
                let pc: u64 = core.read_core_reg(counter).map_err(failed)?;
                CoreState::Halted { reason: halt_reason(reason), pc }
            }
        })
    }

    fn halted_core(&mut self) -> Result<Core<'_>, ProbeError> {
        let mut core = self.core()?;
        let halted = core.core_halted().map_err(|error| translate::failed("halt", error))?;
        if halted { Ok(core) } else { Err(ProbeError::NotHalted) }
    }

    /// Reads all registers.
    pub(crate) fn registers(&mut self) -> Result<Vec<RegisterValue>, ProbeError> {
        read_registers(&mut self.halted_core()?)
    }

    /// Writes a register.
    pub(crate) fn write_register(&mut self, name: &str, value: u128) -> Result<(), ProbeError> {
        let mut core = self.halted_core()?;
        let kind = kind_of(core.core_type());
        let wanted = match name.to_ascii_lowercase().as_str() {
            "r13" => "sp".to_owned(),
            "r14" => "lr".to_owned(),
            "r15" => "pc".to_owned(),
            other => other.to_owned(),
        };
        let failed = |error| translate::failed("writing a register", error);
        let described = described(&mut core)?;
        if let Some((byte, id)) = special_byte(kind, &wanted).zip(special_register(&described)) {
            let both: u32 = core.read_core_reg(id).map_err(failed)?;
            let value = u32::from(u8::try_from(value).map_err(|_| too_wide(name, value))?);
            let both = (both & !(0xff << (8 * byte))) | (value << (8 * byte));
            return core.write_core_reg(id, both).map_err(failed);
        }
        let register = described.iter().find(|register| spelled(register) == wanted);
        let Some(register) = register.filter(|register| spelled(register) != SPECIAL) else {
            let mut names: Vec<String> = described.iter().map(spelled).collect();
            names.extend(special_names(kind).iter().map(|name| (*name).to_owned()));
            names.retain(|name| name != SPECIAL && strsim::jaro_winkler(name, &wanted) > 0.7);
            names.truncate(4);
            return Err(ProbeError::UnknownRegister { name: name.to_owned(), nearest: names });
        };
        let value = match register.size_in_bits() {
            0..=32 => Value::U32(u32::try_from(value).map_err(|_| too_wide(name, value))?),
            33..=64 => Value::U64(u64::try_from(value).map_err(|_| too_wide(name, value))?),
            _ => Value::U128(value),
        };
        core.write_core_reg(register.id(), value).map_err(failed)
    }

    /// Reads memory.
    pub(crate) fn read(
        &mut self,
        width: MemoryWidth,
        address: u64,
        len: usize,
        pulse: &WorkerPulse,
    ) -> Result<Vec<u8>, ProbeError> {
        check_alignment(width, address, len)?;
        let mut core = self.core()?;
        check_reach(&core, address, len)?;
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let count = CHUNK.min(len - bytes.len());
            let here = address + bytes.len() as u64;
            let mut chunk = vec![0; count];
            read_as(&mut core, width, here, &mut chunk).map_err(
                |error| match translate::access("read", here, error) {
                    ProbeError::BusFault { .. } => ProbeError::BusFault {
                        access: "read",
                        address: first_refused(&mut core, width, here, count),
                    },
                    other => other,
                },
            )?;
            bytes.append(&mut chunk);
            pulse.beat();
        }
        Ok(bytes)
    }

    /// Writes memory.
    pub(crate) fn write(
        &mut self,
        width: MemoryWidth,
        address: u64,
        bytes: &[u8],
        pulse: &WorkerPulse,
    ) -> Result<(), ProbeError> {
        check_alignment(width, address, bytes.len())?;
        let mut core = self.core()?;
        check_reach(&core, address, bytes.len())?;
        let mut here = address;
        for chunk in bytes.chunks(CHUNK) {
            write_as(&mut core, width, here, chunk)
                .and_then(|()| core.flush())
                .map_err(|error| translate::access("write", here, error))?;
            here += chunk.len() as u64;
            pulse.beat();
        }
        Ok(())
    }

    /// Sets a hardware breakpoint.
    pub(crate) fn set_breakpoint(&mut self, address: u64) -> Result<(), ProbeError> {
        let mut core = self.core()?;
        let kind = kind_of(core.core_type());
        if kind.is_some_and(|kind| !may_break_at(kind, address)) {
            return Err(ProbeError::NoBreakpointAt { address });
        }
        let failed = |error| translate::breakpoint(address, error);
        // A comparator forgets nothing when breakpoints are off, so look before asking.
        let units = CoreInterface::hw_breakpoints(&mut core).map_err(failed)?;
        let taken = |unit: &Option<u64>| unit.is_some_and(|at| at != address);
        if units.iter().all(taken) {
            return Err(ProbeError::NoBreakpointLeft { count: units.len() as u32 });
        }
        core.set_hw_breakpoint(address).map_err(failed)
    }

    /// Clears a hardware breakpoint.
    pub(crate) fn clear_breakpoint(&mut self, address: u64) -> Result<(), ProbeError> {
        match self.core()?.clear_hw_breakpoint(address) {
            Err(Error::BreakpointOperation(BreakpointError::NotFound(_))) => Ok(()),
            other => other.map_err(|error| translate::failed("clearing a breakpoint", error)),
        }
    }

    /// Reads a halted core and memory.
    pub(crate) fn snapshot(
        &mut self,
        wanted: &[Range<u64>],
        pulse: &WorkerPulse,
    ) -> Result<CoreSnapshot, ProbeError> {
        let mut core = self.halted_core()?;
        let Some(kind) = kind_of(core.core_type()) else {
            return Err(ProbeError::Failed {
                what: "a snapshot was not taken".to_owned(),
                source: format!("{:?} cores are not known", core.core_type()).into(),
            });
        };
        let registers = read_registers(&mut core)?;
        drop(core);
        let fault_status = is_cortex_m(Some(kind)).then_some(FAULT_STATUS);
        let mut memory = Vec::new();
        for range in merged(wanted.iter().cloned().chain(fault_status)) {
            let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
            match self.read(MemoryWidth::Any, range.start, len, pulse) {
                Ok(bytes) => memory.push(MemoryRange { start: range.start, bytes }),
                // What lies before the refused address is kept.
                Err(ProbeError::BusFault { address, .. }) if address > range.start => {
                    let len = usize::try_from(address - range.start).unwrap_or(usize::MAX);
                    let bytes = self.read(MemoryWidth::Any, range.start, len, pulse)?;
                    memory.push(MemoryRange { start: range.start, bytes });
                }
                Err(ProbeError::BusFault { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(CoreSnapshot { kind, registers, memory })
    }
}

fn halt_reason(reason: Reason) -> HaltReason {
    match reason {
        Reason::Request | Reason::External => HaltReason::Requested,
        Reason::Breakpoint(_) => HaltReason::Breakpoint,
        Reason::Step => HaltReason::Step,
        Reason::Exception => HaltReason::VectorCatch,
        Reason::Watchpoint => HaltReason::Watchpoint,
        Reason::Multiple | Reason::Unknown => HaltReason::Unknown,
    }
}

/// Lists the registers that a core has.
fn described(core: &mut Core<'_>) -> Result<Vec<CoreRegister>, ProbeError> {
    let float =
        core.fpu_support().map_err(|error| translate::failed("reading registers", error))?;
    let is_float = |register: &CoreRegister| {
        register.register_has_role(RegisterRole::FloatingPoint)
            || register.register_has_role(RegisterRole::FloatingPointStatus)
    };
    Ok(core.registers().all_registers().filter(|one| float || !is_float(one)).copied().collect())
}

/// Spells a register's name as debuggers do.
fn spelled(register: &CoreRegister) -> String {
    let name = register.name().to_ascii_lowercase();
    match name.as_str() {
        "r13" if register.register_has_role(RegisterRole::StackPointer) => "sp".to_owned(),
        "r14" if register.register_has_role(RegisterRole::ReturnAddress) => "lr".to_owned(),
        "r15" if register.register_has_role(RegisterRole::ProgramCounter) => "pc".to_owned(),
        _ => name,
    }
}

/// The special registers that share one, lowest byte first.
fn special_names(kind: Option<CoreKind>) -> &'static [&'static str] {
    match kind {
        Some(CoreKind::Armv6m) => &["primask", "", "", "control"],
        Some(CoreKind::Armv7m | CoreKind::Armv8m) => {
            &["primask", "basepri", "faultmask", "control"]
        }
        _ => &[],
    }
}

fn special_byte(kind: Option<CoreKind>, name: &str) -> Option<usize> {
    special_names(kind).iter().position(|special| *special == name && !name.is_empty())
}

fn special_register(described: &[CoreRegister]) -> Option<RegisterId> {
    described.iter().find(|register| spelled(register) == SPECIAL).map(CoreRegister::id)
}

fn too_wide(name: &str, value: u128) -> ProbeError {
    ProbeError::BadOption {
        name: format!("the value of {name}"),
        value: format!("{value:#x}"),
        wanted: "as wide as the register",
    }
}

fn read_registers(core: &mut Core<'_>) -> Result<Vec<RegisterValue>, ProbeError> {
    let kind = kind_of(core.core_type());
    let mut registers = Vec::new();
    for register in described(core)? {
        let value: Value = core
            .read_core_reg(register.id())
            .map_err(|error| translate::failed("reading registers", error))?;
        let value = match value {
            Value::U32(value) => u128::from(value),
            Value::U64(value) => u128::from(value),
            Value::U128(value) => value,
        };
        let name = spelled(&register);
        if name == SPECIAL {
            let bytes = (value as u32).to_le_bytes();
            for (name, byte) in
                special_names(kind).iter().zip(bytes).filter(|one| !one.0.is_empty())
            {
                let value = u128::from(byte);
                registers.push(RegisterValue { name: (*name).to_owned(), bits: 8, value });
            }
        } else {
            registers.push(RegisterValue { name, bits: register.size_in_bits() as u16, value });
        }
    }
    // Debuggers show the numbered registers first, then sp, lr, pc; the description has pc
    // and the frame pointer before them.
    registers.sort_by_key(|register| rank(&register.name));
    Ok(registers)
}

/// Where a register stands when all are shown; equals keep their order.
fn rank(name: &str) -> usize {
    let number = |prefix: char| name.strip_prefix(prefix)?.parse::<usize>().ok();
    match name {
        "sp" => 13,
        "lr" => 14,
        "pc" => 15,
        "xpsr" => 16,
        _ => number('r').filter(|number| *number < 13).unwrap_or(17),
    }
}

fn read_as(
    core: &mut Core<'_>,
    width: MemoryWidth,
    address: u64,
    bytes: &mut [u8],
) -> Result<(), Error> {
    match width {
        MemoryWidth::Any => core.read(address, bytes),
        MemoryWidth::Byte => core.read_8(address, bytes),
        MemoryWidth::Half => {
            let mut words = vec![0u16; bytes.len() / 2];
            core.read_16(address, &mut words)?;
            for (to, from) in bytes.chunks_exact_mut(2).zip(words) {
                to.copy_from_slice(&from.to_le_bytes());
            }
            Ok(())
        }
        MemoryWidth::Word => {
            let mut words = vec![0u32; bytes.len() / 4];
            core.read_32(address, &mut words)?;
            for (to, from) in bytes.chunks_exact_mut(4).zip(words) {
                to.copy_from_slice(&from.to_le_bytes());
            }
            Ok(())
        }
    }
}

fn write_as(
    core: &mut Core<'_>,
    width: MemoryWidth,
    address: u64,
    bytes: &[u8],
) -> Result<(), Error> {
    match width {
        MemoryWidth::Any => core.write(address, bytes),
        MemoryWidth::Byte => core.write_8(address, bytes),
        MemoryWidth::Half => {
            let words = bytes
                .chunks_exact(2)
                .filter_map(|two| Some(u16::from_le_bytes(two.try_into().ok()?)));
            core.write_16(address, &words.collect::<Vec<_>>())
        }
        MemoryWidth::Word => {
            let words = bytes
                .chunks_exact(4)
                .filter_map(|four| Some(u32::from_le_bytes(four.try_into().ok()?)));
            core.write_32(address, &words.collect::<Vec<_>>())
        }
    }
}

/// Finds the first unit that the bus refuses, in a block that it refused: by halves.
fn first_refused(core: &mut Core<'_>, width: MemoryWidth, address: u64, len: usize) -> u64 {
    let unit = match width {
        MemoryWidth::Byte => 1,
        MemoryWidth::Half => 2,
        MemoryWidth::Any | MemoryWidth::Word => 4,
    };
    let (mut start, mut units) = (address, len.div_ceil(unit));
    while units > 1 {
        let half = units / 2;
        let mut probe = vec![0; (half * unit).min(len)];
        if read_as(core, width, start, &mut probe).is_err() {
            units = half;
        } else {
            start += (half * unit) as u64;
            units -= half;
        }
    }
    start
}

/// Tells whether a core can have a hardware breakpoint at an address.
fn may_break_at(kind: CoreKind, address: u64) -> bool {
    let reach = match kind {
        // Comparators have no more bits: ARMv6-M manual C1.8.4.
        CoreKind::Armv6m => 0x2000_0000,
        CoreKind::Armv7m | CoreKind::Armv8m | CoreKind::Riscv32 => 1 << 32,
    };
    address.is_multiple_of(2) && address < reach
}

/// Checks that a core of 32 bits has the addresses.
fn check_reach(core: &Core<'_>, address: u64, len: usize) -> Result<(), ProbeError> {
    let last = address.saturating_add((len as u64).saturating_sub(1));
    if kind_of(core.core_type()).is_some() && last > u64::from(u32::MAX) {
        return Err(ProbeError::BadOption {
            name: "the memory range".to_owned(),
            value: format!("{address:#x}, {len} bytes"),
            wanted: "within the 32 bits of the core's addresses",
        });
    }
    Ok(())
}

fn check_alignment(width: MemoryWidth, address: u64, len: usize) -> Result<(), ProbeError> {
    let unit = match width {
        MemoryWidth::Any | MemoryWidth::Byte => 1,
        MemoryWidth::Half => 2,
        MemoryWidth::Word => 4,
    };
    let aligned = address.is_multiple_of(unit) && (len as u64).is_multiple_of(unit);
    if address.checked_add(len as u64).is_none() || !aligned {
        return Err(ProbeError::BadOption {
            name: "the memory range".to_owned(),
            value: format!("{address:#x}, {len} bytes"),
            wanted: "aligned to the access width and inside the address space",
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_stand_in_the_order_of_debuggers() {
        let mut names = ["pc", "r7", "sp", "r0", "r12", "msp", "xpsr", "s1"];
        names.sort_by_key(|name| rank(name));
        assert_eq!(names, ["r0", "r7", "r12", "sp", "pc", "xpsr", "msp", "s1"]);
    }

    #[test]
    fn breakpoints_are_at_instructions_that_a_comparator_reaches() {
        assert!(may_break_at(CoreKind::Armv6m, 0x1fff_fffe));
        assert!(!may_break_at(CoreKind::Armv6m, 0x2000_0000));
        assert!(may_break_at(CoreKind::Armv7m, 0x2000_0000));
        assert!(!may_break_at(CoreKind::Armv7m, 0x0800_0001));
        assert!(!may_break_at(CoreKind::Armv8m, 1 << 32));
    }

    #[test]
    fn widths_want_their_alignment() {
        assert!(check_alignment(MemoryWidth::Word, 0x2000_0002, 4).is_err());
        assert!(check_alignment(MemoryWidth::Half, 0x2000_0002, 4).is_ok());
        assert!(check_alignment(MemoryWidth::Half, 0x2000_0002, 3).is_err());
        assert!(check_alignment(MemoryWidth::Any, 1, 3).is_ok());
        assert!(check_alignment(MemoryWidth::Any, u64::MAX, 3).is_err());
    }
}
