//! The list of all result formats, and which of them opens a line.
//!
//! A new format is a file with a [`FormatSpec`] and a grammar, and a place in [`FORMATS`].

use std::sync::LazyLock;

use jig_model::result::ResultFormat;
use regex::Regex;

use super::grammar::FormatSpec;
use super::{
    aunit, catch2, check, cmocka, cpputest, defmt_test, doctest, embunit, golang, greentea, gtest,
    libtest, nuttx, pytest, tap, teamcity, unity, ztest,
};
use crate::console::lines::ReportLine;

/// All formats but a plan's markers; the first that knows a line counts.
static FORMATS: [FormatSpec; 19] = [
    tap::KTAP,
    tap::TAP,
    ztest::ZTEST,
    gtest::GTEST,
    libtest::LIBTEST,
    unity::UNITY,
    cpputest::CPPUTEST,
    cmocka::CMOCKA,
    embunit::EMBUNIT,
    check::CHECK,
    doctest::DOCTEST,
    catch2::CATCH2,
    greentea::GREENTEA,
    aunit::AUNIT,
    nuttx::NUTTX,
    pytest::PYTEST,
    golang::GOLANG,
    teamcity::SERVICE_MESSAGES,
    defmt_test::DEFMT_TEST,
];

/// For each byte, the formats whose first line may begin with it, one bit each.
static BEGINS: [u32; 256] = {
    let mut table = [0; 256];
    let mut format = 0;
    while format < FORMATS.len() {
        let begins = FORMATS[format].begins;
        let mut at = 0;
        while at < begins.len() {
            table[begins[at] as usize] |= 1 << format;
            at += 1;
        }
        format += 1;
    }
    table
};

/// Most texts looked for in one line; one that holds more may hold any.
const MAX_HELD: usize = 16;

