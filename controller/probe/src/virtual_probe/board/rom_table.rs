//! The ROM table: where debuggers look for what a chip is and has.

use jig_model::profile::DebugSpec;

/// First address of the table; it is 4 KiB long.
pub(crate) const BASE: u32 = 0xe00f_f000;

/// Entries: offset of a component from the table, and the bits that say it is there.
const ENTRIES: [u32; 3] = [
    // System control space, at 0xe000_e000.
    0xfff0_f003,
    // Watchpoints, at 0xe000_1000. Their registers read as the emulator has them.
    0xfff0_2003,
    // Breakpoints, at 0xe000_2000.
    0xfff0_3003,
];

/// Class of a ROM table, in the second component identification register.
const COMPONENT: [u32; 4] = [0x0d, 0x10, 0x05, 0xb1];

/// Reads a word of the table; the offset is aligned.
pub(crate) fn word(spec: &DebugSpec, offset: u32) -> u32 {
    let (bank, code) = (u32::from(spec.jep106_bank), u32::from(spec.jep106_code));
    let part = u32::from(spec.part);
    match offset {
        0x000..0x00c => ENTRIES[(offset / 4) as usize],
        // Memory is on the same bus.
        0xfcc => 1,
        0xfd0 => bank,
        0xfe0 => part & 0xff,
        0xfe4 => (code & 0xf) << 4 | part >> 8,
        // The maker has a JEP106 code.
        0xfe8 => 1 << 3 | code >> 4,
        0xff0..=0xffc => COMPONENT[((offset - 0xff0) / 4) as usize],
        _ => 0,
    }
}
