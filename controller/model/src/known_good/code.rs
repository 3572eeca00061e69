//! The machine code of the known-good image. Each program is the assembled form of its source in
//! `code/`; an integration test assembles the sources again and compares.

use crate::profile::Arch;

/// Returns the program for a processor family, in words of 32 bits. It runs at any address, and
/// the words of [`layout`](super::layout) follow it. Empty for a family without one, which a
/// profile is refused for.
pub fn program(arch: Arch) -> &'static [u32] {
    match arch {
        Arch::Arm => CORTEX_M,
        Arch::Aarch64 => AARCH64,
        Arch::Riscv32 => RISCV32,
        Arch::Riscv64 => RISCV64,
        Arch::Xtensa | Arch::Avr => &[],
    }
}

/// `code/cortex-m.s`.
#[rustfmt::skip]
const CORTEX_M: &[u32] = &[
    0xc87e_a00f, 0x2e00_46a8, 0xc8a0_d003, 0x3e01_602f, 0x7807_e7f9, 0xd010_2f00, 0x2d00_4645,
    0x6815_d101, 0x7815_e000, 0x42a5_401d, 0x3001_d1f6, 0x2d00_4645, 0x600f_d101, 0x700f_e7ed,
    0xbf30_e7eb, 0xe7fe_e7fd,
];

/// `code/riscv.s` for 32 bits.
#[rustfmt::skip]
const RISCV32: &[u32] = &[
    0x0000_0297, 0x0802_8293, 0x0002_a503, 0x0042_a583, 0x0082_a603, 0x00c2_a683, 0x0102_a703,
    0x0142_a783, 0x0182_8293, 0x0007_8e63, 0x0002_a303, 0x0042_a383, 0x0073_2023, 0x0082_8293,
    0xfff7_8793, 0xfe9f_f06f, 0x0002_c303, 0x0203_0a63, 0x0007_1663, 0x0005_a383, 0x0080_006f,
    0x0005_c383, 0x00c3_f3b3, 0xfed3_96e3, 0x0012_8293, 0x0007_1663, 0x0065_2023, 0xfd5f_f06f,
    0x0065_0023, 0xfcdf_f06f, 0x1050_0073, 0xffdf_f06f,
];

/// `code/riscv.s` for 64 bits.
#[rustfmt::skip]
const RISCV64: &[u32] = &[
    0x0000_0297, 0x0802_8293, 0x0002_e503, 0x0042_e583, 0x0082_e603, 0x00c2_e683, 0x0102_a703,
    0x0142_a783, 0x0182_8293, 0x0007_8e63, 0x0002_e303, 0x0042_a383, 0x0073_2023, 0x0082_8293,
    0xfff7_8793, 0xfe9f_f06f, 0x0002_c303, 0x0203_0a63, 0x0007_1663, 0x0005_e383, 0x0080_006f,
    0x0005_c383, 0x00c3_f3b3, 0xfed3_96e3, 0x0012_8293, 0x0007_1663, 0x0065_2023, 0xfd5f_f06f,
    0x0065_0023, 0xfcdf_f06f, 0x1050_0073, 0xffdf_f06f,
];

/// `code/aarch64.s`.
#[rustfmt::skip]
const AARCH64: &[u32] = &[
    0x1000_0320, 0x28c1_0801, 0x28c1_1003, 0x28c1_1805, 0x3400_00a6, 0x28c1_2007, 0xb900_00e8,
    0x5100_04c6, 0x17ff_fffc, 0x3840_1407, 0x3400_01a7, 0x3500_0065, 0xb940_0048, 0x1400_0002,
    0x3940_0048, 0x0a03_0108, 0x6b04_011f, 0x54ff_ff41, 0x3500_0065, 0xb900_0027, 0x17ff_fff5,
    0x3900_0027, 0x17ff_fff3, 0xd503_207f, 0x17ff_ffff,
];