/// Texts that some formats' first line holds, each with those formats, one bit each.
struct HeldTexts {
    texts: Vec<(&'static str, u32)>,
    /// A search for all of them: one pass over a line tells that none is there, as is true of most
    /// console lines.
    search: Option<Regex>,
    all: u32,
}

static HOLDS: LazyLock<HeldTexts> = LazyLock::new(|| {
    let mut texts: Vec<(&'static str, u32)> = Vec::new();
    for (index, format) in FORMATS.iter().enumerate() {
        for text in format.holds {
            match texts.iter_mut().find(|(known, _)| known == text) {
                Some((_, formats)) => *formats |= 1 << index,
                None => texts.push((text, 1 << index)),
            }
        }
    }
    let all = texts.iter().fold(0, |all, (_, formats)| all | formats);
    let words: Vec<String> = texts.iter().map(|(text, _)| regex::escape(text)).collect();
    HeldTexts { search: Regex::new(&words.join("|")).ok(), texts, all }
});

/// Returns the formats, one bit each, whose first line may begin with any byte and holds a text
/// that a line holds.
pub(super) fn holders(text: &str) -> u32 {
    let held = &*HOLDS;
    let Some(search) = &held.search else { return held.all };
    let (mut formats, mut at) = (0, 0);
    for _ in 0..MAX_HELD {
        let Some(found) = search.find_at(text, at) else { return formats };
        let known = held.texts.iter().find(|(text, _)| *text == found.as_str());
        formats |= known.map_or(0, |(_, formats)| *formats);
        // Texts may overlap; each begins with an ASCII character.
        at = found.start() + 1;
    }
    held.all
}

/// Lists the formats that alone can have printed a line, of those that the line's first byte and
/// the texts that it holds leave over.
pub(super) fn opened_by<'a>(
    line: ReportLine<'a>,
    held: u32,
) -> impl Iterator<Item = &'static FormatSpec> + use<'a> {
    let first = line.text.as_bytes().first().copied().unwrap_or_default();
    let mut left = held | BEGINS[usize::from(first)];
    let candidates = std::iter::from_fn(move || {
        let format = FORMATS.get(left.trailing_zeros() as usize)?;
        left &= left - 1;
        Some(format)
    });
    candidates.filter(move |format| (format.opens)(&line))
}

/// Lists the records that a line holds behind or in front of other text, each with its format.
pub(super) fn enclosed_in(text: &str) -> impl Iterator<Item = (&'static FormatSpec, &str)> {
    let greentea = FORMATS.iter().find(|spec| spec.format == ResultFormat::Greentea);
    greentea.into_iter().flat_map(|spec| greentea::pairs(text).map(move |pair| (spec, pair)))
}

#[cfg(test)]
mod tests {
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
            ("TEST(a, b) - 3 ms", ResultFormat::Cpputest),
            ("a.cpp:1: error: Failure in TEST(a, b)", ResultFormat::Cpputest),
            (
                "OK (1 tests, 1 ran, 1 checks, 0 ignored, 0 filtered out, 0 ms)",
                ResultFormat::Cpputest,
            ),
            (
                "Errors (ran nothing, 1 tests, 0 ran, 0 checks, 0 ignored, 1 filtered out, 0 ms)",
                ResultFormat::Cpputest,
            ),
            ("[==========] a: Running 1 test(s).", ResultFormat::Cmocka),
            ("OK (3 tests)", ResultFormat::Embunit),
            ("run 3 failures 1", ResultFormat::Embunit),
            ("a.b (c.c 1) d", ResultFormat::Embunit),
            ("Running suite(s): a", ResultFormat::Check),
            ("66%: Checks: 3, Failures: 1, Errors: 0", ResultFormat::Check),
            ("[doctest] test cases: 1 | 1 passed | 0 failed | 0 skipped", ResultFormat::Doctest),
            ("Randomness seeded to: 1", ResultFormat::Catch2),
            ("All tests passed (1 assertion in 1 test case)", ResultFormat::Catch2),
            ("a.cpp:1: FAILED:", ResultFormat::Catch2),
            ("test cases: 2 | 1 passed | 1 failed", ResultFormat::Catch2),
            ("{{__testcase_start;a}}", ResultFormat::Greentea),
            ("TestRunner started on 1 test(s).", ResultFormat::Aunit),
            (
                "Test summary: 1 passed, 0 failed, and 0 skipped, out of 1 test(s).",
                ResultFormat::Aunit,
            ),
            ("ostest_main: Exiting with status 0", ResultFormat::Nuttx),
            ("user_main: Exiting", ResultFormat::Nuttx),
            ("== test session starts ==", ResultFormat::Pytest),
            ("== 1 passed in 0.1s ==", ResultFormat::Pytest),
            ("=== RUN   TestA", ResultFormat::Go),
            ("--- PASS: TestA (0.00s)", ResultFormat::Go),
            ("##teamcity[testStarted name='a']", ResultFormat::Teamcity),
            ("x##teamcity[testCount count='3']", ResultFormat::Teamcity),
            ("(1/3) running `push`...", ResultFormat::DefmtTest),
            ("(2/3) ignoring `pop`... (tests/ring.rs:12)", ResultFormat::DefmtTest),
        ] {
            let line = ReportLine::new(text, Span { start: 0, end: 0 }).unwrap();
            let format = FORMATS.iter().find(|format| (format.opens)(&line));
            let format = format.unwrap_or_else(|| panic!("{text:?} opens nothing"));
            assert_eq!(format.format, wanted, "{text}");
            let begins = format.begins.contains(&text.as_bytes()[0]);
            let holds = format.holds.iter().any(|held| text.contains(held));
            assert!(begins || holds, "{text:?} is filtered out");
            assert_eq!(
                opened_by(line, holders(text)).next().map(|format| format.format),
                Some(wanted)
            );
        }
        let prose = ReportLine::new("hello world", Span { start: 0, end: 0 }).unwrap();
        assert!(opened_by(prose, holders(prose.text)).next().is_none());
    }

    #[test]
    fn texts_that_lines_hold_are_told_apart_by_where_they_begin() {
        let texts = &HOLDS.texts;
        assert!(HOLDS.search.is_some() && !texts.is_empty());
        for (text, _) in texts {
            assert!(text.as_bytes()[0].is_ascii());
            let others = texts.iter().filter(|(other, _)| other != text);
            assert!(others.clone().all(|(other, _)| !other.starts_with(text)), "{text:?}");
        }
        let all = texts.iter().map(|(text, _)| *text).collect::<String>();
        assert_eq!(holders(&all), HOLDS.all);
        assert_eq!(holders(&"a.c:1 ".repeat(100)), HOLDS.all);
        assert_eq!(holders("sensor: 12"), 0);
        // Overlapping: both are found.
        let both = holders("a.c:P:");
        assert_eq!(both, holders("a.c: ") | holders("x:P:"));
    }

    #[test]
    fn signs_of_failing_assertions_compile() {
        for format in &FORMATS {
            assert!(format.failing.compiles(), "{:?}", format.format);
        }
    }
}
