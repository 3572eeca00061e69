//! The line of the text that a run passes by, where it says that something is wrong. Reads the log of a
//! console and decides nothing. A log that cannot be read is an error.
//!
//! # Design
//! What stands beside an awaited text is a failed result only in the forms of one. But this line is the
//! reason of a pass, so the word `ERROR` is enough, and so is trouble or a crash in the part of the sentence
//! that begins with the text (`sync| lost`), unless the pattern spells a failure out itself. The level of a
//! logger in front of the line is no such word: a plan may await a message of any level.

use std::fs::File;
use std::io;
use std::ops::Range;

use super::after_end::is_doubtful;
use super::failed_results::{FoundLine, quotable, read_some};
use crate::console::lines::MAX_LINE;
use crate::console::log_prefix::without_prefix;
use crate::console::{
    AwaitedDoubt, PatternSet, awaited_doubt, names_failure, names_test, readable, says_error,
    tells_failure,
};

/// Fewest letters of a text that a later line may take back.
const FEWEST_LETTERS: usize = 4;

/// Words of a verdict on tests, beside those that end in `test`.
const TESTS: [&str; 13] = [
    "pass",
    "passed",
    "passes",
    "suite",
    "verdict",
    "stress",
    "soak",
    "bist",
    "burn",
    "regression",
    "selfcheck",
    "diag",
    "diagnostics",
];

/// The line in which an awaited text ends.
pub(super) struct AwaitedLine {
    bytes: Vec<u8>,
    span: Range<u64>,
}

impl AwaitedLine {
    /// Reads the line in which a text ends.
    pub(super) fn read(log: &File, end: u64) -> io::Result<Self> {
        let from = end.saturating_sub(MAX_LINE as u64);
        let mut bytes = vec![0; (end - from) as usize + MAX_LINE];
        let len = read_some(log, &mut bytes, from)?;
        bytes.truncate(len);
        let end = ((end - from) as usize).min(len);
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        // The text may hold its line end.
        let last = bytes[..end].iter().rposition(|byte| !is_end(byte)).unwrap_or(0);
        let start = bytes[..last].iter().rposition(is_end).map_or(0, |at| at + 1);
        let end = last + bytes[last..].iter().position(is_end).unwrap_or(len - last);
        let span = from + start as u64..from + end as u64;
        Ok(Self { bytes: bytes[start..end].to_vec(), span })
    }

    /// Cuts out the line around an index of a block, which begins at an offset of the log.
    pub(super) fn within((block, offset): (&[u8], u64), at: usize) -> Self {
        let start = memchr::memrchr2(b'\n', b'\r', &block[..at]).map_or(0, |end| end + 1);
        let len = memchr::memchr2(b'\n', b'\r', &block[at..]);
        let end = len.map_or(block.len(), |len| at + len);
        let span = offset + start as u64..offset + end as u64;
        Self { bytes: block[start..end].to_vec(), span }
    }

    /// Returns where a range of the log lies in the line.
    fn index(&self, part: &Range<u64>) -> Option<Range<usize>> {
        let within = part.start < self.span.end && self.span.start < part.end;
        let index = |at: u64| (at.clamp(self.span.start, self.span.end) - self.span.start) as usize;
        within.then(|| index(part.start)..index(part.end))
    }

    /// Returns the line, unless it is allowed.
    fn unless_allowed(self, allowed: &PatternSet) -> Option<FoundLine> {
        let text = readable(&self.bytes);
        let text = text.trim_ascii();
        (!allowed.matches(text.as_bytes())).then(|| (self.span, quotable(text).to_owned()))
    }

