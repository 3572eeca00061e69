//! Text whose bytes have seven bits and one of parity, as a port of eight bits receives it. Pure.
//!
//! # Design
//! A firmware that sends 7E1 to a port of 8N1 is readable for a person, and no search of bytes finds a
//! word of it. Each byte of such a line has the same parity, or each has the bit set. Of eight bytes or
//! more this is no accident, and where no bit is set the line is plain text.

use std::ops::Range;

/// Fewest bytes of a line from which its parity is known.
const FEWEST: usize = 8;

/// Lists the lines of some output that carry parity, with their text. Plain text has none of them, and
/// costs one fast look.
pub(crate) fn parity_lines(output: &[u8]) -> Vec<(Range<usize>, Vec<u8>)> {
    if std::str::from_utf8(output).is_ok() {
        return Vec::new();
    }
    let text: Vec<u8> = output.iter().map(|byte| byte & 0x7f).collect();
    let ends = memchr::memchr2_iter(b'\n', b'\r', &text).chain([text.len()]);
    let mut from = 0;
    let spans = ends.map(|end| std::mem::replace(&mut from, end + 1)..end);
    spans
        .filter(|span| carries_parity(&output[span.clone()]))
        .map(|span| (span.clone(), text[span].to_vec()))
        .collect()
}

fn carries_parity(line: &[u8]) -> bool {
    let set = line.iter().filter(|byte| **byte >= 0x80).count();
    if line.len() < FEWEST || set == 0 {
        return false;
    }
    let printable = |byte: &u8| matches!(byte & 0x7f, b' '..=b'~' | b'\t' | 0x1b);
    let odd = line.iter().filter(|byte| byte.count_ones() % 2 == 1).count();
    // Words of an alphabet of eight bits have plain blanks between them.
    let marked = set == line.len() && line.contains(&(b' ' | 0x80));
    (marked || odd == 0 || odd == line.len()) && line.iter().all(printable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coded(text: &str, parity: fn(u8) -> bool) -> Vec<u8> {
        text.bytes().map(|b| if parity(b) { b | 0x80 } else { b }).collect()
    }

    #[test]
    fn text_with_parity_is_read_and_other_alphabets_are_not() {
        let text = "spi test: FAIL";
        let parities: [fn(u8) -> bool; 3] =
            [|b| b.count_ones() % 2 == 1, |b| b.count_ones() % 2 == 0, |_| true];
        for parity in parities {
            let mut log = b"boot\r\n".to_vec();
            log.extend(coded(&format!("{text}\r\n"), parity));
            log.extend_from_slice(b"OK\r\n");
            let found = parity_lines(&log);
            assert_eq!(found, [(6..6 + text.len(), text.as_bytes().to_vec())]);
        }
        for plain in [
            "spi test: FAIL".as_bytes(),
            "Pr\u{fc}fung: FAIL".as_bytes(),
            b"Pr\xfcfung der SPI: FAIL",
            // KOI8-R.
            b"\xfa\xc1\xc7\xd2\xd5\xda\xcb\xc1 \xd3\xc9\xd3\xd4\xc5\xcd\xd9",
            b"\xc6\xc1\xc9\xcc",
            b"\xff\xfe\xff\xfe\xff\xfe\xff\xfe",
        ] {
            assert_eq!(parity_lines(plain), [], "{plain:?}");
        }
    }
}
