//! Core dumps: a core's registers and memory in a file that gdb opens.
//!
//! The form is an ELF core file as Linux writes it for the same kind of processor, because
//! that is what gdb reads: a status note with the general registers, a note with gdb's own
//! description of the core, memory as loadable segments. What that form has no place for, the
//! kind of core and its other registers, is in a note of ours, which others skip.
//!
//! Owns the bytes; refuses to open files.

mod read;
#[cfg(test)]
pub(crate) mod tests;
mod write;

use serde::{Deserialize, Serialize};

use crate::{CoreKind, CoreSnapshot, RegisterValue};

/// `EM_ARM` and `EM_RISCV`.
const ARM: u16 = 40;
const RISCV: u16 = 243;
/// A core file.
const ET_CORE: u16 = 4;
/// Types of program headers.
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
/// The status note, by the owner `CORE`.
const NT_PRSTATUS: u32 = 1;
/// The target description note, by the owner `GDB`.
const NT_GDB_TDESC: u32 = 0xff00_0000;
/// The note of ours.
const NOTE_OWNER: &str = "JIG";
const NOTE_TYPE: u32 = 1;
/// Where the status note keeps the registers, after signals, ids and times.
const STATUS_REGISTERS: usize = 72;
/// How long the status note is: 18 words of registers and one more on Arm, 32 on RISC-V.
const ARM_STATUS: usize = 148;
const RISCV_STATUS: usize = 204;

/// The form of our own note. Readers refuse a newer one.
const VERSION: u32 = 1;

/// Says why a file is no core dump that can be used.
#[derive(Debug, thiserror::Error)]
pub enum CoreDumpError {
    /// It is not a 32-bit little-endian ELF core file, or a cut one.
    #[error("not a readable 32-bit core dump: {what}")]
    Malformed {
        /// What is wrong with it.
        what: &'static str,
    },
    /// It is a core dump of another kind of machine.
    #[error("the core dump is of machine {machine}, not of an Arm or RISC-V core")]
    WrongMachine {
        /// The number that the ELF specification gives it.
        machine: u16,
    },
    /// It was written by a newer Jig.
    #[error("the core dump has form {version}; this program knows {VERSION}")]
    Newer {
        /// Its form.
        version: u32,
    },
}

/// Reads and writes core dumps.
#[derive(Debug, Clone, Copy)]
pub struct CoreDump;

impl CoreDump {
    /// Writes a snapshot as an ELF core file. Memory that was not captured is a hole.
    ///
    /// # Errors
    /// The writer's, or the memory captured exceeds what such a file can hold: 4 GiB.
    pub fn write(snapshot: &CoreSnapshot, to: &mut impl std::io::Write) -> std::io::Result<()> {
        write::write(snapshot, to)
    }

    /// Reads a core dump; also one that another program wrote, as far as its registers go:
    /// such a one is taken for that of an Armv7-M.
    ///
    /// # Errors
    /// It is no core dump, a broken one, or one of another machine.
    pub fn read(bytes: &[u8]) -> Result<CoreSnapshot, CoreDumpError> {
        read::read(bytes)
    }
}

/// What our own note holds, as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct ElfNote {
    version: u32,
    kind: CoreKind,
    registers: Vec<RegisterValue>,
}

/// General registers in the order of the status note.
fn status_names(kind: CoreKind) -> Vec<String> {
    match kind {
        CoreKind::Riscv32 => {
            let names = "pc ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 \
                         s8 s9 s10 s11 t3 t4 t5 t6";
            names.split_whitespace().map(str::to_owned).collect()
        }
        CoreKind::Armv6m | CoreKind::Armv7m | CoreKind::Armv8m => {
            let general = (0..13).map(|number| format!("r{number}"));
            general.chain(["sp", "lr", "pc", "xpsr"].map(str::to_owned)).collect()
        }
    }
}
