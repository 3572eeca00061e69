//! Writes an ELF file of one loadable segment.

use crate::profile::Arch;

/// Alignment of the segment: of a word of the largest flash that a board has.
const ALIGN: u64 = 8;

/// Returns an executable file whose one segment holds `body` at `start`.
pub(super) fn file(arch: Arch, start: u32, entry: u32, body: &[u8]) -> Vec<u8> {
    let (wide, machine, flags) = match arch {
        // EM_ARM, version 5 of its ABI.
        Arch::Arm => (false, 40_u16, 0x0500_0000_u32),
        // EM_AARCH64.
        Arch::Aarch64 => (true, 183, 0),
        // EM_RISCV.
        Arch::Riscv32 => (false, 243, 0),
        Arch::Riscv64 => (true, 243, 0),
        // EM_XTENSA and EM_AVR.
        Arch::Xtensa => (false, 94, 0),
        Arch::Avr => (false, 83, 0),
    };
    let (header, segment): (u16, u16) = if wide { (64, 56) } else { (52, 32) };
    let length = body.len() as u64;
    let offset = u64::from(header + segment).next_multiple_of(ALIGN);
    let mut file = Writer { wide, bytes: Vec::new() };
    file.bytes.extend_from_slice(b"\x7fELF");
    // Class, little endian, version 1, no ABI, padding.
    file.bytes.extend_from_slice(&[if wide { 2 } else { 1 }, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    file.half(2); // An executable.
    file.half(machine);
    file.word(1);
    file.address(entry.into());
    file.address(header.into());
    file.address(0);
    file.word(flags);
    for half in [header, segment, 1, 0, 0, 0] {
        file.half(half);
    }
    file.word(1); // PT_LOAD.
    // Read, write and execute. The flags stand at another place in the wide form.
    if wide {
        file.word(7);
    }
    for address in [offset, start.into(), start.into(), length, length] {
        file.address(address);
    }
    if !wide {
        file.word(7);
    }
    file.address(ALIGN);
    file.bytes.resize(usize::try_from(offset).unwrap_or_default(), 0);
    file.bytes.extend_from_slice(body);
    file.bytes
}

/// Fields of an ELF file, little endian.
struct Writer {
    wide: bool,
    bytes: Vec<u8>,
}

impl Writer {
    fn half(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }
    fn word(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }
    /// A field that is as wide as an address of the class.
    fn address(&mut self, value: u64) {
        let bytes = value.to_le_bytes();
        self.bytes.extend_from_slice(if self.wide { &bytes } else { &bytes[..4] });
    }
}
