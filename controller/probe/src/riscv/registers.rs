//! The registers QEMU prints of a RISC-V core.

use crate::{CoreKind, CoreSnapshot, RegisterValue};

/// How much text is looked at: QEMU prints some three KiB.
const MAX_TEXT: usize = 64 << 10;

/// The general registers as debuggers name them, `x0` first.
const NAMES: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "fp", "s1", "a0", "a1", "a2", "a3", "a4",
    "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4",
    "t5", "t6",
];

/// Control registers that tell of traps.
const CONTROL: [&str; 14] = [
    "mhartid", "mstatus", "mie", "mip", "medeleg", "mtvec", "stvec", "mepc", "sepc", "mcause",
    "scause", "mtval", "stval", "satp",
];

/// Reads what QEMU says to `info registers` of a 32-bit core.
///
/// The form is that of QEMU 7.2: ` mcause   00000002` on a line of its own, and four of
/// ` x1/ra    8000008c` on others. The result has no memory; the first core counts. Nothing
/// unless the program counter and all general registers are there.
pub(crate) fn parse_registers(text: &str) -> Option<CoreSnapshot> {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut general = [None; 32];
    let mut pc = None;
    let mut control = Vec::new();
    for line in text[..end].lines() {
        let mut words = line.split_whitespace();
        while let Some(name) = words.next() {
            let Some(value) = words.next().and_then(word) else { break };
            let numbered = name.strip_prefix('x').and_then(|rest| rest.split_once('/'));
            let number = numbered.and_then(|(digits, _)| digits.parse::<usize>().ok());
            if let Some(slot) = number.and_then(|number| general.get_mut(number)) {
                slot.get_or_insert(value);
            } else if name == "pc" {
                pc.get_or_insert(value);
            } else if CONTROL.contains(&name) && !control.iter().any(|(known, _)| *known == name) {
                control.push((name, value));
            }
        }
    }
    let mut registers = Vec::with_capacity(33 + control.len());
    let mut add = |name: &str, value: u32| {
        registers.push(RegisterValue { name: name.to_owned(), bits: 32, value: value.into() });
    };
    for (name, value) in NAMES.iter().zip(general) {
        add(name, value?);
    }
    add("pc", pc?);
    control.into_iter().for_each(|(name, value)| add(name, value));
    Some(CoreSnapshot { kind: CoreKind::Riscv32, registers, memory: Vec::new() })
}

fn word(hex: &str) -> Option<u32> {
    let digits = hex.len() == 8 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(hex, 16).ok().filter(|_| digits)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// As QEMU 7.2 prints it for the machine `virt`, shortened to what is read.
    pub(in crate::riscv) const DUMP: &str = "\r\nCPU#0\r
 V      =   0\r
 pc       800000a8\r
 mhartid  00000000\r
 mstatus  00001800\r
 mip      00000080\r
 mie      00000000\r
 medeleg  00000000\r
 mtvec    800000c8\r
 stvec    00000000\r
 mepc     80000074\r
 sepc     00000000\r
 mcause   00000002\r
 scause   00000000\r
 mtval    00000000\r
 stval    00000000\r
 satp     00000000\r
 x0/zero  00000000 x1/ra    8000008c x2/sp    8010fef0 x3/gp    00000000\r
 x4/tp    00000000 x5/t0    800000c8 x6/t1    00000000 x7/t2    00000000\r
 x8/s0    00000008 x9/s1    00000000 x10/a0   800000db x11/a1   87e00000\r
 x12/a2   00001028 x13/a3   10000000 x14/a4   00000000 x15/a5   00000001\r
 x16/a6   00000000 x17/a7   00000000 x18/s2   00000000 x19/s3   00000000\r
 x20/s4   00000000 x21/s5   00000000 x22/s6   00000000 x23/s7   00000000\r
 x24/s8   00000000 x25/s9   00000000 x26/s10  00000000 x27/s11  00000000\r
 x28/t3   00000000 x29/t4   00000000 x30/t5   00000000 x31/t6   0000001f\r
 f0/ft0   0000000000000000 f1/ft1   0000000000000000 f2/ft2   0000000000000000\r
";

    #[test]
    fn all_registers_are_read() {
        let snapshot = parse_registers(DUMP).unwrap();
        for (name, value) in [
            ("pc", 0x8000_00a8),
            ("ra", 0x8000_008c),
            ("sp", 0x8010_fef0),
            ("fp", 8),
            ("t6", 31),
            ("mcause", 2),
            ("mtvec", 0x8000_00c8),
            ("mstatus", 0x1800),
        ] {
            assert_eq!(snapshot.register(name), Some(value), "{name}");
        }
        assert_eq!(snapshot.registers.len(), 33 + CONTROL.len());
    }

    #[test]
    fn part_of_a_dump_and_another_machine_are_none() {
        assert_eq!(parse_registers(""), None);
        assert_eq!(
            parse_registers("R00=200007c8 R01=20000a00\nXPSR=41000003 -Z-- T handler\n"),
            None
        );
        assert_eq!(parse_registers(&DUMP.replace("x31/t6", "x32/t6")), None);
        assert_eq!(parse_registers(&DUMP.replace(" pc ", " PC ")), None);
        // A 64-bit core prints wider values.
        assert_eq!(parse_registers(&DUMP.replace("800000a8", "00000000800000a8")), None);
    }
}
