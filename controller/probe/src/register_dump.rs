//! The registers QEMU prints when an emulated Cortex-M locks up and takes the emulator along.

use crate::{CoreKind, CoreSnapshot, RegisterValue};

/// How much text is looked at: QEMU prints some two KiB.
const MAX_TEXT: usize = 1 << 20;

/// Finds a register dump of a Cortex-M in what QEMU wrote to its standard error.
///
/// The form is that of QEMU 7.2: `R00=200007c8 ... R15=00000040`, then
/// `XPSR=41000003 -Z-- T handler`. The result has no memory. Which Cortex-M it was the text
/// does not say: one with single-precision registers is taken for an Armv7-M, one that names
/// its security state for an Armv8-M, any other for an Armv6-M, whose rules hold for all.
/// Nothing unless all sixteen registers and the status register are there.
pub fn parse_register_dump(text: &str) -> Option<CoreSnapshot> {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    let mut values = [None; 16];
    let mut xpsr = None;
    let mut kind = CoreKind::Armv6m;
    let mut float = Vec::new();
    for line in text.lines() {
        for field in line.split_whitespace() {
            let Some((name, hex)) = field.split_once('=') else { continue };
            let Some(value) = word(hex) else { continue };
            if name == "XPSR" {
                xpsr = Some(value);
                if line.split_whitespace().any(|word| word == "S" || word == "NS") {
                    kind = CoreKind::Armv8m;
                }
            } else if let Some(number) = number(name, 'R').filter(|&number| number < 16) {
                values[number] = Some(value);
            } else if let Some(number) = number(name, 's').filter(|&number| number < 32) {
                float.push((number, value));
            }
        }
    }
    let xpsr = xpsr?;
    if !float.is_empty() && kind == CoreKind::Armv6m {
        kind = CoreKind::Armv7m;
    }
    let mut registers = Vec::with_capacity(17 + float.len());
    let mut add = |name: String, value: u32| {
        registers.push(RegisterValue { name, bits: 32, value: u128::from(value) });
    };
    for (number, value) in values.into_iter().enumerate() {
        let name = match number {
            13 => "sp".to_owned(),
            14 => "lr".to_owned(),
            15 => "pc".to_owned(),
            _ => format!("r{number}"),
        };
        add(name, value?);
    }
    add("xpsr".to_owned(), xpsr);
    float.sort_unstable();
    float.dedup_by_key(|&mut (number, _)| number);
    for (number, value) in float {
        add(format!("s{number}"), value);
    }
    Some(CoreSnapshot { kind, registers, memory: Vec::new() })
}

fn word(hex: &str) -> Option<u32> {
    let digits = hex.len() == 8 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(hex, 16).ok().filter(|_| digits)
}

/// Reads the two digits of a name such as `R07`.
fn number(name: &str, letter: char) -> Option<usize> {
    let digits = name.strip_prefix(letter)?;
    let plain = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As QEMU 7.2.22 prints it.
    const DUMP: &str = "qemu: fatal: Lockup: can't escalate 3 to HardFault (current priority -1)

R00=200007c8 R01=20000a00 R02=c0000000 R03=40011000
R04=200007c8 R05=00000000 R06=00000000 R07=00000000
R08=00000000 R09=00000000 R10=00000000 R11=00000000
R12=00000000 R13=200009f8 R14=08000159 R15=08000040
XPSR=81000003 N--- T handler
";

    #[test]
    fn all_registers_are_read() {
        let snapshot = parse_register_dump(DUMP).unwrap();
        assert_eq!(snapshot.kind, CoreKind::Armv6m);
        assert_eq!(snapshot.registers.len(), 17);
        assert_eq!(snapshot.register("r2"), Some(0xc000_0000));
        assert_eq!(snapshot.register("sp"), Some(0x2000_09f8));
        assert_eq!(snapshot.register("lr"), Some(0x0800_0159));
        assert_eq!(snapshot.register("pc"), Some(0x0800_0040));
        assert_eq!(snapshot.register("xpsr"), Some(0x8100_0003));
    }

    #[test]
    fn floating_point_and_security_tell_the_kind() {
        let with_float = format!("{DUMP}s00=00000001 s01=3f800000 d00=3f80000000000001\n");
        let snapshot = parse_register_dump(&with_float).unwrap();
        assert_eq!(snapshot.kind, CoreKind::Armv7m);
        assert_eq!(snapshot.register("s1"), Some(0x3f80_0000));
        let secure = DUMP.replace("N--- T handler", "N--- T S handler");
        assert_eq!(parse_register_dump(&secure).unwrap().kind, CoreKind::Armv8m);
    }

    #[test]
    fn half_a_dump_is_none() {
        assert_eq!(parse_register_dump(""), None);
        assert_eq!(parse_register_dump(&DUMP.replace("R15", "R1X")), None);
        assert_eq!(parse_register_dump(&DUMP.replace("XPSR", "PSR")), None);
        for cut in 0..DUMP.len() - 30 {
            assert_eq!(parse_register_dump(&DUMP[..cut]), None, "cut at {cut}");
        }
    }
}
