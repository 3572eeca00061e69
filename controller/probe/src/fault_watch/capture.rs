//! Copies registers and memory of a machine that stands.

use std::ops::Range;

use jig_drivers::qemu::debug::{ChannelError, DebugChannels, Packets, Stop};
use jig_model::profile::{BoardProfile, DebugCore, DebugSpec, MemoryKind};

use crate::debug_info::ExcReturn;
use crate::riscv::parse_registers;
use crate::{CoreKind, CoreSnapshot, MemoryRange, RegisterValue, parse_register_dump};

/// RAM that is copied of each region: all of small ones; of large ones the start, where
/// data lies, and what is around the stack pointer.
const WHOLE: u64 = 256 << 10;
const DATA: u64 = 64 << 10;
const BELOW_STACK: u64 = 1 << 10;
const STACK: u64 = 64 << 10;
/// Stack that is copied by the stub, which needs a packet for each two KiB.
const SECURE_STACK: u64 = 8 << 10;

/// The system control block: interrupt state, vector table, fault status and addresses.
const SYSTEM_CONTROL: (u32, usize) = (0xe000_ed00, 64);

/// One bit for each interrupt.
const ACTIVE_INTERRUPTS: (u32, usize) = (0xe000_e300, 64);

/// One byte for each of the first interrupts.
const PRIORITIES: (u32, usize) = (0xe000_e400, 240);

/// Status and address of secure faults.
const SECURE_FAULT: (u32, usize) = (0xe000_ede4, 8);

/// Registers in the order of the stub's `g` answer.
const NAMES: [&str; 17] = [
    "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "sp", "lr",
    "pc", "xpsr",
];
pub(super) const SP: usize = 13;
const LR: usize = 14;
pub(crate) const PC: usize = 15;
pub(crate) const XPSR: usize = 16;

/// Number of the exception in the program status.
pub(super) const EXCEPTION: u32 = 0x1ff;

/// Where an exception pushes the return address and the status, from the stack pointer behind the
/// entry.
const STACKED_PC: u32 = 0x18;

/// Returns the rules that a core follows.
fn core_kind(spec: &DebugSpec) -> CoreKind {
    match spec.core {
        DebugCore::Armv6m => CoreKind::Armv6m,
        DebugCore::Armv7m | DebugCore::Armv7em | DebugCore::Armv7emFpu => CoreKind::Armv7m,
    }
}

/// Copies what explains where a RISC-V machine stands.
pub(super) fn capture_riscv(
    channels: &mut DebugChannels,
    profile: &BoardProfile,
) -> Result<CoreSnapshot, ChannelError> {
    let mut snapshot = registers_riscv(channels)?;
    let sp = snapshot.register("sp").and_then(|value| u32::try_from(value).ok());
    let stacks: Vec<u32> = sp.into_iter().collect();
    snapshot.memory = ram(channels, profile, &stacks)?;
    Ok(snapshot)
}

/// Reads the registers of a RISC-V machine, without memory.
pub(super) fn registers_riscv(channels: &mut DebugChannels) -> Result<CoreSnapshot, ChannelError> {
    // The stub gives no control registers by name before it is asked for long descriptions; the
    // monitor prints them all.
    let text = channels.monitor.ask("info registers")?;
    parse_registers(&text).ok_or_else(|| ChannelError::Garbled {
        channel: "monitor",
        answer: text.chars().take(200).collect(),
    })
}

fn ram(
    channels: &mut DebugChannels,
    profile: &BoardProfile,
    stacks: &[u32],
) -> Result<Vec<MemoryRange>, ChannelError> {
    let mut memory = Vec::new();
    for region in profile.memory.iter().filter(|region| region.kind == MemoryKind::Ram) {
        for (start, end) in windows(region.start, region.start + region.size, stacks) {
            memory.push(copy(channels, start, end)?);
        }
    }
    Ok(memory)
}

/// An emulated Cortex-M, as far as its profile tells.
#[derive(Debug, Clone)]
pub(super) struct CortexM {
    pub(super) kind: CoreKind,
    /// RAM that may be borrowed to read the registers that the stub does not show.
    scratch: Option<u32>,
}

impl CortexM {
    pub(super) fn of(spec: &DebugSpec) -> Self {
        Self { kind: core_kind(spec), scratch: Some(spec.scratch) }
    }

