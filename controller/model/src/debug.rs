//! What a debug probe sees and does: the state of a core, registers, flash operations.
//!
//! Times are `{"secs", "nanos"}` in JSON, as reports of flash operations always had them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::document::Choice;

/// What a core does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum CoreState {
    /// It executes instructions.
    Running,
    /// It stands still in debug state.
    Halted {
        /// Why it does.
        reason: HaltReason,
        /// Where it does: the program counter.
        pc: u64,
    },
    /// A fault inside a fault handler stopped it; only a reset helps.
    LockedUp,
    /// It waits for an interrupt with its clock off.
    Sleeping,
}

/// Why a core stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HaltReason {
    /// A debugger asked for it.
    Requested,
    /// It reached a breakpoint, of the debugger or an instruction of the program.
    Breakpoint,
    /// It executed the one instruction that was asked for.
    Step,
    /// It was caught at a vector: a fault or a reset.
    VectorCatch,
    /// It accessed a watched address.
    Watchpoint,
    /// Anything else, or several at once.
    Unknown,
}

/// A register and what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterValue {
    /// Its name, in lower case, as debuggers spell it: `r0`, `sp`, `pc`, `xpsr`, `msp`, `s0`.
    pub name: String,
    /// How wide it is, in bits.
    pub bits: u16,
    /// The value; in JSON a string of hexadecimal digits behind `0x`, as it may be wider than a
    /// number there.
    #[serde(with = "hex_number")]
    pub value: u128,
}

mod hex_number {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(value: &u128, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{value:#x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u128, D::Error> {
        let text = String::deserialize(from)?;
        let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'));
        digits
            .and_then(|digits| u128::from_str_radix(digits, 16).ok())
            .ok_or_else(|| D::Error::custom("expected hexadecimal digits behind 0x"))
    }
}

/// Protocol between a debug probe and its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireProtocol {
    /// Serial Wire Debug, on two wires.
    Swd,
    /// JTAG (IEEE 1149.1), on four wires.
    Jtag,
}

impl Choice for WireProtocol {
    const WHAT: &'static str = "protocol of a debug probe";
    const CHOICES: &'static [(&'static str, Self)] = &[("swd", Self::Swd), ("jtag", Self::Jtag)];
}

/// The way an attempt takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachMethod {
    /// Attach to the running target.
    Running,
    /// Hold the reset line while attaching.
    UnderReset,
    /// Attach to the running target, then reset and halt it. For targets that let go of a
    /// reset before their debug unit is enabled again and so run past the catch.
    ResetAfter,
}

impl AttachMethod {
    /// Returns the words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Running => "attach to the running target",
            Self::UnderReset => "attach under reset",
            Self::ResetAfter => "attach, then reset",
        }
    }
}

/// How wide the single accesses are that carry bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryWidth {
    /// The fastest there is; for memory.
    #[default]
    Any,
    /// One byte each.
    Byte,
    /// Two bytes each; address and length are even.
    Half,
    /// Four bytes each; address and length are multiples of four. For registers.
    Word,
}

/// What a flash operation is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlashPhase {
    /// Reads what the flash holds, to find the sectors that need nothing.
    Compare,
    /// Erases sectors.
    Erase,
    /// Programs pages.
    Program,
    /// Writes into RAM.
    Load,
    /// Reads back and compares.
    Verify,
}

/// How far a flash operation is. Told at the start of each phase and at steps of a sector, a page,
/// or a few KiB. Flash is written in batches, so erasing and programming take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlashProgress {
    /// The phase.
    pub phase: FlashPhase,
    /// Bytes done in this phase.
    pub done: u64,
    /// Bytes to do in this phase.
    pub total: u64,
}

/// Says what a flash operation did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlashReport {
    /// Bytes of the payload.
    pub bytes: u64,
    /// Bytes that were programmed or loaded, page fill included.
    pub written: u64,
    /// Sectors that were erased.
    pub sectors_erased: u32,
    /// Sectors that were left alone because they held the right bytes.
    pub sectors_equal: u32,
    /// Whether all of the payload was read back and found equal.
    pub verified: bool,
    /// SHA-256 in lower-case hex of the payload's bytes as the chip holds them, in address
    /// order, if they were compared: read back, or compared by the flash algorithm.
    pub read_back_sha256: Option<String>,
    /// How long each phase took, in order.
    pub phases: Vec<(FlashPhase, Duration)>,
}

/// Says what was erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EraseReport {
    /// Bytes that are blank now.
    pub bytes: u64,
    /// How long it took.
    pub took: Duration,
}
