//! Finds rejected output that control sequences hid from the patterns: `state: \x1b[31mBAD\x1b[0m`.
//!
//! The watchers match the bytes as they came. Here the lines are matched as a terminal shows them,
//! in the complete log, and only those lines that hold a control sequence.

use std::fs::File;
use std::io;
use std::ops::Range;

use super::failed_results::{FoundLine, read_some};
use crate::console::PatternSet;
use crate::console::lines::{LineSplitter, RawLine, lossy, plain};

/// Bytes read at once.
const STRIDE: usize = 64 << 10;
/// The byte that begins a control sequence.
const ESCAPE: u8 = 0x1b;

/// Returns the first line within a range of a log that matches without its control sequences.
pub(super) fn rejected_text(
    log: &File,
    range: Range<u64>,
    rejected: &PatternSet,
) -> io::Result<Option<FoundLine>> {
    let mut splitter = LineSplitter::new(range.start);
    let mut found = None;
    let mut buf = vec![0; STRIDE];
    let mut at = range.start;
    while found.is_none() {
        let room = range.end.saturating_sub(at).min(STRIDE as u64) as usize;
        let len = read_some(log, &mut buf[..room], at)?;
        if len == 0 {
            break;
        }
        splitter.feed(&buf[..len], |raw| look(&raw, rejected, &mut found));
        at += len as u64;
    }
    if let Some(raw) = splitter.begun() {
        look(&raw, rejected, &mut found);
    }
    Ok(found)
}

fn look(raw: &RawLine<'_>, rejected: &PatternSet, found: &mut Option<FoundLine>) {
    if found.is_some() || memchr::memchr(ESCAPE, raw.bytes).is_none() {
        return;
    }
    let text = plain(raw.bytes);
    if rejected.matches(&text) {
        *found = Some((raw.span.start..raw.span.end, lossy(&text).into_owned()));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use jig_model::pattern::Pattern;

    use super::*;

    fn found(log: &[u8], pattern: &str) -> Option<FoundLine> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(log).unwrap();
        let patterns = [Pattern::new(pattern).unwrap()];
        rejected_text(&file, 0..log.len() as u64, &PatternSet::new(&patterns).unwrap()).unwrap()
    }

    #[test]
    fn colours_hide_no_rejected_text() {
        let line = "state: \x1b[31mBAD\x1b[0m";
        for before in [0, 3, STRIDE - 10, STRIDE, 3 * STRIDE] {
            let fill = "x\n".repeat(before / 2);
            let start = fill.len() as u64;
            for end in ["\n", "\r\n", ""] {
                let log = format!("{fill}{line}{end}");
                let wanted = (start..start + line.len() as u64, "state: BAD".to_owned());
                assert_eq!(found(log.as_bytes(), "^state: BAD$"), Some(wanted), "{before}");
            }
        }
        assert_eq!(found(b"state: \x1b[32mGOOD\x1b[0m\n", "^state: BAD$"), None);
        // The watchers look at other lines.
        assert_eq!(found(b"state: BAD\n", "^state: BAD$"), None);
    }
}
