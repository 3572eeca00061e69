//! Output behind the end: what the target printed after its report, or after the last expected
//! text. Reads the complete logs of an attempt and decides nothing. A log that cannot be read is an
//! error.
//!
//! # Design
//! The lines are read from the log after the attempt and not while it runs. Hence the finding
//! depends on the bytes and not on how they arrived, and a run pays for it only once.
//!
//! A boot that the plan ends by a reset or by the power, with nothing but pauses behind an expected
//! text, has such an end, too. It reaches to where the next boot begins.
//!
//! On the other consoles, what was captured later than the end stands behind it: the indexes of the
//! logs hold the times, all of one clock. A line that was captured in the same moment counts as one
//! in front of the end.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use jig_model::ConsoleName;
use jig_model::plan::{ActionKind, Plan, PowerOp};

use super::failed_results::{FoundLine, find_in_blocks, lines_in, quotable, read_some};
use crate::console::lines::MAX_LINE;
use crate::console::{
    Follower, LogError, LogPaths, LogReader, PatternSet, RecordKind, is_cut_headline,
    is_suspicious, parity_lines, pieces, readable, tells_trouble,
};

/// Where the waits of the plan have read to in the last boot, by console.
pub(super) type WaitedTo = BTreeMap<ConsoleName, u64>;

/// Returns where the waits of the plan have read to in boot number `boots`.
pub(super) fn waited_to(
    cursors: &BTreeMap<ConsoleName, (usize, Follower)>,
    boots: usize,
) -> WaitedTo {
    let current = cursors.iter().filter(|(_, (boot, _))| *boot == boots);
    current.map(|(name, (_, follower))| (name.clone(), follower.cursor())).collect()
}

/// A text that the plan has waited for, behind which it has ended the boot by a reset or by the power.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AwaitedEnd {
    /// The number of the boot, from 1.
    pub(super) boot: usize,
    pub(super) console: ConsoleName,
    /// Where the wait has read to.
    pub(super) at: u64,
}

/// Returns the console of the text that ends the plan, if such a text ends it. Output behind an
/// earlier one belongs to the actions that follow.
pub(super) fn last_expected(plan: &Plan, primary: &ConsoleName) -> Option<ConsoleName> {
    let actions = plan.stages.iter().flat_map(|stage| &stage.steps).flat_map(|s| &s.behaviors);
    let ends = |kind: &ActionKind| {
        is_passive(kind) || matches!(kind, ActionKind::Power { op: PowerOp::Off })
    };
    let last = actions.flat_map(|behavior| &behavior.actions).rfind(|a| !ends(&a.kind))?;
    match &last.kind {
        ActionKind::Expect { console, .. } => Some(console.as_ref().unwrap_or(primary).clone()),
        _ => None,
    }
}

/// Tells whether an action leaves the board as it is and waits for nothing of it.
pub(super) fn is_passive(kind: &ActionKind) -> bool {
    matches!(kind, ActionKind::Sleep { .. } | ActionKind::Assert { .. })
}

/// Returns when the last byte before an offset was captured, in nanoseconds of the log's clock.
pub(super) fn captured_at(run: &Path, file: &str, offset: u64) -> Result<Option<u64>, LogError> {
    let log = open(run, file)?;
    let chunk = log.records().find(|record| match record.kind {
        RecordKind::Bytes(len) => record.offset.saturating_add(len) >= offset,
        _ => false,
    });
    Ok(chunk.map(|record| record.stamp.mono_ns))
}

/// Returns the offset of the first byte of a log that was captured behind a time.
pub(super) fn captured_behind(run: &Path, file: &str, time: u64) -> Result<Option<u64>, LogError> {
    let log = open(run, file)?;
    let behind = log
        .records()
        .find(|record| matches!(record.kind, RecordKind::Bytes(_)) && record.stamp.mono_ns > time);
    Ok(behind.map(|record| record.offset))
}

fn open(run: &Path, file: &str) -> Result<LogReader, LogError> {
    let raw = run.join(file);
    LogReader::open(&LogPaths { index: raw.with_extension("idx"), raw })
}

/// Tells whether a line behind the end of a report looks like a crash or tells of trouble.
pub(super) fn is_doubtful(line: &str) -> bool {
    is_suspicious(line) || tells_trouble(line)
}