    /// Returns the line if it says `ERROR` beside the parts that the pattern spells out, or if it tells of a
    /// failure that they are a part of, or of trouble in the part of the sentence that begins with one of them.
    pub(super) fn error_beside(
        self,
        spelled: &[Range<u64>],
        allowed: &PatternSet,
    ) -> Option<FoundLine> {
        let mut beside = self.bytes.clone();
        let mut in_clause = false;
        for part in spelled.iter().filter_map(|part| self.index(part)) {
            let text = readable(&self.bytes[part.clone()]);
            if names_failure(&text) {
                return None;
            }
            // `sync| lost`, `temp| sensor: read error -5`, but not `complete|, old image invalid`
            let behind = &self.bytes[part.end..];
            let clause = behind.iter().position(|byte| b",;(.".contains(byte));
            let end = part.end + clause.unwrap_or(behind.len());
            let clause = readable(&self.bytes[part.start..end]);
            // `No |unit tests| have failed`
            let whole = || is_doubtful(message(&readable(&self.bytes[..end])));
            in_clause |= is_doubtful(&clause) && !is_doubtful(&text) && whole();
            beside[part].fill(b' ');
        }
        // `ASSERT: |app_ready| == true failed at main.c:10`
        let found = says_error(message(&readable(&beside)))
            || tells_failure(&readable(&self.bytes))
            || in_clause;
        if found { self.unless_allowed(allowed) } else { None }
    }

    /// Returns the last part that the pattern spells out within what it `matched`, if it has letters.
    pub(super) fn spelled_text(
        &self,
        spelled: &[Range<u64>],
        matched: &Range<u64>,
    ) -> Option<Vec<u8>> {
        let mut here =
            spelled.iter().filter(|part| matched.start <= part.start && part.end <= matched.end);
        let part = self.index(here.next_back()?)?;
        let text = self.bytes[part].trim_ascii();
        let letters = text.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
        (letters >= FEWEST_LETTERS).then(|| text.to_vec())
    }

    /// Tells whether a part that the pattern spells out within what it `matched` tells of tests.
    pub(super) fn spells_tests(&self, spelled: &[Range<u64>], matched: &Range<u64>) -> bool {
        let here =
            spelled.iter().filter(|part| matched.start <= part.start && part.end <= matched.end);
        here.filter_map(|part| self.index(part))
            .any(|part| tells_of_tests(&readable(&self.bytes[part])))
    }

    /// Returns the line and the first part that the pattern spells out in it and that proves nothing
    /// there, with the reason. The pattern `matched` the range of the log.
    pub(super) fn doubtful_text(
        self,
        spelled: &[Range<u64>],
        matched: &Range<u64>,
        allowed: &PatternSet,
    ) -> Option<(FoundLine, String, AwaitedDoubt)> {
        let mut here =
            spelled.iter().filter(|part| matched.start <= part.start && part.end <= matched.end);
        let (text, doubt) = here.find_map(|part| {
            let at = self.index(part)?;
            let [before, text, behind] =
                [&self.bytes[..at.start], &self.bytes[at.clone()], &self.bytes[at.end..]]
                    .map(|bytes| readable(bytes).into_owned());
            let edges = (part.start == matched.start, part.end == matched.end);
            awaited_doubt(&before, &text, &behind, edges).map(|doubt| (text, doubt))
        })?;
        Some((self.unless_allowed(allowed)?, text, doubt))
    }
}

/// Tells whether an awaited text tells of tests: `ALL TESTS PASSED`, `memtest done`.
fn tells_of_tests(text: &str) -> bool {
    let word = |word: &str| {
        let small = word.to_ascii_lowercase();
        TESTS.contains(&&*small) || names_test(small.strip_suffix('s').unwrap_or(&small))
    };
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(word)
}

/// Writes a pattern that tells a pass from the line of a doubtful text, as an argument for a shell.
pub(super) fn distinct_pattern(text: &str, doubt: AwaitedDoubt) -> String {
    let text = regex::escape(text.trim_ascii());
    let border = |c: Option<char>| {
        if c.is_some_and(|c| c.is_ascii_alphanumeric()) { r"\b" } else { "" }
    };
    let pattern = match doubt {
        AwaitedDoubt::PartOfWord => {
            let [front, back] = [border(text.chars().next()), border(text.chars().next_back())];
            format!("{front}{text}{back}")
        }
        AwaitedDoubt::Denied => format!("^{text}"),
        AwaitedDoubt::FailingValue if text.ends_with(['=', ':']) => format!("{text} *0$"),
        AwaitedDoubt::Restricted | AwaitedDoubt::FailingValue => format!("{text}$"),
        // No pattern looks behind its match.
        AwaitedDoubt::TakenBack => return String::new(),
    };
    format!("'{}'", pattern.replace('\'', r"'\''"))
}

