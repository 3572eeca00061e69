//! What a debug port tells about a target that has gone wrong.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Cause;

/// Explains where a target stands and why, from its registers, its memory and its image.
///
/// Every name in it comes from the image's debug information: hostile text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PostMortem {
    /// One line: what and where, such as
    /// `HardFault: bus fault writing 0x00000004 in uart_tx (uart.c:41) <- log_line <- main`.
    pub summary: String,
    /// The exception in short, such as `HardFault`, `lock-up` or `running` for a hang.
    pub kind: String,
    /// Fault status registers as words, each a sentence; empty where the core has none.
    pub status: Vec<String>,
    /// The backtrace, innermost first.
    pub frames: Vec<StackFrame>,
    /// Why the backtrace is not better than it is: no debug information, stack unreadable.
    pub limits: Vec<String>,
    /// Threads of the operating system, where it is known and the image tells of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadStory>,
    /// Registers by name, in the order debuggers show them.
    pub registers: Vec<(String, u64)>,
    /// The core dump's file, below the run's directory.
    pub core: Option<PathBuf>,
    /// What the core's own state proves of this boot: `core_fault` or `lockup`. Nothing where
    /// it merely stands somewhere, or took a fault that it got over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proves: Option<Cause>,
}

/// A thread of an operating system on the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadStory {
    /// Its name, as the target spells it, or its address or number.
    pub name: String,
    /// What it does: `runs`, `ready`, `waits`, `delayed` or `suspended`.
    pub state: String,
    /// Its backtrace, innermost first. Empty for the one that runs, whose frames are those of the
    /// core, and where its registers are not plausible.
    pub frames: Vec<StackFrame>,
}

/// A fault that a core shows while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultSighting {
    /// The fault in short, such as `HardFault`.
    pub name: String,
    /// What this proves.
    pub proof: FaultProof,
    /// How many faults the core has taken in this boot, where each is seen.
    pub taken: Option<u32>,
}

/// What the sight of a fault proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultProof {
    /// The core executes the handler.
    InHandler,
    /// The core keeps only what its last fault was. A post-mortem has to find out whether it is over.
    Suspected,
    /// The target has ended by itself behind the fault, so that nothing tells whether it was over.
    Ended,
}

/// One function call on the stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackFrame {
    /// The address in it: the instruction that was executed, or the one to return to.
    pub pc: u64,
    /// Its function, or nothing if no name is known.
    pub function: Option<String>,
    /// Source file, as the debug information spells it.
    pub file: Option<String>,
    /// Line in the file.
    pub line: Option<u32>,
    /// Whether the compiler put it into the function of the next frame.
    pub inlined: bool,
    /// Whether an exception interrupted the next frame to get here.
    pub exception: bool,
}

impl StackFrame {
    /// Writes a frame as people do: `uart_tx (uart.c:41)`.
    pub fn brief(&self) -> String {
        let name = self.function.clone().unwrap_or_else(|| format!("{:#010x}", self.pc));
        match (&self.file, self.line) {
            (Some(file), Some(line)) => {
                let base = file.rsplit(['/', '\\']).next().unwrap_or(file);
                format!("{name} ({base}:{line})")
            }
            _ => name,
        }
    }
}
