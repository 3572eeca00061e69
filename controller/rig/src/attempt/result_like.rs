//! Finds the line of an unknown result format that looks most like a result.
//!
//! Owns the words that results are made of. Decides nothing: the line is advice for the user who
//! writes the next command.

use std::fs::File;
use std::io;

use super::failed_results::read_some;
use crate::console::lines::{LineSplitter, ReportLine, lossy, plain};
use crate::console::log_prefix::without_prefix;
use crate::console::tells_failure;
use crate::judge::{ByteRange, ResultLike};

/// Most bytes looked at: a result comes last, and a flood must cost nothing.
const LOOKED_AT: u64 = 64 << 10;
/// Longest line that is quoted whole, so that it can be pasted as a pattern.
const MAX_LINE: usize = 120;
/// Words that decide, words that belong to a result, and a number reach it with one to spare.
const ENOUGH: u32 = 3;

const GOOD: &[&str] = &["pass", "passed", "passes", "ok", "success", "successful", "succeeded"];
const BAD: &[&str] =
    &["fail", "failed", "fails", "failure", "failures", "error", "errors", "ko", "nok", "aborted"];
const FRAME: &[&str] = &[
    "test",
    "tests",
    "testing",
    "result",
    "results",
    "summary",
    "suite",
    "done",
    "finished",
    "complete",
    "completed",
    "end",
    "all",
    "total",
    "selftest",
];

/// Finds the line within a console's output that looks most like a result; of equals the last.
pub(super) fn result_like(log: &File, output: &ByteRange) -> io::Result<Option<ResultLike>> {
    let start = output.end.saturating_sub(LOOKED_AT).max(output.start);
    let mut bytes = vec![0; output.end.saturating_sub(start) as usize];
    let len = read_some(log, &mut bytes, start)?;
    Ok(best_line(start, &bytes[..len]).map(|(range, until)| ResultLike {
        range: ByteRange { file: output.file.clone(), ..range },
        until,
    }))
}

fn best_line(start: u64, bytes: &[u8]) -> Option<(ByteRange, Option<String>)> {
    let mut best: Option<(u32, ByteRange, Option<String>)> = None;
    let mut splitter = LineSplitter::new(start);
    let mut look = |bytes: &[u8], start: u64, end: u64| {
        let clean = plain(bytes);
        let text = lossy(&clean);
        let text = text.trim_ascii();
        let score = score(text);
        if score >= ENOUGH && best.as_ref().is_none_or(|(most, ..)| score >= *most) {
            let range = ByteRange { file: String::new(), start, end, text: text.to_owned() };
            best = Some((score, range, pattern(text)));
        }
    };
    splitter.feed(bytes, |raw| {
        if !raw.cut {
            look(raw.bytes, raw.span.start, raw.span.end);
        }
    });
    if let Some(raw) = splitter.unfinished() {
        look(raw.bytes, raw.span.start, raw.span.end);
    }
    best.map(|(_, range, until)| (range, until))
}

/// Rates how much a line looks like a result; zero without a word that decides.
fn score(text: &str) -> u32 {
    if text.len() > MAX_LINE {
        return 0;
    }
    let mut found = [false; 4];
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        let is = |words: &[&str]| words.iter().any(|known| known.eq_ignore_ascii_case(word));
        found[0] |= is(GOOD);
        found[1] |= is(BAD);
        found[2] |= is(FRAME);
        found[3] |= word.bytes().all(|b| b.is_ascii_digit());
    }
    let [good, bad, frame, digits] = found.map(u32::from);
    let words = if good + bad == 0 { 0 } else { 2 * (good + bad) + 2 * frame + digits };
    let is_verdict = |cell: &str| {
        let named = |words: &[&str]| words.iter().any(|known| known.eq_ignore_ascii_case(cell));
        !cell.bytes().any(|b| b.is_ascii_lowercase()) && (named(GOOD) || named(BAD))
    };
    // A verdict in capitals that is all of its line, of brackets, or of a cell of a table.
    let alone = text.split(['|', '[', ']']).any(|cell| is_verdict(cell.trim_ascii()));
    if alone { words.max(ENOUGH) } else { words }
}

