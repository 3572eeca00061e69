//! Finds the first failed result in a log that no report consists of.
//!
//! # Design
//! The whole log is read once, after the attempt, and only of a run that would pass. Most of it is
//! passed over by one search for the words of results, so lines are cut out only around these.
//!
//! Evidence of a crash counts from the first line of a report on. In front of it firmware prints
//! what it kept of an earlier crash, so that only phrases of an end count. On a console beside that of the
//! report the time of that line decides, as far as the host can tell what came first. In front of an awaited
//! text that is a verdict on tests, all evidence counts: nothing tells where the tests begin.
//!
//! A text that the plan expects is a failure that the user knows of only as far as the pattern
//! spells it out: `passed` says nothing of the `1 failed` on the same line, and neither does `.*`.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use crate::console::lines::{MAX_LINE, control_strings};
use crate::console::{
    BESIDE, PatternSet, alarm_candidate, candidate, counts_failure, failed_in_list,
    may_fail_in_list, names_failure, output_of_open_test, parity_lines, pieces, readable,
    refusal_candidate, refuses, tells_alarm, tells_crash, tells_crash_of_start, tells_failure,
    tells_fatal_end, writes_over,
};
use crate::judge::ByteRange;
use crate::results::ReadLines;

/// Bytes read at once, and the longest line that is not cut.
const STRIDE: usize = 256 << 10;
/// How far the pieces of a longer line overlap.
const OVERLAP: usize = MAX_LINE;
/// How far around a line the rows beside it are looked for, and the longest row.
const AROUND: u64 = 2 << 10;
const ROW: usize = 256;
/// Longest quote of a line.
const QUOTE: usize = 200;

/// What is known of a log before it is searched.
pub(super) struct KnownLines<'a> {
    /// Lines of reports: the report says what they mean.
    pub(super) read: &'a ReadLines,
    /// Texts that the plan expected, as far as its patterns spell them out.
    pub(super) spelled: &'a [Range<u64>],
    /// Crashes that the firmware expected.
    pub(super) excused: &'a [Range<u64>],
    /// Lines that are harmless.
    pub(super) allowed: &'a PatternSet,
    /// Where evidence of a crash begins to count; nowhere without tests.
    pub(super) crash_from: Option<u64>,
}

impl KnownLines<'_> {
    /// Tells what of a crash counts at an offset.
    fn crashes_at(&self, start: u64) -> CrashSigns {
        match self.crash_from.is_some_and(|from| from <= start) {
            true => CrashSigns::Evidence,
            false => CrashSigns::Phrases,
        }
    }
}

/// What of a crash counts in a text.
#[derive(Debug, Clone, Copy)]
enum CrashSigns {
    /// Nothing: it is a part of a line that the plan knows.
    None,
    /// Phrases by which one system tells of its end: none of them tells of an earlier boot.
    Phrases,
    /// All evidence.
    Evidence,
}

