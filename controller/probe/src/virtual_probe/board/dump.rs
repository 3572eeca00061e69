//! The registers an emulator prints when a core locks up and takes the emulator with it.

/// Reads `R00=00000000 ... R15=00000042` and `XPSR=61000003`; what is missing is 0.
pub(crate) fn registers_of(dump: &str) -> [u32; 17] {
    let mut values = [0; 17];
    for word in dump.split_whitespace() {
        let Some((name, value)) = word.split_once('=') else { continue };
        let Ok(value) = u32::from_str_radix(value, 16) else { continue };
        let index = match name {
            "XPSR" => Some(16),
            _ => name.strip_prefix('R').and_then(|number| number.parse().ok()),
        };
        if let Some(slot) = index.and_then(|index: usize| values.get_mut(index)) {
            *slot = value;
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_is_read() {
        let dump = "qemu: fatal: Lockup: can't escalate 3 to HardFault (current priority -1)\n\n\
            R00=00000001 R01=00000000 R02=00000000 R03=00000000\n\
            R12=00000000 R13=20003fc0 R14=fffffff9 R15=00000042\nXPSR=61000003 -ZC- T handler\n\
            R99=1 R7=zz FPSCR: 00000000\n";
        let values = registers_of(dump);
        assert_eq!((values[0], values[13], values[15]), (1, 0x2000_3fc0, 0x42));
        assert_eq!((values[14], values[16], values[7]), (0xffff_fff9, 0x6100_0003, 0));
    }
}
