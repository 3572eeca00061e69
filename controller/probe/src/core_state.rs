//! What a core is doing, in words of the field.

use serde::{Deserialize, Serialize};

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

/// What a reset leads into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetInto {
    /// The program runs.
    Run,
    /// The core stands still before its first instruction.
    Halt,
}

/// A register and what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterValue {
    /// Its name, in lower case, as debuggers spell it: `r0`, `sp`, `pc`, `xpsr`, `msp`, `s0`.
    pub name: String,
    /// How wide it is, in bits.
    pub bits: u16,
    /// The value.
    pub value: u128,
}
