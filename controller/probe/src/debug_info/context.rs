//! Registers of one frame, and the memory they point into.

use super::symbols::{Machine, Symbols};
use crate::{CoreKind, CoreSnapshot};

/// Registers are numbered as DWARF does: r0..r15 on Arm, x0..x31 on RISC-V.
const REGISTERS: usize = 32;

/// The registers of one frame. Nothing where the value is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Context {
    values: [Option<u32>; REGISTERS],
    /// The instruction that is executed, or the one to return to.
    pub(crate) pc: u32,
    /// The program status register, where it is known: innermost and interrupted frames.
    pub(crate) xpsr: Option<u32>,
    pub(super) machine: Machine,
}

impl Context {
    /// Takes the registers of a core as it stands. Nothing without a program counter.
    pub(crate) fn innermost(snapshot: &CoreSnapshot) -> Option<Self> {
        let machine = match snapshot.kind {
            CoreKind::Armv6m | CoreKind::Armv7m | CoreKind::Armv8m => Machine::Arm,
            CoreKind::Riscv32 => Machine::Riscv,
        };
        let word = |name: &str| snapshot.register(name).and_then(|v| u32::try_from(v).ok());
        let mut values = [None; REGISTERS];
        let count = if machine == Machine::Arm { 13 } else { REGISTERS };
        for (number, value) in values.iter_mut().enumerate().take(count) {
            *value = match machine {
                Machine::Arm => word(&format!("r{number}")),
                Machine::Riscv => word(RISCV_NAMES[number])
                    .or_else(|| word(&format!("x{number}")))
                    .or_else(|| (number == 8).then(|| word("s0")).flatten()),
            };
        }
        if machine == Machine::Arm {
            values[13] = word("sp").or_else(|| word("r13"));
            values[14] = word("lr").or_else(|| word("r14"));
        }
        let pc = word("pc").or_else(|| word("r15"))?;
        Some(Self { values, pc, xpsr: word("xpsr"), machine })
    }

    /// Returns a register by its DWARF number.
    pub(crate) fn get(&self, number: u16) -> Option<u32> {
        self.values.get(usize::from(number)).copied().flatten()
    }

    pub(super) fn set(&mut self, number: u16, value: Option<u32>) {
        if let Some(slot) = self.values.get_mut(usize::from(number)) {
            *slot = value;
        }
    }

    pub(crate) fn sp(&self) -> Option<u32> {
        self.get(self.sp_number())
    }

    pub(super) fn set_sp(&mut self, value: Option<u32>) {
        self.set(self.sp_number(), value);
    }

    /// Returns the register that calls leave their return address in.
    pub(crate) fn lr(&self) -> Option<u32> {
        self.get(self.lr_number())
    }

    pub(super) fn set_lr(&mut self, value: Option<u32>) {
        self.set(self.lr_number(), value);
    }

    pub(super) fn sp_number(&self) -> u16 {
        if self.machine == Machine::Arm { 13 } else { 2 }
    }

    pub(super) fn lr_number(&self) -> u16 {
        if self.machine == Machine::Arm { 14 } else { 1 }
    }

    /// Returns the number of the exception that is handled, 0 for none.
    pub(crate) fn exception(&self) -> u32 {
        self.xpsr.unwrap_or(0) & 0x1ff
    }
}

/// Names of the RISC-V calling convention.
const RISCV_NAMES: [&str; REGISTERS] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "fp", "s1", "a0", "a1", "a2", "a3", "a4",
    "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4",
    "t5", "t6",
];

/// Memory as it was captured, with the image's constants where it was not.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'a> {
    snapshot: &'a CoreSnapshot,
    symbols: Option<&'a Symbols>,
}

impl<'a> Memory<'a> {
    pub(crate) fn new(snapshot: &'a CoreSnapshot, symbols: Option<&'a Symbols>) -> Self {
        Self { snapshot, symbols }
    }

    /// Reads a little-endian word of what was captured: never of the image.
    pub(crate) fn word(&self, address: u32) -> Option<u32> {
        let bytes = self.snapshot.read(u64::from(address), 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Reads half an instruction.
    pub(crate) fn instruction(&self, address: u32) -> Option<u16> {
        let start = u64::from(address);
        let bytes = self
            .snapshot
            .read(start, 2)
            .or_else(|| self.symbols.and_then(|symbols| symbols.constant(start, 2)))?;
        Some(u16::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Returns the first captured address at or above the given one.
    pub(crate) fn first_above(&self, address: u32) -> Option<u32> {
        self.snapshot
            .memory
            .iter()
            .filter_map(|range| {
                let end = range.start.checked_add(range.bytes.len() as u64)?;
                let first = range.start.max(u64::from(address));
                (first < end).then_some(first)
            })
            .min()
            .and_then(|first| u32::try_from(first).ok())
    }
}
