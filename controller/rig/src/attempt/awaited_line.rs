//! The line of the text that a run passes by, where it says that something is wrong. Reads the log of a
//! console and decides nothing. A log that cannot be read is an error.
//!
//! # Design
//! What stands beside an awaited text is a failed result only in the forms of one. But this line is the
//! reason of a pass, so the word `ERROR` is enough, unless the pattern spells a failure out itself. The
//! level of a logger in front of the line is no such word: a plan may await a message of any level.

use std::fs::File;
use std::io;
use std::ops::Range;

use super::failed_results::{FoundLine, quotable, read_some};
use crate::console::lines::{MAX_LINE, without_prefix};
use crate::console::{PatternSet, names_failure, readable, says_error};

/// Finds the line in which an awaited text ends, if it says `ERROR` beside the parts that the pattern
/// spells out.
pub(super) fn error_beside(
    log: &File,
    end: u64,
    spelled: &[Range<u64>],
    allowed: &PatternSet,
) -> io::Result<Option<FoundLine>> {
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
    let line = &bytes[start..end];
    let mut beside = line.to_vec();
    for part in spelled.iter().filter(|part| part.start < span.end && span.start < part.end) {
        let index = |at: u64| (at.clamp(span.start, span.end) - span.start) as usize;
        let part = index(part.start)..index(part.end);
        if names_failure(&readable(&line[part.clone()])) {
            return Ok(None);
        }
        beside[part].fill(b' ');
    }
    let text = readable(line);
    let found =
        says_error(message(&readable(&beside))) && !allowed.matches(text.trim_ascii().as_bytes());
    Ok(found.then(|| (span, quotable(text.trim_ascii()).to_owned())))
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
            ("||", "", false),
        ] {
            let start = log.find('|').unwrap() as u64;
            let end = log.rfind('|').unwrap() as u64 - 1;
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(log.replace('|', "").as_bytes()).unwrap();
            let part = start..start + spelled.len() as u64;
            let parts = std::slice::from_ref(&part);
            let none = PatternSet::new(&[]).unwrap();
            let line = error_beside(&file, end, parts, &none).unwrap();
            assert_eq!(line.is_some(), found, "{log:?}");
            let allowed = PatternSet::new(&["tick".parse().unwrap()]).unwrap();
            assert_eq!(error_beside(&file, end, parts, &allowed).unwrap(), None, "{log:?}");
        }
    }
}
