//! The signature of a failure: what is equal where two runs fail in the same way. Pure.
//!
//! Numbers, addresses, times and folders differ from run to run and are left out; words stay.

use serde::Serialize;

use crate::result::CaseStatus;
use crate::{Verdict, VerdictKind};

/// Longest text of a line in a signature, in bytes.
const MAX_LINE: usize = 120;

/// Between the parts of a signature.
const SEPARATOR: &str = " | ";

/// How like two failures are, the most alike first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Likeness {
    /// Their signatures are equal.
    Equal,
    /// The same line shows them.
    Line,
    /// The same tests fail.
    Tests,
}

impl Likeness {
    /// Compares two signatures; nothing where the failures are not alike.
    pub fn of(one: &str, other: &str) -> Option<Self> {
        if one == other {
            return Some(Self::Equal);
        }
        let parts = |signature: &str| {
            let mut parts = signature.splitn(3, SEPARATOR).map(str::to_owned);
            (parts.next(), parts.next(), parts.next())
        };
        let ((_, tests, line), (_, other_tests, other_line)) = (parts(one), parts(other));
        if line.is_some() && line == other_line {
            return Some(Self::Line);
        }
        // Of two parts the second may be tests or a line: equal it says the same.
        (tests.is_some() && tests == other_tests).then_some(Self::Tests)
    }
}

/// Returns the line that shows the failure of a run best.
pub fn first_bad_line(verdict: &Verdict) -> Option<&str> {
    let failed = verdict.tests.cases.iter().find(|case| case.status == CaseStatus::Fail);
    let message = failed.and_then(|case| case.message.as_deref());
    let evidence = verdict.evidence.first().map(|evidence| evidence.note.as_str());
    message.or(evidence).filter(|line| !line.is_empty())
}

/// Returns the signature of a run's failure; `None` for a pass.
pub fn verdict_signature(verdict: &Verdict) -> Option<String> {
    if verdict.kind == VerdictKind::Pass {
        return None;
    }
    let bad = |status| matches!(status, CaseStatus::Fail | CaseStatus::Unfinished);
    let failed = verdict.tests.cases.iter().filter(|case| bad(case.status));
    let names = failed.map(|case| case.name.as_str());
    Some(signature(verdict.cause.as_str(), names, first_bad_line(verdict)))
}

/// Makes the signature of a failure from its class, the names of the tests that failed, in any
/// order, and the line that shows it best.
pub fn signature<'a>(
    class: &str,
    failed: impl IntoIterator<Item = &'a str>,
    line: Option<&str>,
) -> String {
    let mut failed: Vec<_> = failed.into_iter().collect();
    failed.sort_unstable();
    failed.dedup();
    let mut parts = vec![class.to_owned()];
    parts.extend((!failed.is_empty()).then(|| failed.join(",")));
    parts.extend(line.map(normalised).filter(|line| !line.is_empty()));
    parts.join(SEPARATOR)
}

/// Returns a line without what differs from run to run: each number becomes `#`, each path its last
/// part, and white space one blank.
pub fn normalised(line: &str) -> String {
    let words = line.split_ascii_whitespace().map(|word| without_numbers(last_part(word)));
    let mut text = words.collect::<Vec<_>>().join(" ");
    text.truncate(text.floor_char_boundary(MAX_LINE));
    // The blank between two words may be the last that fits.
    text.truncate(text.trim_end_matches(' ').len());
    text
}

/// Returns the last part of a path; other words stay.
fn last_part(word: &str) -> &str {
    let is_path = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+');
    // `../src/ring.c:12:` is a path and a place in it.
    let end = word.find(|c: char| !is_path(c)).unwrap_or(word.len());
    match word[..end].rfind('/') {
        Some(slash) if end > slash + 1 => &word[slash + 1..],
        _ => word,
    }
}

/// Replaces hexadecimal and decimal numbers; digits within a name such as `uart0` stay.
fn without_numbers(word: &str) -> String {
    let mut text = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let len = if name(first) {
            rest.find(|c| !name(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, tail) = rest.split_at(len);
        text.push_str(if is_number(token) { "#" } else { token });
        rest = tail;
    }
    text
}

fn is_number(token: &str) -> bool {
    let hex = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let prefixed = token.strip_prefix("0x").or_else(|| token.strip_prefix("0X")).is_some_and(hex);
    // `12ms`, `0001`, `deadbeef`, but not `add` or `face`.
    let digits = token.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let counted = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let address = token.len() >= 8 && hex(token) && token.bytes().any(|b| b.is_ascii_digit());
    prefixed || counted && token.len() - digits.len() <= 3 || address
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_left_out() {
        for (line, expected) in [
            ("[00:00:01.234,000] <err> ring: bad index 17", "[#:#:#.#,#] <err> ring: bad index #"),
            ("assert failed at /build/fw/src/ring.c:112", "assert failed at ring.c:#"),
            ("../../src/ring.c:112:wrap:FAIL", "ring.c:#:wrap:FAIL"),
            ("HardFault at 0x08001234", "HardFault at #"),
            ("uart0 took  12ms, not 3 s", "uart0 took #, not # s"),
            ("a face in the cafe", "a face in the cafe"),
            ("", ""),
        ] {
            assert_eq!(normalised(line), expected, "{line}");
        }
    }

    #[test]
    fn failures_are_alike_by_their_line_or_their_tests() {
        let of = Likeness::of;
        assert_eq!(of("hang | a | x", "hang | a | x"), Some(Likeness::Equal));
        assert_eq!(of("hang | a | x", "hang | b | x"), Some(Likeness::Line));
        assert_eq!(of("hang | a | x", "test_failed | a | y"), Some(Likeness::Tests));
        assert_eq!(of("hang | a | x", "hang | b | y"), None);
        assert_eq!(of("hang", "lockup"), None);
    }

    #[test]
    fn a_signature_does_not_depend_on_the_order_of_tests() {
        let line = Some("ring.c:3: expected 1");
        assert_eq!(
            signature("test_failed", ["b", "a", "b"], line),
            "test_failed | a,b | ring.c:#: expected #"
        );
        assert_eq!(signature("hang", [], None), "hang");
    }

    #[test]
    fn a_line_that_is_cut_between_words_ends_with_a_word() {
        let line = format!("{} next", "x".repeat(MAX_LINE - 1));
        assert_eq!(normalised(&line).len(), MAX_LINE - 1);
        // This one is white space in Unicode, and a character of a word here.
        assert_eq!(normalised("a\u{2028} b"), "a\u{2028} b");
    }

    proptest! {
        #[test]
        fn a_normalised_line_is_short_and_stays_as_it_is(line in "\\PC{0,200}") {
            let once = normalised(&line);
            prop_assert!(once.len() <= MAX_LINE);
            // Where a line is cut, what is left of a word may be a number.
            if line.len() <= MAX_LINE {
                prop_assert_eq!(normalised(&once), once);
            }
        }
    }
}