/// Finds the first line within a range of a log that `looks` so and is neither allowed nor in a range
/// that is known to be harmless.
///
/// The rest of the line at the start is looked at as a line of its own.
pub(super) fn suspicious_line(
    log: &File,
    range: Range<u64>,
    looks: fn(&str) -> bool,
    (allowed, known): (&PatternSet, &[Range<u64>]),
) -> io::Result<Option<FoundLine>> {
    let start = range.start;
    find_in_blocks(log, range, |block, at| {
        // The rules of lines are compiled for the first that is not empty.
        for (span, line) in lines_in(block, at) {
            let is_known = known.iter().any(|k| k.start <= span.start && span.start < k.end);
            let line = if span.start == start { without_count(line) } else { line };
            if let Some(text) = suspicious_text(line, looks, allowed).filter(|_| !is_known) {
                return Some((span, text));
            }
        }
        parity_lines(block).into_iter().find_map(|(place, text)| {
            let span = at + place.start as u64..at + place.end as u64;
            let is_known = known.iter().any(|k| k.start <= span.start && span.start < k.end);
            let text = suspicious_text(&text, looks, allowed).filter(|_| !is_known)?;
            Some((span, text))
        })
    })
}

/// Finds the last line within a range of a log if it has no line end and was cut within the headline of
/// a crash.
pub(super) fn cut_headline(
    log: &File,
    range: Range<u64>,
    (allowed, known): (&PatternSet, &[Range<u64>]),
) -> io::Result<Option<FoundLine>> {
    let end = log.metadata()?.len().min(range.end);
    let from = range.start.max(end.saturating_sub(MAX_LINE as u64));
    let mut last = vec![0; end.saturating_sub(from) as usize];
    let read = read_some(log, &mut last, from)?;
    last.truncate(read);
    let start = memchr::memrchr2(b'\n', b'\r', &last).map_or(0, |end| end + 1);
    let span = from + start as u64..from + last.len() as u64;
    if known.iter().any(|k| k.start <= span.start && span.start < k.end) {
        return Ok(None);
    }
    let text = readable(&last[start..]);
    let cut = text.split('\n').next_back().map(str::trim_ascii_start);
    let cut = cut.filter(|text| is_cut_headline(text) && !allowed.matches(text.as_bytes()));
    Ok(cut.map(|text| (span, quotable(text).to_owned())))
}

/// Takes the count off the rest of a line whose label was awaited: `Pass: |2, fail: 0`.
fn without_count(rest: &[u8]) -> &[u8] {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match &rest[digits..] {
        behind @ [b',' | b';' | b'/', ..] if digits > 0 => behind,
        _ => rest,
    }
}

fn suspicious_text(line: &[u8], looks: fn(&str) -> bool, allowed: &PatternSet) -> Option<String> {
    let text = readable(line);
    let suspicious = |piece: &&str| looks(piece) && !allowed.matches(piece.as_bytes());
    let pieces = text.split('\n').flat_map(pieces).map(str::trim_ascii);
    let mut printed = pieces.filter(|piece| !piece.is_empty());
    printed.find(suspicious).map(|piece| quotable(piece).to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_headline_that_is_cut_at_the_very_end_is_found() {
        let allowed = PatternSet::new(&[]).unwrap();
        for (log, found) in [
            ("OK\n*** HardF", Some(3..12)),
            ("OK\n\x1b[31m*** HardF", Some(3..17)),
            ("OK\n*** HardF\n", None),
            ("OK\n*** HardF\njig> ", None),
            ("OK\n***", None),
            ("OK\n", None),
        ] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(log.as_bytes()).unwrap();
            let cut = cut_headline(&file, 2..u64::MAX, (&allowed, &[])).unwrap();
            assert_eq!(cut.map(|(span, _)| span), found, "{log:?}");
        }
    }

    #[test]
    fn a_count_behind_the_awaited_label_belongs_to_it() {
        let allowed = PatternSet::new(&[]).unwrap();
        for (log, found) in [
            ("Pass: 2, fail: 0, skip: 0.\n", None),
            ("Pass: 2, fail: 1, skip: 0.\n", Some(", fail: 1, skip: 0.")),
            ("Pass: 2\n2 failed, 1 passed\n", Some("2 failed, 1 passed")),
            ("Pass: 2; hardfault\n", Some("; hardfault")),
        ] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(log.as_bytes()).unwrap();
            let line = suspicious_line(&file, 6..u64::MAX, is_suspicious, (&allowed, &[])).unwrap();
            assert_eq!(line.map(|(_, text)| text).as_deref(), found, "{log:?}");
        }
    }

    #[test]
    fn long_lines_are_looked_at_to_their_end() {
        let allowed = PatternSet::new(&[]).unwrap();
        for fill in [0, 4_000, 5_000, 300_000, 600_000] {
            let text = " assertion failed at main.c:12";
            let log = format!("ok\n{}{text}\nbye\n", ".".repeat(fill));
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(log.as_bytes()).unwrap();
            let found =
                suspicious_line(&file, 1..u64::MAX, is_suspicious, (&allowed, &[])).unwrap();
            let (span, quote) = found.unwrap();
            assert!(quote.ends_with(text.trim()), "{fill}: {quote}");
            assert_eq!(span.end as usize, 3 + fill + text.len(), "{fill}");
        }
    }
}
