//! Registers of one frame.

use crate::{CoreKind, CoreSnapshot};

/// Registers are numbered as DWARF does: r0..r15 on Arm, x0..x31 on RISC-V.
const REGISTERS: usize = 32;

/// Which registers and rules an image's code follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CoreMachine {
    /// Thumb code of a Cortex-M.
    Arm,
    /// RISC-V with 32-bit registers.
    Riscv,
}

impl CoreMachine {
    /// Returns the DWARF number of the stack pointer.
    pub(super) fn sp_number(self) -> u16 {
        if self == Self::Arm { 13 } else { 2 }
    }
}

/// The registers of one frame. Nothing where the value is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Context {
    values: [Option<u32>; REGISTERS],
    /// The instruction that is executed, or the one to return to.
    pub(crate) pc: u32,
    /// The program status register, where it is known: innermost and interrupted frames.
    pub(crate) xpsr: Option<u32>,
    pub(super) machine: CoreMachine,
}

impl Context {
    /// Takes the registers of a core as it stands. Nothing without a program counter.
    pub(crate) fn innermost(snapshot: &CoreSnapshot) -> Option<Self> {
        let machine = match snapshot.kind {
            CoreKind::Armv6m | CoreKind::Armv7m | CoreKind::Armv8m => CoreMachine::Arm,
            CoreKind::Riscv32 => CoreMachine::Riscv,
        };
        let word = |name: &str| snapshot.register(name).and_then(|v| u32::try_from(v).ok());
        let mut values = [None; REGISTERS];
        let count = if machine == CoreMachine::Arm { 13 } else { REGISTERS };
        for (number, value) in values.iter_mut().enumerate().take(count) {
            *value = match machine {
                CoreMachine::Arm => word(&format!("r{number}")),
                CoreMachine::Riscv => word(RISCV_NAMES[number])
                    .or_else(|| word(&format!("x{number}")))
                    .or_else(|| (number == 8).then(|| word("s0")).flatten()),
            };
        }
        if machine == CoreMachine::Arm {
            values[13] = word("sp").or_else(|| word("r13"));
            values[14] = word("lr").or_else(|| word("r14"));
        }
        let pc = word("pc").or_else(|| word("r15"))?;
        Some(Self { values, pc, xpsr: word("xpsr"), machine })
    }

    /// Returns a context of the same machine in which nothing is known.
    pub(crate) fn blank(&self) -> Self {
        Self { values: [None; REGISTERS], pc: 0, xpsr: None, machine: self.machine }
    }

    /// Returns a register by its DWARF number.
    pub(crate) fn get(&self, number: u16) -> Option<u32> {
        self.values.get(usize::from(number)).copied().flatten()
    }

    pub(crate) fn set(&mut self, number: u16, value: Option<u32>) {
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
        self.machine.sp_number()
    }

    pub(super) fn lr_number(&self) -> u16 {
        if self.machine == CoreMachine::Arm { 14 } else { 1 }
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
