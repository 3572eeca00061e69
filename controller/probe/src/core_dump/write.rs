//! Writes a snapshot as a core dump.

use std::io::{self, Write};

use super::{
    ARM, ARM_STATUS, ET_CORE, ElfNote, NOTE_OWNER, NOTE_TYPE, NT_GDB_TDESC, NT_PRSTATUS, PT_LOAD,
    PT_NOTE, RISCV, RISCV_STATUS, STATUS_REGISTERS, VERSION, status_names,
};
use crate::target_description::{describe, find};
use crate::{CoreKind, CoreSnapshot, MemoryRange};

const FILE_HEADER: u32 = 52;
const PROGRAM_HEADER: u32 = 32;

/// The signal that gdb is told ended the program: a trap, which is what a debugger's halt is.
const SIGTRAP: u16 = 5;

pub(super) fn write(snapshot: &CoreSnapshot, to: &mut impl Write) -> io::Result<()> {
    let memory: Vec<&MemoryRange> =
        snapshot.memory.iter().filter(|range| !range.bytes.is_empty()).collect();
    let notes = notes(snapshot)?;
    let too_large = || io::Error::new(io::ErrorKind::InvalidInput, "more than 4 GiB of memory");
    let headers = u16::try_from(memory.len() + 1)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "too many pieces of memory"))?;
    let notes_at = FILE_HEADER + PROGRAM_HEADER * u32::from(headers);
    let notes_len = u32::try_from(notes.len()).map_err(|_| too_large())?;

    let mut head = Vec::with_capacity(notes_at as usize);
    head.extend(b"\x7fELF\x01\x01\x01");
    head.resize(16, 0);
    let machine = if snapshot.kind == CoreKind::Riscv32 { RISCV } else { ARM };
    for half in [ET_CORE, machine] {
        head.extend(half.to_le_bytes());
    }
    // Version, entry, program headers, section headers, flags.
    for word in [1, 0, FILE_HEADER, 0, 0] {
        head.extend(word.to_le_bytes());
    }
    for half in [FILE_HEADER as u16, PROGRAM_HEADER as u16, headers, 0, 0, 0] {
        head.extend(half.to_le_bytes());
    }
    let mut header = |words: [u32; 8]| {
        for word in words {
            head.extend(word.to_le_bytes());
        }
    };
    header([PT_NOTE, notes_at, 0, 0, notes_len, 0, 4, 4]);
    let mut at = notes_at.checked_add(notes_len).ok_or_else(too_large)?;
    for range in &memory {
        let start = u32::try_from(range.start).map_err(|_| too_large())?;
        let len = u32::try_from(range.bytes.len()).map_err(|_| too_large())?;
        // Readable and writable; what is code the image says.
        header([PT_LOAD, at, start, start, len, len, 6, 1]);
        at = at.checked_add(len).ok_or_else(too_large)?;
    }
    to.write_all(&head)?;
    to.write_all(&notes)?;
    for range in &memory {
        to.write_all(&range.bytes)?;
    }
    Ok(())
}

fn notes(snapshot: &CoreSnapshot) -> io::Result<Vec<u8>> {
    let mut status = vec![0; STATUS_REGISTERS];
    status[12..14].copy_from_slice(&SIGTRAP.to_le_bytes());
    // gdb names the one thread by this number and wants it not to be zero.
    status[24..28].copy_from_slice(&1_u32.to_le_bytes());
    for name in status_names(snapshot.kind) {
        let value = find(&snapshot.registers, &name).map_or(0, |register| register.value) as u32;
        status.extend(value.to_le_bytes());
    }
    let len = if snapshot.kind == CoreKind::Riscv32 { RISCV_STATUS } else { ARM_STATUS };
    status.resize(len, 0);

    // The status note has no place for optional registers: gdb must not expect them.
    let mut description = describe(snapshot.kind, |_| false).xml.into_bytes();
    description.push(0);

    let own =
        ElfNote { version: VERSION, kind: snapshot.kind, registers: snapshot.registers.clone() };
    let own = serde_json::to_vec(&own).map_err(io::Error::other)?;

    let mut notes = Vec::new();
    note(&mut notes, "CORE", NT_PRSTATUS, &status);
    note(&mut notes, "GDB", NT_GDB_TDESC, &description);
    note(&mut notes, NOTE_OWNER, NOTE_TYPE, &own);
    Ok(notes)
}

fn note(notes: &mut Vec<u8>, owner: &str, kind: u32, bytes: &[u8]) {
    for word in [owner.len() as u32 + 1, bytes.len() as u32, kind] {
        notes.extend(word.to_le_bytes());
    }
    notes.extend(owner.as_bytes());
    notes.push(0);
    notes.resize(notes.len().next_multiple_of(4), 0);
    notes.extend(bytes);
    notes.resize(notes.len().next_multiple_of(4), 0);
}
