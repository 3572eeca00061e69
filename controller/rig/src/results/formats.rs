//! The list of all result formats, and which of them opens a line.
//!
//! A new format is a file with a [`FormatSpec`] and a grammar, and a place in [`FORMATS`].

use super::grammar::FormatSpec;
use super::{gtest, libtest, tap, unity, ztest};
use crate::console::lines::ReportLine;

/// All formats but a plan's markers; the first that knows a line counts.
static FORMATS: [FormatSpec; 6] =
    [tap::KTAP, tap::TAP, ztest::ZTEST, gtest::GTEST, libtest::LIBTEST, unity::UNITY];

/// Which bytes a first line of a report may begin with.
static BEGINS: [bool; 256] = {
    let mut table = [false; 256];
    let mut format = 0;
    while format < FORMATS.len() {
        let begins = FORMATS[format].begins;
        let mut at = 0;
        while at < begins.len() {
            table[begins[at] as usize] = true;
            at += 1;
        }
        format += 1;
    }
    table
};

/// Tells cheaply whether a line could be the first of a report: most console lines are not.
fn may_open(text: &str) -> bool {
    let holds = |format: &FormatSpec| {
        format.holds.is_some_and(|byte| memchr::memchr(byte, text.as_bytes()).is_some())
    };
    let first = text.as_bytes().first();
    first.is_some_and(|&byte| BEGINS[usize::from(byte)]) || FORMATS.iter().any(holds)
}

/// Lists the formats that alone can have printed a line.
pub(super) fn opened_by<'a>(
    line: ReportLine<'a>,
) -> impl Iterator<Item = &'static FormatSpec> + use<'a> {
    let formats: &'static [FormatSpec] = if may_open(line.text) { &FORMATS } else { &[] };
    formats.iter().filter(move |format| (format.opens)(&line))
}

#[cfg(test)]
mod tests {
    use jig_model::result::ResultFormat;

    use super::*;
    use crate::console::lines::Span;

    #[test]
    fn each_format_opens_with_a_byte_that_it_declares() {
        for (text, wanted) in [
            ("KTAP version 1", ResultFormat::Ktap),
            ("TAP version 14", ResultFormat::Tap),
            ("1..3", ResultFormat::Tap),
            ("ok 1 - a", ResultFormat::Tap),
            ("not ok 1 - a", ResultFormat::Tap),
            ("Running TESTSUITE a", ResultFormat::Ztest),
            ("Running test suite a", ResultFormat::Ztest),
            ("START - a", ResultFormat::Ztest),
            ("PASS - a in 0.001 seconds", ResultFormat::Ztest),
            ("FAIL - a in 0.001 seconds", ResultFormat::Ztest),
            ("SKIP - a in 0.001 seconds", ResultFormat::Ztest),
            ("PROJECT EXECUTION FAILED", ResultFormat::Ztest),
            ("[==========] Running 1 test from 1 test suite.", ResultFormat::Gtest),
            ("[ RUN      ] a.b", ResultFormat::Gtest),
            ("running 2 tests", ResultFormat::Libtest),
            ("a.c:1:b:PASS", ResultFormat::Unity),
            ("TEST(a, b) PASS", ResultFormat::Unity),
            ("IGNORE_TEST(a, b)", ResultFormat::Unity),
            ("3 Tests 1 Failures 0 Ignored", ResultFormat::Unity),
        ] {
            let line = ReportLine::new(text, Span { start: 0, end: 0 }).unwrap();
            let format = FORMATS.iter().find(|format| (format.opens)(&line));
            let format = format.unwrap_or_else(|| panic!("{text:?} opens nothing"));
            assert_eq!(format.format, wanted, "{text}");
            let begins = format.begins.contains(&text.as_bytes()[0]);
            let holds = format.holds.is_some_and(|byte| text.as_bytes().contains(&byte));
            assert!(begins || holds, "{text:?} is filtered out");
            assert_eq!(opened_by(line).next().map(|format| format.format), Some(wanted));
        }
        let prose = ReportLine::new("hello world", Span { start: 0, end: 0 }).unwrap();
        assert!(!may_open(prose.text) && opened_by(prose).next().is_none());
    }
}
