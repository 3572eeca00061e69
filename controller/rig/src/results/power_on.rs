//! What a line sends while a board is switched on, glued to the first line of its output.

/// Returns the text of a line behind the bytes in front that are no text: they are no part of UTF-8,
/// or control a terminal. An `ok` behind them stays where it is: they may have been a `not`.
pub(super) fn without_noise(line: &[u8]) -> &[u8] {
    let mut rest = line;
    while let Some(first) = rest.first() {
        let is_text = match first {
            b'\t' | 0x1b => true,
            0..=0x1f | 0x7f => false,
            0x20..=0x7e => true,
            0x80.. => (2..=4).any(|n| rest.get(..n).is_some_and(|c| str::from_utf8(c).is_ok())),
        };
        if is_text {
            break;
        }
        rest = &rest[1..];
    }
    let head = rest.trim_ascii_start().get(..2).unwrap_or_default();
    if head.eq_ignore_ascii_case(b"ok") { line } else { rest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_begins_behind_what_is_none() {
        for (line, text) in [
            (&b"\xf8\x001..2"[..], &b"1..2"[..]),
            (b"\x80\xfe\xff1..2", b"1..2"),
            (b"\x00\xff\xfe\x80\x00\xf8a.c:1:t:PASS", b"a.c:1:t:PASS"),
            (b"\xf8\x01\x7f not ok 1", b" not ok 1"),
            (b"\xc3\xa9t\xe9: FAIL", b"\xc3\xa9t\xe9: FAIL"),
            (b"a\xf8b", b"a\xf8b"),
            (b"\x80\xf8ok 1", b"\x80\xf8ok 1"),
            (b"\x80\xf8 OK 1", b"\x80\xf8 OK 1"),
            (b"\x80\xf8", b""),
            (b"", b""),
        ] {
            assert_eq!(without_noise(line), text, "{line:?}");
        }
    }
}
