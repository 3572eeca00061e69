//! Parses a core dump. Every offset in the file is hostile.

use super::{
    ARM, CoreDumpError, ET_CORE, ElfNote, NOTE_OWNER, NOTE_TYPE, NT_PRSTATUS, PT_LOAD, PT_NOTE,
    RISCV, STATUS_REGISTERS, VERSION, status_names,
};
use crate::{CoreKind, CoreSnapshot, MemoryRange, RegisterValue};

pub(super) fn read(bytes: &[u8]) -> Result<CoreSnapshot, CoreDumpError> {
    let malformed = |what| CoreDumpError::Malformed { what };
    if !bytes.starts_with(b"\x7fELF\x01\x01") {
        return Err(malformed("it does not begin as one"));
    }
    let cut = || malformed("it is cut");
    if half(bytes, 16).ok_or_else(cut)? != ET_CORE {
        return Err(malformed("it is an ELF file of another type"));
    }
    let kind = match half(bytes, 18).ok_or_else(cut)? {
        ARM => CoreKind::Armv7m,
        RISCV => CoreKind::Riscv32,
        machine => return Err(CoreDumpError::WrongMachine { machine }),
    };
    let headers_at = word(bytes, 28).ok_or_else(cut)? as usize;
    let header_size = usize::from(half(bytes, 42).ok_or_else(cut)?);
    let headers = usize::from(half(bytes, 44).ok_or_else(cut)?);
    if header_size < 32 {
        return Err(malformed("its program headers are too short"));
    }
    let mut registers = None;
    let mut note = None;
    let mut memory = Vec::new();
    // Segments may overlap in the file; together they may not multiply it.
    let mut budget = bytes.len();
    for index in 0..headers {
        let at = headers_at.checked_add(index * header_size).ok_or_else(cut)?;
        let field = |index: usize| word(bytes, at.checked_add(4 * index)?);
        let kind_of = field(0).ok_or_else(cut)?;
        let offset = field(1).ok_or_else(cut)? as usize;
        let len = field(4).ok_or_else(cut)? as usize;
        if kind_of != PT_LOAD && kind_of != PT_NOTE {
            continue;
        }
        budget = budget.checked_sub(len).ok_or_else(cut)?;
        let content =
            offset.checked_add(len).and_then(|end| bytes.get(offset..end)).ok_or_else(cut)?;
        if kind_of == PT_LOAD {
            let start = u64::from(field(2).ok_or_else(cut)?);
            if !content.is_empty() {
                memory.push(MemoryRange { start, bytes: content.to_vec() });
            }
        } else {
            notes(content, |owner, kind_of, content| {
                if owner == b"CORE" && kind_of == NT_PRSTATUS && registers.is_none() {
                    registers = Some(status(kind, content));
                }
                if owner == NOTE_OWNER.as_bytes() && kind_of == NOTE_TYPE {
                    note = Some(content.to_vec());
                }
            });
        }
    }
    memory.sort_by_key(|range| range.start);
    let apart = |pair: &[MemoryRange]| {
        pair[0].start.saturating_add(pair[0].bytes.len() as u64) <= pair[1].start
    };
    if !memory.windows(2).all(apart) {
        return Err(malformed("its pieces of memory overlap"));
    }
    if let Some(note) = note {
        /// Only what every version has.
        #[derive(serde::Deserialize)]
        struct Version {
            version: u32,
        }
        let Version { version } =
            serde_json::from_slice(&note).map_err(|_| malformed("its own note is unreadable"))?;
        if version > VERSION {
            return Err(CoreDumpError::Newer { version });
        }
        let ElfNote { kind, registers, .. } =
            serde_json::from_slice(&note).map_err(|_| malformed("its own note is unreadable"))?;
        return Ok(CoreSnapshot { kind, registers, memory });
    }
    let registers = registers.ok_or_else(|| malformed("it has no registers"))?;
    Ok(CoreSnapshot { kind, registers, memory })
}

/// Walks notes; what does not add up ends the walk.
fn notes(mut rest: &[u8], mut each: impl FnMut(&[u8], u32, &[u8])) {
    let mut step = || -> Option<()> {
        let (owner_len, len) = (word(rest, 0)? as usize, word(rest, 4)? as usize);
        let kind = word(rest, 8)?;
        let owner = rest.get(12..12_usize.checked_add(owner_len)?)?;
        let at = 12_usize.checked_add(owner_len.checked_next_multiple_of(4)?)?;
        let content = rest.get(at..at.checked_add(len)?)?;
        each(owner.strip_suffix(b"\0").unwrap_or(owner), kind, content);
        rest = rest.get(at.checked_add(len.checked_next_multiple_of(4)?)?..).unwrap_or(&[]);
        Some(())
    };
    while step().is_some() {}
}

fn status(kind: CoreKind, content: &[u8]) -> Vec<RegisterValue> {
    status_names(kind)
        .into_iter()
        .enumerate()
        .map_while(|(index, name)| {
            let value = word(content, STATUS_REGISTERS + 4 * index)?;
            Some(RegisterValue { name, bits: 32, value: value.into() })
        })
        .collect()
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}
