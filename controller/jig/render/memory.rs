//! Memory and registers, as people read them.

use std::fmt::Write as _;

/// Bytes of one line of a dump.
const LINE: usize = 16;

/// Writes bytes as `address: hex |text|`, 16 to a line; equal lines in a row become one `*`.
pub(crate) fn hex_dump(start: u64, bytes: &[u8]) -> String {
    let mut text = String::new();
    let digits = if start + bytes.len() as u64 > u64::from(u32::MAX) + 1 { 16 } else { 8 };
    let mut before: Option<&[u8]> = None;
    let mut starred = false;
    let last = bytes.len().div_ceil(LINE).saturating_sub(1);
    for (index, line) in bytes.chunks(LINE).enumerate() {
        // The first and the last line are always shown: they say how far it goes.
        if before == Some(line) && index != last {
            if !starred {
                text.push_str("*\n");
            }
            starred = true;
            continue;
        }
        starred = false;
        before = Some(line);
        let _ = write!(text, "{:0digits$x}:", start + (index * LINE) as u64);
        for at in 0..LINE {
            if at % 4 == 0 {
                text.push(' ');
            }
            match line.get(at) {
                Some(byte) => _ = write!(text, "{byte:02x} "),
                None => text.push_str("   "),
            }
        }
        let shown = |byte: &u8| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' };
        let _ = writeln!(text, "|{}|", line.iter().map(shown).collect::<String>());
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

/// Writes named values in columns, four to a line: `r0 0x00000001`.
pub(crate) fn register_table(values: &[(String, u16, u128)]) -> String {
    const COLUMNS: usize = 4;
    let names = values.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
    let cell = |(name, bits, value): &(String, u16, u128)| {
        let digits = usize::from(*bits).div_ceil(4);
        format!("{name:<names$} 0x{value:0digits$x}")
    };
    let lines = values.chunks(COLUMNS).map(|row| {
        row.iter().map(|value| format!("{:<width$}", cell(value), width = names + 11)).fold(
            String::new(),
            |line, cell| if line.is_empty() { cell } else { format!("{line}  {cell}") },
        )
    });
    lines.map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_shows_addresses_bytes_and_text_and_folds_what_repeats() {
        let mut bytes = b"Hello, world\0\xff!".to_vec();
        bytes.resize(16 * 5, 0);
        bytes.push(b'z');
        let text = hex_dump(0x2000_0000, &bytes);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "20000000: 48 65 6c 6c  6f 2c 20 77  6f 72 6c 64  00 ff 21 00 |Hello, world..!.|"
        );
        assert!(lines[1].starts_with("20000010: 00"));
        assert_eq!(lines[2], "*");
        assert!(lines[3].starts_with("20000050: 7a") && lines[3].ends_with("|z|"));
        assert_eq!(lines.len(), 4);
        assert_eq!(hex_dump(0, &[]), "");
    }

    #[test]
    fn registers_line_up() {
        let value = |name: &str, value| (name.to_owned(), 32, value);
        let text = register_table(&[value("r0", 1), value("xpsr", 0x100_0000)]);
        assert_eq!(text, "r0   0x00000001  xpsr 0x01000000");
    }
}
