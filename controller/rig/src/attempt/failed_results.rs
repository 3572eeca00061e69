//! Finds the first failed result in a log that no report consists of.
//!
//! # Design
//! The whole log is read once, after the attempt, and only of a run that would pass. Most of it is
//! passed over by one search for the words of results, so lines are cut out only around these.
//!
//! Evidence of a crash counts from the first line of a report on. In front of it firmware prints
//! what it kept of an earlier crash.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use crate::console::lines::MAX_LINE;
use crate::console::{PatternSet, candidate, readable, tells_crash, tells_failure};
use crate::judge::ByteRange;
use crate::results::ReadLines;

/// Bytes read at once.
const STRIDE: usize = 256 << 10;
/// Longest quote of a line.
const QUOTE: usize = 200;

/// What is known of a log before it is searched.
pub(super) struct KnownLines<'a> {
    /// Lines of reports: the report says what they mean.
    pub(super) read: &'a ReadLines,
    /// Texts that the plan expected.
    pub(super) expected: &'a [Range<u64>],
    /// Lines that are harmless.
    pub(super) allowed: &'a PatternSet,
}

/// A line: where it lies in its log, and its text.
pub(super) type FoundLine = (Range<u64>, String);

/// Returns the range of a line, with a quote of bounded length.
pub(super) fn quoted(file: &str, (span, mut text): FoundLine) -> ByteRange {
    text.truncate(text.floor_char_boundary(QUOTE));
    ByteRange { file: file.to_owned(), start: span.start, end: span.end, text }
}

/// Reads bytes of a log at an offset; none at its end.
pub(super) fn read_some(log: &File, buf: &mut [u8], at: u64) -> io::Result<usize> {
    loop {
        match log.read_at(buf, at) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Returns the first line within a range of a log that says that a test failed, or that the
/// firmware crashed within its report.
pub(super) fn failed_result(
    log: &File,
    range: Range<u64>,
    known: &KnownLines<'_>,
) -> io::Result<Option<FoundLine>> {
    let mut buf = vec![0; STRIDE + MAX_LINE];
    // What is in the buffer: the offset of its first byte, and how much of a line was kept.
    let (mut at, mut kept) = (range.start, 0);
    loop {
        let room = range.end.saturating_sub(at + kept as u64).min(STRIDE as u64) as usize;
        let len = read_some(log, &mut buf[kept..kept + room], at + kept as u64)?;
        let filled = kept + len;
        let lines = match memchr::memrchr2(b'\n', b'\r', &buf[..filled]) {
            _ if len == 0 => filled,
            Some(end) if filled - end <= MAX_LINE => end + 1,
            // A longer line is searched as several.
            _ if filled > MAX_LINE => filled,
            _ => 0,
        };
        let found = search(&buf[..lines], at, known);
        if found.is_some() || len == 0 {
            return Ok(found);
        }
        buf.copy_within(lines..filled, 0);
        (at, kept) = (at + lines as u64, filled - lines);
    }
}

/// Searches whole lines, of which the first begins at an offset.
fn search(lines: &[u8], offset: u64, known: &KnownLines<'_>) -> Option<FoundLine> {
    let mut from = 0;
    while let Some(hit) = candidate(lines.get(from..)?) {
        let hit = from + hit;
        let start = memchr::memrchr2(b'\n', b'\r', &lines[..hit]).map_or(0, |end| end + 1);
        let end = memchr::memchr2(b'\n', b'\r', &lines[hit..]).map_or(lines.len(), |n| hit + n);
        let span = offset + start as u64..offset + end as u64;
        if let Some(text) = failure(&lines[start..end], &span, known) {
            return Some((span, text));
        }
        from = end + 1;
    }
    None
}

fn failure(line: &[u8], span: &Range<u64>, known: &KnownLines<'_>) -> Option<String> {
    let expected = |text: &Range<u64>| text.start < span.end && span.start < text.end;
    if known.read.contains(span.start) || known.expected.iter().any(expected) {
        return None;
    }
    let text = readable(&line[..line.len().min(MAX_LINE)]);
    let text = text.trim_ascii();
    let within = || known.read.begins_before(span.start);
    let fails = tells_failure(text) || within() && tells_crash(text);
    let failed = fails && !known.allowed.matches(text.as_bytes());
    failed.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn found(log: &[u8], range: Range<u64>, expected: &[Range<u64>]) -> Option<FoundLine> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(log).unwrap();
        let (read, allowed) = (ReadLines::default(), PatternSet::new(&[]).unwrap());
        let known = KnownLines { read: &read, expected, allowed: &allowed };
        failed_result(&file, range, &known).unwrap()
    }

    #[test]
    fn a_log_that_cannot_be_read_is_no_log_without_failures() {
        let folder = File::open(std::env::temp_dir()).unwrap();
        let (read, allowed) = (ReadLines::default(), PatternSet::new(&[]).unwrap());
        let known = KnownLines { read: &read, expected: &[], allowed: &allowed };
        failed_result(&folder, 0..100, &known).unwrap_err();
    }

    #[test]
    fn the_first_failed_result_is_found_wherever_it_stands() {
        let text = "Tests: 3 failed";
        for before in [0, 1, STRIDE - 20, STRIDE - 5, STRIDE, STRIDE + 3, 3 * STRIDE] {
            for (fill, end) in [("all is well\n", "\n"), ("x\r\n", "\r\n"), ("0 failures\n", "")] {
                // Each of these lines is looked at, so a few are enough.
                let before = if fill.starts_with('0') { before.min(1000) } else { before };
                let mut log = fill.repeat(before / fill.len() + 1).into_bytes();
                let start = log.len() as u64;
                log.extend_from_slice(format!("{text}{end}").as_bytes());
                let whole = 0..log.len() as u64;
                let line = start..start + text.len() as u64;
                let wanted = Some((line.clone(), text.to_owned()));
                assert_eq!(found(&log, whole.clone(), &[]), wanted, "{before} {fill:?}");
                // What the plan expected, and what lies outside of the range, does not count.
                let expected = line.start + 2..line.end;
                assert_eq!(found(&log, whole, std::slice::from_ref(&expected)), None);
                assert_eq!(found(&log, 0..start, &[]), None);
            }
        }
    }

    #[test]
    fn text_in_another_form_and_endless_lines_are_searched() {
        let wide: Vec<u8> = "x\n3 tests failed\n".bytes().flat_map(|b| [b, 0]).collect();
        assert_eq!(found(&wide, 0..wide.len() as u64, &[]).unwrap().1, "3 tests failed");
        let endless = vec![b'x'; 5 * STRIDE];
        assert_eq!(found(&endless, 0..endless.len() as u64, &[]), None);
    }
}