impl CrashSigns {
    fn are_in(self, piece: &str) -> bool {
        match self {
            Self::None => false,
            Self::Phrases => tells_fatal_end(piece),
            Self::Evidence => tells_crash(piece),
        }
    }
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

/// Returns the part of a line that is quoted: of a long one what stands around the first word of a
/// result.
pub(super) fn quotable(text: &str) -> &str {
    let hit = candidate(text.as_bytes()).unwrap_or_default();
    let from = if text.len() > QUOTE { hit.saturating_sub(QUOTE / 2) } else { 0 };
    &text[text.floor_char_boundary(from)..]
}

/// Hands out a range of a log as blocks of whole lines, each with its offset, until an answer comes.
/// A line that is too long for one comes as blocks that overlap.
pub(super) fn find_in_blocks<T>(
    log: &File,
    range: Range<u64>,
    mut look: impl FnMut(&[u8], u64) -> Option<T>,
) -> io::Result<Option<T>> {
    let mut buf = vec![0; 2 * STRIDE];
    // What is in the buffer: the offset of its first byte, and how much of a line was kept, which is
    // less than a stride.
    let (mut at, mut kept) = (range.start, 0);
    loop {
        let room = range.end.saturating_sub(at + kept as u64).min(STRIDE as u64) as usize;
        let len = read_some(log, &mut buf[kept..kept + room], at + kept as u64)?;
        let filled = kept + len;
        let (block, done) = match memchr::memrchr2(b'\n', b'\r', &buf[..filled]) {
            _ if len == 0 => (filled, filled),
            Some(end) => (end + 1, end + 1),
            None if filled >= STRIDE => (filled, filled - OVERLAP),
            None => (0, 0),
        };
        let found = look(&buf[..block], at);
        if found.is_some() || len == 0 {
            return Ok(found);
        }
        buf.copy_within(done..filled, 0);
        (at, kept) = (at + done as u64, filled - done);
    }
}

/// Lists the lines of a block that begins at an offset, without empty ones.
pub(super) fn lines_in(block: &[u8], at: u64) -> impl Iterator<Item = (Range<u64>, &[u8])> {
    let mut from = 0;
    let ends = memchr::memchr2_iter(b'\n', b'\r', block).chain([block.len()]);
    let spans = ends.map(move |end| std::mem::replace(&mut from, end + 1)..end);
    spans
        .filter(|span| !span.is_empty())
        .map(move |span| (at + span.start as u64..at + span.end as u64, &block[span]))
}

/// Returns the first line within a range of a log that says that a test failed, or that the
/// firmware crashed within its report.
pub(super) fn failed_result(
    log: &File,
    range: Range<u64>,
    known: &KnownLines<'_>,
) -> io::Result<Option<FoundLine>> {
    let inside = range.clone();
    let found = find_in_blocks(log, range, |lines, at| {
        search(lines, at, &mut |span| failed_row(log, &inside, span, known), known).transpose()
    })?;
    found.transpose()
}

/// Lines that count unless they are a part of a report, or the plan knows of them.
pub(super) struct LineSearch {
    /// Finds where such a line may be.
    pub(super) candidate: fn(&[u8]) -> Option<usize>,
    /// Tells whether a readable line is one.
    pub(super) tells: fn(&str) -> bool,
}

/// Answers that refuse what was sent.
pub(super) const REFUSALS: LineSearch = LineSearch { candidate: refusal_candidate, tells: refuses };

/// What looks like a crash among the results of a report.
pub(super) const ALARMS: LineSearch = LineSearch { candidate: alarm_candidate, tells: tells_alarm };

/// What tells of a crash in front of an awaited text that is no verdict on tests.
pub(super) const CRASHES_OF_START: LineSearch =
    LineSearch { candidate: alarm_candidate, tells: tells_crash_of_start };

/// Returns the first such line within a range of a log, unless the plan spells it out.
pub(super) fn unspelled_line(
    log: &File,
    range: Range<u64>,
    known: &KnownLines<'_>,
    LineSearch { candidate, tells }: LineSearch,
) -> io::Result<Option<FoundLine>> {
    find_in_blocks(log, range, |lines, offset| {
        let mut from = 0;
        while let Some(hit) = lines.get(from..).and_then(candidate) {
            let hit = from + hit;
            let start = memchr::memrchr2(b'\n', b'\r', &lines[..hit]).map_or(0, |end| end + 1);
            let end = memchr::memchr2(b'\n', b'\r', &lines[hit..]).map_or(lines.len(), |n| hit + n);
            let span = offset + start as u64..offset + end as u64;
            from = end + 1;
            let text = readable(&lines[start..end]);
            let printed = match known.read.contains(span.start) {
                true => output_of_open_test(&text),
                false => Some(&*text),
            };
            let Some(printed) = printed else { continue };
            let within = |part: &Range<u64>| part.start < span.end && span.start < part.end;
            let spelled = known.spelled.iter().filter(|part| within(part)).any(|part| {
                let cut =
                    |at: u64| text.floor_char_boundary(at.saturating_sub(span.start) as usize);
                tells(&text[cut(part.start)..cut(part.end)])
            });
            let excused = spelled
                || known.excused.iter().any(within)
                || known.allowed.matches(text.as_bytes());
            if !excused && tells(printed) {
                return Some((span, quotable(printed.trim_ascii()).to_owned()));
            }
        }
        None
    })
}

/// Searches whole lines, of which the first begins at an offset.
fn search(
    lines: &[u8],
    offset: u64,
    look_beside: &mut dyn FnMut(&Range<u64>) -> io::Result<Option<FoundLine>>,
    known: &KnownLines<'_>,
) -> io::Result<Option<FoundLine>> {
    let mut from = 0;
    while let Some(hit) = lines.get(from..).and_then(candidate) {
        let hit = from + hit;
        let start = memchr::memrchr2(b'\n', b'\r', &lines[..hit]).map_or(0, |end| end + 1);
        let end = memchr::memchr2(b'\n', b'\r', &lines[hit..]).map_or(lines.len(), |n| hit + n);
        let span = offset + start as u64..offset + end as u64;
        if let Some(text) = failure(&lines[start..end], &span, known) {
            return Ok(Some((span, text)));
        }
        if end - start <= ROW && may_fail_in_list(&readable(&lines[start..end])) {
            let row = look_beside(&span)?;
            if row.is_some() {
                return Ok(row);
            }
        }
        from = end + 1;
    }
    // No report is read from such lines.
    Ok(parity_lines(lines).into_iter().find_map(|(place, text)| {
        let span = offset + place.start as u64..offset + place.end as u64;
        let excused = |part: &Range<u64>| part.start < span.end && span.start < part.end;
        if candidate(&text).is_none() || known.excused.iter().any(excused) {
            return None;
        }
        failure_in(&text, known.crashes_at(span.start), known).map(|text| (span, text))
    }))
}

/// Returns the failed row that a line is, or is the head of, by the lines beside it.
fn failed_row(
    log: &File,
    range: &Range<u64>,
    line: &Range<u64>,
    known: &KnownLines<'_>,
) -> io::Result<Option<FoundLine>> {
    let from = line.start.saturating_sub(AROUND).max(range.start);
    let to = line.end.saturating_add(AROUND).min(range.end);
    let mut bytes = vec![0; to.saturating_sub(from) as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        match read_some(log, &mut bytes[filled..], from + filled as u64)? {
            0 => break,
            len => filled += len,
        }
    }
    bytes.truncate(filled);
    let mut rows: Vec<FoundLine> = Vec::new();
    let mut at = from;
    for bytes in bytes.split(|byte| matches!(byte, b'\n' | b'\r')) {
        let span = at..at + bytes.len() as u64;
        at = span.end + 1;
        // A row in another report says nothing of this one, but the line itself is not read.
        if !bytes.is_empty() {
            rows.push((span, readable(bytes).into_owned()));
        }
    }
    let Some(index) = rows.iter().position(|(span, _)| span.start == line.start) else {
        return Ok(None);
    };
    let texts: Vec<&str> = rows.iter().map(|(_, text)| text.as_str()).collect();
    let (before, behind) = (&texts[index.saturating_sub(BESIDE)..index], &texts[index + 1..]);
    let behind = &behind[..behind.len().min(BESIDE)];
    let found = failed_in_list(before, texts[index], behind).map(|row| rows[index + row].clone());
    Ok(found.filter(|(span, text)| {
        let within = |part: &&Range<u64>| part.start < span.end && span.start < part.end;
        let spelled = known.spelled.iter().find(within).is_some_and(|part| {
            let cut = |at: u64| text.floor_char_boundary(at.saturating_sub(span.start) as usize);
            names_failure(&text[cut(part.start)..cut(part.end)])
        });
        let excused = known.excused.iter().any(|part| within(&part));
        let read = known.read.contains(span.start);
        !(spelled || excused || read || known.allowed.matches(text.as_bytes()))
    }))
}

fn failure(line: &[u8], span: &Range<u64>, known: &KnownLines<'_>) -> Option<String> {
    let excused = |text: &Range<u64>| text.start < span.end && span.start < text.end;
    // No report is read from what a terminal does not show, and a title has no results.
    if let Some(hidden) =
        control_strings(line).find_map(|text| failure_in(text, CrashSigns::None, known))
    {
        return Some(hidden);
    }
    // A reader of the terminal sees something else than the report has read.
    let read = known.read.contains(span.start) && !writes_over(line);
    if read || known.excused.iter().any(excused) {
        return None;
    }
    let inside = |part: &Range<u64>| {
        let from = part.start.max(span.start) - span.start;
        let to = part.end.min(span.end).saturating_sub(span.start);
        (from < to).then_some(from as usize..to as usize)
    };
    let spelled: Vec<_> = known.spelled.iter().filter_map(inside).collect();
    let signs = if spelled.is_empty() { known.crashes_at(span.start) } else { CrashSigns::None };
    let found = failure_in(line, signs, known)?;
    if !spelled.iter().any(|part| names_failure(&readable(&line[part.clone()]))) {
        return Some(found);
    }
    // A failure that the plan expects. A count is expected only with its number, and of other text
    // what stands beside it counts.
    let mut unspelled = line.to_vec();
    let digits = spelled.iter().flat_map(|part| part.clone());
    digits.for_each(|at| {
        if unspelled[at].is_ascii_digit() {
            unspelled[at] = b'0';
        }
    });
    if first_piece(&unspelled, known, counts_failure).is_some() {
        return Some(found);
    }
    let ends = spelled.iter().map(|part| part.start).chain([line.len()]);
    let starts = [0].into_iter().chain(spelled.iter().map(|part| part.end));
    let mut beside = starts.zip(ends).filter(|(start, end)| start < end);
    beside.find_map(|(start, end)| failure_in(&line[start..end], CrashSigns::None, known))
}

/// Returns the piece of a text that says that a test failed, or that the firmware crashed.
fn failure_in(text: &[u8], signs: CrashSigns, known: &KnownLines<'_>) -> Option<String> {
    first_piece(text, known, |piece| tells_failure(piece) || signs.are_in(piece))
}

/// Returns the first piece of a text that fails and is not allowed.
fn first_piece(
    text: &[u8],
    known: &KnownLines<'_>,
    fails: impl Fn(&str) -> bool,
) -> Option<String> {
    let text = readable(text);
    let failed = |piece: &&str| fails(piece) && !known.allowed.matches(piece.as_bytes());
    let mut pieces = text.split('\n').flat_map(pieces).map(str::trim_ascii);
    pieces.find(failed).map(|piece| quotable(piece).to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn found(log: &[u8], range: Range<u64>, spelled: &[Range<u64>]) -> Option<FoundLine> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(log).unwrap();
        let (read, allowed) = (ReadLines::default(), PatternSet::new(&[]).unwrap());
        let known = KnownLines {
            read: &read,
            spelled,
            excused: &[],
            allowed: &allowed,
            crash_from: read.begin(),
        };
        failed_result(&file, range, &known).unwrap()
    }

    #[test]
    fn a_log_that_cannot_be_read_is_no_log_without_failures() {
        let folder = File::open(std::env::temp_dir()).unwrap();
        let (read, allowed) = (ReadLines::default(), PatternSet::new(&[]).unwrap());
        let known = KnownLines {
            read: &read,
            spelled: &[],
            excused: &[],
            allowed: &allowed,
            crash_from: None,
        };
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
                let spelled = line.start + 2..line.end;
                assert_eq!(found(&log, whole, std::slice::from_ref(&spelled)), None);
                assert_eq!(found(&log, 0..start, &[]), None);
            }
        }
    }

    #[test]
    fn text_in_another_form_and_endless_lines_are_searched() {
        let wide: Vec<u8> = "x\n3 tests failed\n".bytes().flat_map(|b| [b, 0]).collect();
        assert_eq!(found(&wide, 0..wide.len() as u64, &[]).unwrap().1, "3 tests failed");
        for line in [
            &b"flash: \x1b[31mF\x1b[1mAIL\x1b[0m\n"[..],
            b"flash: \x9b31mF\x9b1mAIL\x9b0m\n",
            b"\xc0ram: PASS\xc0\xc0flash: FAIL\xc0\n",
        ] {
            let line = found(line, 0..line.len() as u64, &[]);
            assert_eq!(line.map(|(_, text)| text).as_deref(), Some("flash: FAIL"));
        }
        // Each state of a row that is written over, a bit of parity, and what is too long for a word.
        let even: Vec<u8> =
            b"flash: FAIL\r".iter().map(|b| b | u8::from(b.count_ones() % 2 == 1) << 7).collect();
        let long = [&[b'x'; 30_000][..], b" flash: FAIL ", &[b'y'; 30_000], b"\n"].concat();
        for line in
            [&b"flash: FAIL\x1b[4DPASS\n"[..], b"flash: FAIL\x08\x08\x08\x08PASS\n", &even, &long]
        {
            let line = found(line, 0..line.len() as u64, &[]);
            assert_eq!(line.map(|(_, text)| text).as_deref(), Some("flash: FAIL"));
        }
        let endless = vec![b'x'; 5 * STRIDE];
        assert_eq!(found(&endless, 0..endless.len() as u64, &[]), None);
    }

    #[test]
    fn long_lines_are_searched_to_their_end() {
        let text = " Tests: 3 failed, 2 passed";
        for (what, fill) in [("bytes", "."), ("words", "word "), ("numbers", "1234 ")] {
            for before in [0, 100, MAX_LINE - 10, MAX_LINE + 10, STRIDE - 12, STRIDE, 3 * STRIDE] {
                for behind in [0, 100, MAX_LINE, 2 * STRIDE] {
                    let [before, behind] = [before, behind].map(|n| fill.repeat(n / fill.len()));
                    let log = format!("ok\n{before}{text} {behind}\nok\n");
                    let found = found(log.as_bytes(), 0..log.len() as u64, &[]);
                    let (span, quote) = found.unwrap_or_else(|| panic!("{what}"));
                    assert!(span.start >= 3 && quote.contains("3 failed"), "{what} {quote}");
                }
            }
        }
    }

    #[test]
    fn failures_that_a_pattern_spells_out_are_expected() {
        use jig_model::pattern::Pattern;

        use crate::console::spelled_parts;

        for (line, pattern, failure) in [
            ("11/12 tests passed", "tests passed", Some("11/12 tests passed")),
            ("11/12 tests passed", "^11/12 tests passed$", None),
            ("11/12 tests passed", r"^\d+/\d+ tests passed$", Some("11/12 tests passed")),
            ("Tests: 1 failed, 2 passed", "passed", Some("Tests: 1 failed, 2 passed")),
            ("Tests: 1 failed, 2 passed", "^Tests: .*$", Some("Tests: 1 failed, 2 passed")),
            ("Tests: 1 failed, 2 passed", "1 failed", None),
            ("Tests: 1 failed, 2 passed", r"\d failed", Some("Tests: 1 failed, 2 passed")),
            ("Tests: 1 failed, 2 passed", "(?i)FAILED", Some("Tests: 1 failed, 2 passed")),
            ("Failures: 1", "^Failures:", Some("Failures: 1")),
            ("Failures: 1", "^Failures: 1$", None),
            ("3 tests, 1 failure", r"\d+ failures?", Some("3 tests, 1 failure")),
            ("selftest FAILED", "FAILED", None),
            ("link: FAIL", "link: (PASS|FAIL)", None),
            ("link: FAIL", "link: [A-Z]+", Some("link: FAIL")),
            ("[FAIL] ram, [FAIL] flash", r"\[FAIL\] ram", Some(", [FAIL] flash")),
            ("0 failed", ".*", None),
        ] {
            let end = line.len();
            let compiled = Pattern::new(pattern);
            let pattern = compiled.unwrap_or_else(|_| Pattern::new(".+").unwrap());
            let set = PatternSet::new(std::slice::from_ref(&pattern)).unwrap();
            let at = (0..=end).find_map(|end| {
                let located = set.locate(0, line.as_bytes(), 0..end)?;
                Some((located.start, end))
            });
            let (start, end) = at.unwrap();
            let parts = spelled_parts(&pattern, &line.as_bytes()[..end], start).unwrap();
            let spelled: Vec<_> =
                parts.into_iter().map(|part| part.start as u64..part.end as u64).collect();
            let log = format!("{line}\n");
            let found = found(log.as_bytes(), 0..log.len() as u64, &spelled);
            assert_eq!(found.map(|(_, text)| text).as_deref(), failure, "{line} {pattern}");
        }
    }
}
