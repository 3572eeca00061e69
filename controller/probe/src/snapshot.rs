//! A core as it stood at one moment: what a backtrace, a dump and an explanation are made of.

use serde::{Deserialize, Serialize};

use crate::RegisterValue;

/// Which family of rules a core follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoreKind {
    /// Cortex-M0, M0+, M1: no fault status registers.
    Armv6m,
    /// Cortex-M3, M4, M7.
    Armv7m,
    /// Cortex-M23, M33, M55.
    Armv8m,
    /// RISC-V with 32-bit registers.
    Riscv32,
}

/// Bytes of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRange {
    /// Address of the first byte.
    pub start: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl MemoryRange {
    /// Returns the address behind the last byte.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }
}

/// Registers and memory of a halted core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreSnapshot {
    /// What kind of core it is.
    pub kind: CoreKind,
    /// Its registers, in the order debuggers show them; `r0`.. first.
    pub registers: Vec<RegisterValue>,
    /// Memory, in ascending order and without overlap. Fault status registers are memory
    /// here too, at their addresses.
    pub memory: Vec<MemoryRange>,
}

impl CoreSnapshot {
    /// Returns a register's value.
    pub fn register(&self, name: &str) -> Option<u128> {
        self.registers.iter().find(|register| register.name == name).map(|r| r.value)
    }

    /// Copies memory; nothing unless all of it is known.
    pub fn read(&self, start: u64, len: usize) -> Option<&[u8]> {
        self.memory.iter().find_map(|range| {
            let offset = usize::try_from(start.checked_sub(range.start)?).ok()?;
            range.bytes.get(offset..offset.checked_add(len)?)
        })
    }

    /// Reads a little-endian word of memory; nothing unless all of it is known.
    pub fn word(&self, address: u32) -> Option<u32> {
        let bytes = self.read(u64::from(address), 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }
}