/// Returns a line without what a logger puts in front of it.
fn message(line: &str) -> &str {
    let mut rest = line;
    while let Some(shorter) = without_prefix(rest) {
        rest = shorter;
    }
    let body = rest.trim_ascii_start();
    let behind = body.strip_prefix("ERROR").filter(|rest| rest.starts_with([' ', ':', '\t']));
    behind.unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn an_error_in_the_awaited_line_is_found_unless_the_pattern_spells_it_out() {
        for (log, spelled, found) in [
            ("up\nIntSem ERROR - |tick count| 12\nbye\n", "tick count", true),
            ("IntSem ERROR - |tick count|", "tick count", true),
            ("|tick count| ERROR\n", "tick count", true),
            ("IntSem |ERROR - tick count| 12\n", "ERROR - tick count", false),
            ("ERROR\n|tick count| 12\nERROR\n", "tick count", false),
            ("IntSem - |tick count\n|ERROR\n", "tick count", false),
            ("NO ERROR - |tick count|\n", "tick count", false),
            ("ERROR |cannot open| a.bin\n", "cannot open", false),
            ("[00:00:01.000] ERROR: |cannot open|\n", "cannot open", false),
            ("ERROR |tick count|: ERROR 5\n", "tick count", true),
            ("time |sync| lost\n", "sync", true),
            ("|temp| sensor: read error -5\n", "temp", true),
            ("tls: |handshake complete|: certificate verify failed\n", "handshake complete", true),
            ("update |complete|, old image invalid now\n", "complete", false),
            ("mqtt: |connected| after 2 failed attempts\n", "connected", false),
            ("||", "", false),
        ] {
            let start = log.find('|').unwrap() as u64;
            let end = log.rfind('|').unwrap() as u64 - 1;
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(log.replace('|', "").as_bytes()).unwrap();
            let part = start..start + spelled.len() as u64;
            let parts = std::slice::from_ref(&part);
            let none = PatternSet::new(&[]).unwrap();
            let line = AwaitedLine::read(&file, end).unwrap().error_beside(parts, &none);
            assert_eq!(line.is_some(), found, "{log:?}");
            let allowed = PatternSet::new(&["tick|sync|temp|tls".parse().unwrap()]).unwrap();
            let line = AwaitedLine::read(&file, end).unwrap();
            assert_eq!(line.error_beside(parts, &allowed), None, "{log:?}");
        }
    }

    #[test]
    fn a_text_that_proves_nothing_is_found_with_a_pattern_for_a_pass() {
        for (log, found) in [
            ("boot in|complete|, halted\n", Some(r"'\bcomplete\b'")),
            ("up\r\nmain |rc=|-5\r\nbye\n", Some(r"'rc= *0$'")),
            ("up\nnot |all tests| passed\n", Some("'^all tests'")),
            ("in\x1b[1m|complete|", Some(r"'\bcomplete\b'")),
            ("not \x1b[32m|ready|\x1b[0m\n", Some("'^ready'")),
            ("self-test |passed|? no\n", Some("'passed$'")),
            ("All tests |passed| except spi\n", Some("'passed$'")),
            ("|exit code 0|x5\n", Some(r"'\bexit code 0\b'")),
            ("not\n|ready|\n", None),
            ("|rc=|0\n", None),
            ("\u{e9}|ready|\n", None),
            ("boot |complete\r\n|next", None),
        ] {
            let start = log.find('|').unwrap() as u64;
            let end = log.rfind('|').unwrap() as u64 - 1;
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(log.replace('|', "").as_bytes()).unwrap();
            let (matched, none) = (start..end, PatternSet::new(&[]).unwrap());
            let doubtful = |spelled: &[Range<u64>], allowed: &PatternSet| {
                AwaitedLine::read(&file, end).unwrap().doubtful_text(spelled, &matched, allowed)
            };
            let doubt = doubtful(std::slice::from_ref(&matched), &none);
            let pattern = doubt.map(|(_, text, doubt)| distinct_pattern(&text, doubt));
            assert_eq!(pattern.as_deref(), found, "{log:?}");
            let allowed = PatternSet::new(&[".+".parse().unwrap()]).unwrap();
            assert_eq!(doubtful(std::slice::from_ref(&matched), &allowed), None, "{log:?}");
            // A text of an earlier wait.
            assert_eq!(doubtful(std::slice::from_ref(&(0..end + 1)), &none), None, "{log:?}");
        }
    }
}