/// Writes the pattern of a line that tells of a pass, as an argument for a shell.
fn pattern(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let bad = |at: usize| {
        let denied = at > 0 && matches!(words[at - 1], "0" | "no" | "zero" | "without");
        let counted = words.get(at + 1) == Some(&"0");
        BAD.contains(&words[at]) && !denied && !counted
    };
    if (0..words.len()).any(bad) || tells_failure(text) {
        return None;
    }
    // Time stamps and levels differ from run to run.
    let messages = std::iter::successors(Some(text), |text| without_prefix(text));
    let message = messages.filter(|message| !message.trim_ascii().is_empty()).last()?;
    let span = crate::console::lines::Span { start: 0, end: 0 };
    let line = ReportLine::new(message, span)?;
    let anchor = if line.text == text { "^" } else { "" };
    let escaped = regex::escape(line.text).replace('\'', r"'\''");
    Some(format!("'{anchor}{escaped}$'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_most_like_a_result_is_found_with_its_pattern() {
        for (output, line, until) in [
            (
                "boot ok\nAll 12 tests passed.\nidle\n",
                "All 12 tests passed.",
                r"'^All 12 tests passed\.$'",
            ),
            (
                "start\n*** SELFTEST: PASS ***",
                "*** SELFTEST: PASS ***",
                r"'^\*\*\* SELFTEST: PASS \*\*\*$'",
            ),
            (
                "[00:00:01.234,000] <inf> app: test run done, 0 errors\r\n",
                "[00:00:01.234,000] <inf> app: test run done, 0 errors",
                "'test run done, 0 errors$'",
            ),
            (
                "test passed\nit's ok: 3 of 3 tests\n",
                "it's ok: 3 of 3 tests",
                r"'^it'\''s ok: 3 of 3 tests$'",
            ),
            ("\x1b[32mresult: OK\x1b[0m\n", "result: OK", "'^result: OK$'"),
            ("Alpha | PASS |\nBeta | PASS |\n", "Beta | PASS |", r"'^Beta \| PASS \|$'"),
            ("main(): This is RIOT!\n[SUCCESS]\n", "[SUCCESS]", r"'^\[SUCCESS\]$'"),
            ("boot\nSUCCESS\n", "SUCCESS", "'^SUCCESS$'"),
            ("boot\nlong line about the link, ok\nOK\n", "OK", "'^OK$'"),
        ] {
            let (range, pattern) = best_line(0, output.as_bytes()).unwrap();
            assert_eq!((range.text.as_str(), pattern.as_deref()), (line, Some(until)), "{output}");
            let shown = &output.as_bytes()[range.start as usize..range.end as usize];
            assert!(String::from_utf8_lossy(shown).contains(line));
        }
    }

    #[test]
    fn a_failure_is_shown_and_not_suggested() {
        let (range, until) = best_line(7, b"3 tests failed, 2 passed\n").unwrap();
        assert_eq!((range.start, range.end, until), (7, 31, None));
        for line in [
            "1 of 2 (50%) tests successful",
            "selftest finished: 2/3 passed",
            "Two | FAIL |",
            "[FAILED]",
            "FAIL",
        ] {
            assert_eq!(best_line(0, line.as_bytes()).unwrap().1, None, "{line}");
        }
    }

    #[test]
    fn prose_is_not_like_a_result() {
        for prose in ["", "hello world\n", "ok\n", "errors\n", "testing the link\n", "12 34\n"] {
            assert_eq!(best_line(0, prose.as_bytes()), None, "{prose}");
        }
        let long = format!("all tests passed {}\n", "x".repeat(200));
        assert_eq!(best_line(0, long.as_bytes()), None);
    }
}