    /// Takes the core of a machine whose profile says nothing of debugging; nothing if it is none.
    pub(super) fn ask(channels: &mut DebugChannels) -> Result<Option<Self>, ChannelError> {
        let registers = parse_register_dump(&channels.monitor.ask("info registers")?);
        Ok(registers.map(|registers| Self { kind: registers.kind, scratch: None }))
    }

    /// Reads the general registers and the program status.
    fn registers(&self, channels: &mut DebugChannels) -> Result<[u32; 17], ChannelError> {
        // The stub leaves the status register out until the others have been read.
        channels.gdb.description("target.xml")?;
        channels.gdb.registers()
    }

    /// Returns the number of the exception that the core executes, 0 for none.
    pub(super) fn exception(&self, channels: &mut DebugChannels) -> Result<u32, ChannelError> {
        Ok(self.registers(channels)?[XPSR] & EXCEPTION)
    }

    /// Copies what explains where the machine stands.
    pub(super) fn capture(
        &self,
        channels: &mut DebugChannels,
        profile: &BoardProfile,
    ) -> Result<CoreSnapshot, ChannelError> {
        let values = self.registers(channels)?;
        let mut registers: Vec<RegisterValue> =
            NAMES.iter().zip(values).map(|(name, value)| register(name, value)).collect();
        let mut stacks = vec![values[SP]];
        let wanted = if self.kind == CoreKind::Armv6m { &BANKED[..4] } else { &BANKED[..] };
        // The core can execute what it stands at, if anything.
        let places = [Some(values[PC]), self.scratch];
        for place in places.into_iter().flatten() {
            match banked_registers(channels, place, &values, wanted)? {
                Banked::Read(banked) => {
                    // The other stack holds what a handler interrupted, or what the threads are
                    // switched by.
                    stacks.extend(&banked[..2]);
                    let named = wanted.iter().map(|&(name, _)| name).zip(banked);
                    registers.extend(named.map(|(name, value)| register(name, value)));
                    break;
                }
                Banked::CoreWaits => break,
                Banked::NoCode => {}
            }
        }
        let mut memory = match self.kind {
            // The bus channel sees what the core sees without its security.
            CoreKind::Armv8m => secure_ram(channels, profile, &stacks)?,
            _ => ram(channels, profile, &stacks)?,
        };
        memory.extend(system_registers(channels, SYSTEM_CONTROL)?);
        if self.kind != CoreKind::Armv6m {
            memory.extend(system_registers(channels, ACTIVE_INTERRUPTS)?);
            memory.extend(system_registers(channels, PRIORITIES)?);
        }
        if self.kind == CoreKind::Armv8m {
            memory.extend(system_registers(channels, SECURE_FAULT)?);
        }
        memory.sort_by_key(|range| range.start);
        Ok(CoreSnapshot { kind: self.kind, registers, memory })
    }

    /// Finds the frame that the entry of an exception has pushed, at the first instruction of its
    /// handler; nothing where the stack pointer is not known.
    pub(super) fn frame(
        &self,
        channels: &mut DebugChannels,
        profile: &BoardProfile,
        registers: &[u32; 17],
    ) -> Result<Option<u32>, ChannelError> {
        if !ExcReturn::of(registers[LR]).is_some_and(ExcReturn::uses_psp) {
            return Ok(Some(registers[SP]));
        }
        let snapshot = self.capture(channels, profile)?;
        Ok(snapshot.register("psp").and_then(|psp| u32::try_from(psp).ok()))
    }

    /// Reads from a frame where the handler returns to, and which exception is executed there, 0 for
    /// none; nothing outside of memory, and where the memory protection unit refuses the stack.
    pub(super) fn stacked(
        &self,
        channels: &mut DebugChannels,
        profile: &BoardProfile,
        frame: u32,
    ) -> Result<Option<(u32, u32)>, ChannelError> {
        let place = u64::from(frame) + u64::from(STACKED_PC);
        if !profile.holds(place, place + 8) {
            return Ok(None);
        }
        let mut read = |at: u64| match word(channels, at as u32) {
            Err(ChannelError::Refused { .. }) => Ok(None),
            word => word.map(Some),
        };
        let (pc, status) = (read(place)?, read(place + 4)?);
        Ok(pc.zip(status).map(|(pc, status)| (pc & !1, status & EXCEPTION)))
    }

