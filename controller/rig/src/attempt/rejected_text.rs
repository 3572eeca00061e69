//! Finds rejected output that control sequences hid from the patterns: `state: \x1b[31mBAD\x1b[0m`.
//!
//! The watchers match the bytes as they came. Here the lines are matched as a terminal shows them,
//! in the complete log, and only those lines that hold a control sequence.

use std::fs::File;
use std::io;
use std::ops::Range;

use super::failed_results::{FoundLine, find_in_blocks};
use crate::console::PatternSet;
use crate::console::lines::{lossy, plain};

/// The byte that begins a control sequence.
const ESCAPE: u8 = 0x1b;

/// Returns the first line within a range of a log that matches without its control sequences.
pub(super) fn rejected_text(
    log: &File,
    range: Range<u64>,
    rejected: &PatternSet,
) -> io::Result<Option<FoundLine>> {
    find_in_blocks(log, range, |block, at| {
        let mut from = 0;
        while let Some(hit) = memchr::memchr(ESCAPE, block.get(from..)?) {
            let hit = from + hit;
            let start = memchr::memrchr2(b'\n', b'\r', &block[..hit]).map_or(0, |end| end + 1);
            let len = memchr::memchr2(b'\n', b'\r', &block[hit..]);
            let end = len.map_or(block.len(), |len| hit + len);
            let text = plain(&block[start..end]);
            if rejected.matches(&text) {
                let text = lossy(&text).into_owned();
                return Some((at + start as u64..at + end as u64, text));
            }
            from = end + 1;
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use jig_model::pattern::Pattern;

    use super::*;

    const STRIDE: usize = 256 << 10;

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
        let long = format!("{} state: \x1b[31mBAD\x1b[0m\n", ".".repeat(5000));
        assert!(found(long.as_bytes(), "state: BAD$").is_some());
        // The watchers look at other lines.
        assert_eq!(found(b"state: BAD\n", "^state: BAD$"), None);
    }
}
