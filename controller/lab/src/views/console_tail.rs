//! The end of a console's log, safe for a terminal.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use jig_rig::console::escape;

/// Bytes that are read for the last line: longer lines are cut at their beginning.
const LINE: u64 = 4 << 10;

/// Bytes that are read for the last lines.
const LINES: u64 = 64 << 10;

/// Most lines that are kept of them: the highest terminal.
const MOST_LINES: usize = 500;

/// Returns the last line that is not empty; none if there is no log or no line.
pub(super) fn last_line(path: &Path) -> Option<String> {
    let lines = lines_of(&end_of(path, LINE)?);
    lines.into_iter().rev().find(|line| !line.trim().is_empty())
}

/// Returns the last lines; none if there is no log.
pub(super) fn last_lines(path: &Path) -> Vec<String> {
    let mut lines = end_of(path, LINES).map(|bytes| lines_of(&bytes)).unwrap_or_default();
    lines.split_off(lines.len().saturating_sub(MOST_LINES))
}

fn end_of(path: &Path, most: u64) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    let len = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(most))).ok()?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Splits output into lines without anything that moves a cursor.
fn lines_of(bytes: &[u8]) -> Vec<String> {
    escape(bytes).lines().map(|line| line.replace('\t', "    ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_output_is_text() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        assert_eq!(last_line(&log), None);
        std::fs::write(&log, b"first\n\x1b[2J\x1b]0;title\x07\tred\xff\r\n\n").unwrap();
        let line = last_line(&log).unwrap();
        assert_eq!(line, "\\x1b[2J\\x1b]0;title\\x07    red\\xff");
        assert!(last_lines(&log).iter().flat_map(|line| line.chars()).all(|c| !c.is_control()));
        // A line without an end, of which only the last part is read.
        std::fs::write(&log, vec![b'x'; 100_000]).unwrap();
        assert_eq!(last_line(&log).unwrap().len(), 4096);
    }
}
