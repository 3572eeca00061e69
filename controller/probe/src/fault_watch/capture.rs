//! Copies registers and memory of a machine that stands.

use jig_drivers::qemu::debug::{Access, ChannelError, DebugChannels, Packets};
use jig_model::profile::{BoardProfile, DebugCore, DebugSpec, MemoryKind};

use crate::riscv::parse_registers;
use crate::{CoreKind, CoreSnapshot, MemoryRange, RegisterValue};

/// RAM that is copied of each region: all of small ones; of large ones the start, where
/// data lies, and what is around the stack pointer.
const WHOLE: u64 = 256 << 10;
const DATA: u64 = 64 << 10;
const BELOW_STACK: u64 = 1 << 10;
const STACK: u64 = 64 << 10;

/// The system control block: interrupt state, vector table, fault status and addresses.
const SYSTEM_CONTROL: u32 = 0xe000_ed00;
const SYSTEM_CONTROL_WORDS: u32 = 16;

/// Registers in the order of the stub's `g` answer.
const NAMES: [&str; 17] = [
    "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "sp", "lr",
    "pc", "xpsr",
];
const SP: usize = 13;
const PC: usize = 15;
const XPSR: usize = 16;

/// Returns the rules that a core follows.
pub(super) fn core_kind(spec: &DebugSpec) -> CoreKind {
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
    // The stub gives no control registers by name before it is asked for long descriptions; the
    // monitor prints them all.
    let text = channels.monitor.ask("info registers")?;
    let mut snapshot = parse_registers(&text).ok_or_else(|| ChannelError::Garbled {
        channel: "monitor",
        answer: text.chars().take(200).collect(),
    })?;
    let sp = snapshot.register("sp").and_then(|value| u32::try_from(value).ok());
    let stacks: Vec<u32> = sp.into_iter().collect();
    snapshot.memory = ram(channels, profile, &stacks)?;
    Ok(snapshot)
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

/// Copies what explains where a Cortex-M machine stands.
pub(super) fn capture(
    channels: &mut DebugChannels,
    profile: &BoardProfile,
    spec: &DebugSpec,
) -> Result<CoreSnapshot, ChannelError> {
    // The stub leaves the status register out until the others have been read.
    channels.gdb.description("target.xml")?;
    let values = channels.gdb.registers::<17>()?;
    let mut registers: Vec<RegisterValue> =
        NAMES.iter().zip(values).map(|(name, value)| register(name, value)).collect();
    let mut stacks = vec![values[SP]];
    let banked = banked_registers(channels, spec, &values)?;
    registers.extend(BANKED.iter().zip(banked).map(|(name, value)| register(name, value)));
    // The other stack holds what a handler interrupted, or what the threads are switched by.
    stacks.extend_from_slice(&banked[..2]);
    let mut memory = ram(channels, profile, &stacks)?;
    memory.push(system_control(channels)?);
    memory.sort_by_key(|range| range.start);
    Ok(CoreSnapshot { kind: core_kind(spec), registers, memory })
}

/// Reads where the vector table is, and the handlers of faults in it: hard fault and, where
/// the core has them, memory, bus and usage faults.
pub(super) fn fault_handlers(
    channels: &mut DebugChannels,
    profile: &BoardProfile,
    spec: &DebugSpec,
) -> Result<Vec<u32>, ChannelError> {
    const VECTOR_TABLE: u32 = 0xe000_ed08;
    let table = match core_kind(spec) {
        // M0 has no such register; its table is at 0.
        CoreKind::Armv6m => 0,
        _ => channels.qtest.read(VECTOR_TABLE, Access::Word)?,
    };
    let entries: &[u32] = match core_kind(spec) {
        CoreKind::Armv6m => &[3],
        _ => &[3, 4, 5, 6],
    };
    let places: Vec<_> =
        entries.iter().map(|n| (table.wrapping_add(4 * n), Access::Word)).collect();
    let mut vectors = vec![0; places.len()];
    channels.qtest.read_each(&places, &mut vectors)?;
    // A handler is Thumb code in memory; anything else is an empty table.
    let mut handlers: Vec<u32> = vectors
        .into_iter()
        .filter(|vector| vector & 1 == 1)
        .map(|vector| vector & !1)
        .filter(|&start| profile.holds(u64::from(start), u64::from(start) + 2))
        .collect();
    handlers.sort_unstable();
    handlers.dedup();
    Ok(handlers)
}

fn register(name: &str, value: u32) -> RegisterValue {
    RegisterValue { name: name.to_owned(), bits: 32, value: value.into() }
}

/// Registers that this emulator's stub does not show, and that decide where threads are.
const BANKED: [&str; 4] = ["msp", "psp", "primask", "control"];

/// Reads the banked registers: the core is made to copy them to `r0` to `r3`, and put back as it
/// was. Unprivileged code reads the first three as 0.
fn banked_registers(
    channels: &mut DebugChannels,
    spec: &DebugSpec,
    values: &[u32; 17],
) -> Result<[u32; 4], ChannelError> {
    /// `mrs r0, msp`, `mrs r1, psp`, `mrs r2, primask`, `mrs r3, control`: 16 of the 32 bytes
    /// that may be borrowed.
    const MRS: [u32; 4] = [0x8008_f3ef, 0x8109_f3ef, 0x8210_f3ef, 0x8314_f3ef];
    const THUMB: u32 = 1 << 24;
    const IN_AN_IF_THEN: u32 = 0x0600_fc00;
    const STEP: std::time::Duration = std::time::Duration::from_secs(1);
    let at = |index: usize| spec.scratch.wrapping_add(4 * index as u32);
    let places: [_; 4] = std::array::from_fn(|index| (at(index), Access::Word));
    let mut kept = [0; 4];
    channels.qtest.read_each(&places, &mut kept)?;
    let put = |words: [u32; 4]| -> [_; 4] {
        std::array::from_fn(|index| (at(index), Access::Word, words[index]))
    };
    channels.qtest.write_each(&put(MRS))?;
    let mut before = Packets::default();
    before.write_register(XPSR as u32, values[XPSR] & !IN_AN_IF_THEN | THUMB);
    before.write_register(PC as u32, spec.scratch);
    for _ in MRS {
        channels.gdb.step(std::mem::take(&mut before), STEP)?;
    }
    let [r0, r1, r2, r3] = channels.gdb.registers::<4>()?;
    let mut after = Packets::default();
    for number in [0, 1, 2, 3, PC, XPSR] {
        after.write_register(number as u32, values[number]);
    }
    channels.gdb.perform(&after)?;
    channels.qtest.write_each(&put(kept))?;
    Ok([r0, r1, r2, r3])
}

/// Chooses what to copy of a region.
pub(crate) fn windows(start: u64, end: u64, stacks: &[u32]) -> Vec<(u64, u64)> {
    if end - start <= WHOLE {
        return vec![(start, end)];
    }
    let mut wanted = vec![(start, start + DATA)];
    for stack in stacks.iter().map(|&sp| u64::from(sp)).filter(|sp| (start..end).contains(sp)) {
        wanted.push((stack.saturating_sub(BELOW_STACK).max(start), (stack + STACK).min(end)));
    }
    wanted.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, end) in wanted {
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

fn system_control(channels: &mut DebugChannels) -> Result<MemoryRange, ChannelError> {
    let places: Vec<_> =
        (0..SYSTEM_CONTROL_WORDS).map(|n| (SYSTEM_CONTROL + 4 * n, Access::Word)).collect();
    let mut words = vec![0; places.len()];
    channels.qtest.read_each(&places, &mut words)?;
    let bytes = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
    Ok(MemoryRange { start: u64::from(SYSTEM_CONTROL), bytes })
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