    /// Reads where the vector table is now, and the handlers of faults in it: hard fault and, where
    /// the core has them, memory, bus, usage and secure faults. None while unprivileged code is executed,
    /// which may not read where the table is.
    pub(super) fn fault_handlers(
        &self,
        channels: &mut DebugChannels,
        profile: &BoardProfile,
    ) -> Result<Vec<u32>, ChannelError> {
        const VECTOR_TABLE: u32 = 0xe000_ed08;
        let count = match self.kind {
            CoreKind::Armv6m => 1,
            CoreKind::Armv8m => 5,
            _ => 4,
        };
        let table = match self.kind {
            // M0 has no such register; its table is at 0.
            CoreKind::Armv6m => 0,
            _ => match word(channels, VECTOR_TABLE) {
                Err(ChannelError::Refused { .. }) => return Ok(Vec::new()),
                table => table?,
            },
        };
        let mut vectors = vec![0; 4 * count];
        let first = table.wrapping_add(4 * 3);
        match self.kind {
            // The bus channel sees what the core sees without its security.
            CoreKind::Armv8m => channels.gdb.read_memory(first, &mut vectors)?,
            // The core may have no access: a guard against null pointers lies over them.
            _ => channels.qtest.read_bytes(first, &mut vectors)?,
        }
        // A handler is Thumb code in memory; anything else is an empty table.
        let mut handlers: Vec<u32> = words(&vectors)
            .filter(|vector| vector & 1 == 1)
            .map(|vector| vector & !1)
            .filter(|&start| profile.holds(u64::from(start), u64::from(start) + 2))
            .collect();
        handlers.sort_unstable();
        handlers.dedup();
        Ok(handlers)
    }
}

/// Reads a word as the core sees it.
pub(super) fn word(channels: &mut DebugChannels, address: u32) -> Result<u32, ChannelError> {
    let mut bytes = [0; 4];
    channels.gdb.read_memory(address, &mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word))
}

/// Tells whether an interrupt is active; unprivileged code that is executed is none. (ARMv7-M manual B3.4.7.)
pub(super) fn irq_active(channels: &mut DebugChannels) -> Result<bool, ChannelError> {
    const IABR: u32 = 0xe000_e300;
    let mut active = [0; 64];
    match channels.gdb.read_memory(IABR, &mut active) {
        Err(ChannelError::Refused { .. }) => Ok(false),
        read => read.map(|()| active != [0; 64]),
    }
}

