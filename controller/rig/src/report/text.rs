//! Hostile text made harmless.

use std::fmt::Write as _;

/// Longest name in bytes: no viewer shows more, and names appear in tables.
pub(super) const MAX_NAME: usize = 1024;
/// Longest message in bytes. CI services cut at about this size themselves, and not
/// always at the border of a character.
pub(super) const MAX_TEXT: usize = 64 * 1024;

/// Cuts a text to `limit` bytes at the border of a character, and says so.
pub(super) fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let kept = &text[..text.floor_char_boundary(limit)];
    format!("{kept} [cut: {} of {} bytes shown]", kept.len(), text.len())
}

/// Keeps the end of a text: for logs, where the end tells what happened.
pub(super) fn tail(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let kept = &text[text.ceil_char_boundary(text.len() - limit)..];
    format!("[cut: last {} of {} bytes shown]\n{kept}", kept.len(), text.len())
}

/// Tells whether a character is better shown as an escape: controls, and what XML 1.0
/// forbids, and what turns the reading direction around and so hides text.
fn needs_escape(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{fffe}' | '\u{ffff}' | '\u{2028}' | '\u{2029}')
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn push(out: &mut String, c: char) {
    if needs_escape(c) {
        let _ = match c {
            '\n' => out.write_str("\\n"),
            '\r' => out.write_str("\\r"),
            '\t' => out.write_str("\\t"),
            c if u32::from(c) < 0x80 => write!(out, "\\x{:02x}", u32::from(c)),
            c => write!(out, "\\u{{{:x}}}", u32::from(c)),
        };
    } else {
        out.push(c);
    }
}

/// Puts a text on one line: colours go, other controls become visible.
pub(super) fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    without_colours(text).chars().for_each(|c| push(&mut out, c));
    out
}

/// Keeps the lines of a text, ends them by `\n`, and makes other controls visible.
pub(super) fn lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let text = without_colours(text);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' if chars.peek() == Some(&'\n') => {}
            c => push(&mut out, c),
        }
    }
    out
}

/// Drops colour sequences, `ESC [ digits ; ... m`, and only those: any other escape may hide text
/// from a program that strips it, so it stays and becomes visible.
fn without_colours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        let (before, sequence) = rest.split_at(at);
        out.push_str(before);
        let body = &sequence[2..];
        // Bounded, so that a text full of unfinished sequences takes linear time.
        let end = body.bytes().take(32).position(|b| !b.is_ascii_digit() && b != b';');
        match end.filter(|&end| body.as_bytes().get(end) == Some(&b'm')) {
            Some(end) => rest = &body[end + 1..],
            None => {
                out.push('\u{1b}');
                rest = &sequence[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn colours_go_and_the_rest_is_shown() {
        assert_eq!(one_line("\u{1b}[1;32mPASS\u{1b}[0m"), "PASS");
        assert_eq!(one_line("a\u{1b}]0;title\u{7}b\r\n"), "a\\x1b]0;title\\x07b\\r\\n");
        assert_eq!(lines("a\r\nb\rc\u{1b}[2Jd"), "a\nb\\rc\\x1b[2Jd");
        assert_eq!(one_line("\u{1b}\u{1b}[m[31m"), "\\x1b[31m");
        assert_eq!(one_line("x\u{202e}y\u{ffff}"), "x\\u{202e}y\\u{ffff}");
    }

    #[test]
    fn cuts_say_so() {
        assert_eq!(cut("aéz", 2), "a [cut: 1 of 4 bytes shown]");
        assert_eq!(tail("aéz", 2), "[cut: last 1 of 4 bytes shown]\nz");
        assert_eq!(cut("abc", 3), "abc");
    }

    proptest! {
        #[test]
        fn nothing_uncanny_is_left(text in any::<String>()) {
            prop_assert!(!one_line(&text).chars().any(needs_escape));
            prop_assert!(!lines(&text).chars().any(|c| needs_escape(c) && c != '\n' && c != '\t'));
        }
    }
}