/// Copies the stacks of a core that may be in its secure state.
fn secure_ram(
    channels: &mut DebugChannels,
    profile: &BoardProfile,
    stacks: &[u32],
) -> Result<Vec<MemoryRange>, ChannelError> {
    let mut memory = Vec::new();
    for region in profile.memory.iter().filter(|region| region.kind == MemoryKind::Ram) {
        let region = region.start..region.start + region.size;
        for (start, end) in joined(around_stacks(&region, stacks, SECURE_STACK).collect()) {
            let mut bytes = vec![0; usize::try_from(end - start).unwrap_or(0)];
            match channels.gdb.read_memory(start as u32, &mut bytes) {
                Ok(()) => memory.push(MemoryRange { start, bytes }),
                // That of a stack which is not in use, and which this state may not read.
                Err(ChannelError::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(memory)
}

fn register(name: &str, value: u32) -> RegisterValue {
    RegisterValue { name: name.to_owned(), bits: 32, value: value.into() }
}

/// Registers that this emulator's stub does not show, and the instructions that copy them: `mrs r0, msp`,
/// and so on up to `r5`. The first four decide where threads are; Armv6-M has no others.
const BANKED: [(&str, u32); 6] = [
    ("msp", 0x8008_f3ef),
    ("psp", 0x8109_f3ef),
    ("primask", 0x8210_f3ef),
    ("control", 0x8314_f3ef),
    ("basepri", 0x8411_f3ef),
    ("faultmask", 0x8513_f3ef),
];

/// What became of reading the banked registers.
enum Banked {
    Read(Vec<u32>),
    /// There is no memory at the place, or the core cannot execute it.
    NoCode,
    /// The core waits for an interrupt: it executes no instruction before one is pending.
    CoreWaits,
}

/// Reads the banked registers: the core is made to copy them to `r0` and what follows by instructions
/// that are put at a place, and all is put back as it was. No breakpoint may be there. Unprivileged code
/// reads all but `control` as 0.
fn banked_registers(
    channels: &mut DebugChannels,
    place: u32,
    values: &[u32; 17],
    wanted: &[(&str, u32)],
) -> Result<Banked, ChannelError> {
    const THUMB: u32 = 1 << 24;
    const IN_AN_IF_THEN: u32 = 0x0600_fc00;
    const STEP: std::time::Duration = std::time::Duration::from_millis(20);
    let code: Vec<u8> = wanted.iter().flat_map(|(_, copy)| copy.to_le_bytes()).collect();
    let mut kept = vec![0; code.len()];
    let written = channels
        .gdb
        .read_memory(place, &mut kept)
        .and_then(|()| channels.gdb.write_memory(place, &code));
    match written {
        Err(ChannelError::Refused { .. }) => return Ok(Banked::NoCode),
        other => other?,
    }
    let mut before = Packets::default();
    before.write_register(XPSR as u32, values[XPSR] & !IN_AN_IF_THEN | THUMB);
    before.write_register(PC as u32, place);
    let mut stepped = true;
    for _ in wanted {
        stepped = channels.gdb.step(std::mem::take(&mut before), STEP)? == Stop::Trapped;
        if !stepped {
            break;
        }
    }
    let copied = channels.gdb.registers::<16>()?;
    let executed = stepped && copied[PC] == place.wrapping_add(code.len() as u32);
    let mut after = Packets::default();
    for number in (0..wanted.len()).chain([PC, XPSR]) {
        after.write_register(number as u32, values[number]);
    }
    channels.gdb.perform(&after)?;
    channels.gdb.write_memory(place, &kept)?;
    Ok(match executed {
        true => Banked::Read(copied[..wanted.len()].to_vec()),
        false if !stepped && copied[PC] == place => Banked::CoreWaits,
        false => Banked::NoCode,
    })
}

/// Chooses what to copy of a region.
pub(crate) fn windows(start: u64, end: u64, stacks: &[u32]) -> Vec<(u64, u64)> {
    if end - start <= WHOLE {
        return vec![(start, end)];
    }
    let region = start..end;
    let around = around_stacks(&region, stacks, STACK);
    joined(std::iter::once((start, start + DATA)).chain(around).collect())
}

/// Lists what is around the stack pointers that lie in a region.
fn around_stacks(
    region: &Range<u64>,
    stacks: &[u32],
    above: u64,
) -> impl Iterator<Item = (u64, u64)> {
    let inside = stacks.iter().map(|&sp| u64::from(sp)).filter(|sp| region.contains(sp));
    inside.map(move |sp| {
        (sp.saturating_sub(BELOW_STACK).max(region.start), (sp + above).min(region.end))
    })
}

/// Sorts ranges, and joins those that overlap.
fn joined(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, end) in ranges {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

fn copy(channels: &mut DebugChannels, start: u64, end: u64) -> Result<MemoryRange, ChannelError> {
    let mut bytes = vec![0; usize::try_from(end - start).unwrap_or(0)];
    // Cortex-M has 32-bit addresses; a region beyond them was refused with the profile.
    channels.qtest.read_bytes(u32::try_from(start).unwrap_or(u32::MAX), &mut bytes)?;
    Ok(MemoryRange { start, bytes })
}

/// Copies registers of the system; nothing of a core that executes unprivileged code, which may not read
/// them.
fn system_registers(
    channels: &mut DebugChannels,
    (start, len): (u32, usize),
) -> Result<Option<MemoryRange>, ChannelError> {
    let mut bytes = vec![0; len];
    match channels.gdb.read_memory(start, &mut bytes) {
        Err(ChannelError::Refused { .. }) => Ok(None),
        read => read.map(|()| Some(MemoryRange { start: start.into(), bytes })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_regions_are_copied_where_it_matters() {
        let region = (0x2000_0000, 0x2040_0000);
        let near_top = windows(region.0, region.1, &[0x203f_ff00]);
        assert_eq!(near_top, [(0x2000_0000, 0x2001_0000), (0x203f_fb00, 0x2040_0000)]);
        // Around the start both windows are one.
        assert_eq!(windows(region.0, region.1, &[0x2000_8000]), [(0x2000_0000, 0x2001_8000)]);
        assert_eq!(windows(region.0, region.1, &[0x1000]), [(0x2000_0000, 0x2001_0000)]);
        assert_eq!(windows(0, 0x4000, &[]), [(0, 0x4000)]);
    }
}
