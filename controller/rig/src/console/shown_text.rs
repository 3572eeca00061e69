//! The output of a console as a terminal shows it, searched for patterns. Pure.
//!
//! # Design
//! [`Scanner`] finds what the bytes spell as they came. A terminal also shows `E\x1b[1m42` as `E42`, and
//! `ERX\bR-42` first as `ERX` and then as `ERR-42`. Such lines are searched here, in each state that
//! their rows were in; the other ones are passed over. Each line is searched once, when it ends: before,
//! its text may still change. A caller that decides within a line asks for what was [begun].
//!
//! A match is the range of bytes that printed it, so it can be compared with others. Columns without text
//! count as one blank, in front of a text as none.
//!
//! [begun]: ShownSearch::begun

use std::borrow::Cow;
use std::ops::Range;

use super::lines::{CSI, in_seven_bits, movement, sequence_len};
use super::scan::{PatternSet, Scanner};
use super::screen_rows::{RowState, rows_of};

/// The length at which a line without an end is searched, and what of it is searched again with the rest.
const PIECE: usize = 64 << 10;
const OVERLAP: usize = 4 << 10;

const BACKSPACE: u8 = 0x08;
const ESCAPE: u8 = 0x1b;

/// Searches a log for what only a terminal shows.
#[derive(Debug, Clone)]
pub(super) struct ShownSearch {
    set: PatternSet,
    /// Where in the log matches may begin.
    from: u64,
    /// The begun line, or the end of it; where that lies in the log, and whether the line begins with it.
    line: Vec<u8>,
    start: u64,
    whole: bool,
}

/// A text that a terminal shows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShownMatch {
    /// Index of the pattern in its set.
    pub(super) pattern: usize,
    /// The bytes that printed it.
    pub(super) printed: Range<u64>,
    /// Its line in the log.
    pub(super) line: Range<u64>,
    /// The row that it stands in.
    pub(super) row: String,
}

impl ShownSearch {
    /// Searches a log from the beginning of a line on.
    pub(super) fn new(set: &PatternSet, start: u64) -> Self {
        Self { set: set.clone(), from: start, line: Vec::new(), start, whole: true }
    }

    /// Searches a log behind the `head` of a line, or behind the end of a head.
    pub(super) fn behind(set: &PatternSet, head: &[u8], whole: bool, from: u64) -> Self {
        let start = from - head.len() as u64;
        Self { line: head.to_vec(), whole, from, ..Self::new(set, start) }
    }

    /// Forgets the begun line; the next byte begins another one.
    pub(super) fn restart(&mut self, start: u64) {
        self.line.clear();
        (self.from, self.start, self.whole) = (start, start, true);
    }

    /// Takes the next bytes of the log. Returns what was found in the lines that they end.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<ShownMatch> {
        let mut found = Vec::new();
        let mut rest = if self.set.is_empty() { &[] } else { bytes };
        loop {
            let passed = if self.line.is_empty() { unchanged_lines(rest) } else { 0 };
            self.start += passed as u64;
            rest = &rest[passed..];
            let Some(len) = memchr::memchr2(b'\n', b'\r', rest) else { break };
            self.line.extend_from_slice(&rest[..len]);
            self.search_line(true, &mut found);
            self.restart_line();
            rest = &rest[len + 1..];
        }
        self.line.extend_from_slice(rest);
        if self.line.len() > PIECE {
            self.search_line(false, &mut found);
            self.shorten_line();
        }
        found
    }

    /// Returns what stands in the begun line so far. It may go on, unless it is `over`.
    pub(super) fn begun(&self, over: bool) -> Vec<ShownMatch> {
        let mut found = Vec::new();
        self.clone().search_line(over, &mut found);
        found
    }

    fn restart_line(&mut self) {
        self.start += self.line.len() as u64 + 1;
        self.line.clear();
        self.whole = true;
    }

    /// Keeps the end of the begun line, from behind a control sequence on.
    fn shorten_line(&mut self) {
        let from = self.line.len() - OVERLAP;
        let escape = memchr::memrchr(ESCAPE, &self.line[..from]);
        let behind = escape.map_or(0, |at| at + sequence_len(&self.line[at..]));
        let from = behind.clamp(from, self.line.len() - 1);
        self.line.drain(..from);
        self.start += from as u64;
        self.whole = false;
    }

    fn search_line(&mut self, over: bool, found: &mut Vec<ShownMatch>) {
        if !self.line.iter().any(|&byte| may_change(byte)) {
            return;
        }
        let before = found.len();
        for row in rows(&self.line) {
            self.search_row(row, over, found);
        }
        let ends = found[before..].iter().map(|found| found.printed.end);
        self.from = ends.fold(self.from, u64::max);
    }

    fn search_row(&self, row: ShownRow, over: bool, found: &mut Vec<ShownMatch>) {
        let ShownRow { text, printed_by, begins, ends } = row;
        let known = self.from.saturating_sub(self.start) as usize;
        let new = printed_by.iter().position(|&at| at >= known).unwrap_or(text.len());
        let mut from = new.max(usize::from(!(begins && self.whole))).min(text.len());
        let before = |at: usize| at.checked_sub(1).map(|at| text[at]);
        let mut scanner = Scanner::new(&self.set, before(from));
        let mut at = from;
        loop {
            let scanned = scanner.scan(&text[at..]);
            at += scanned.used;
            let hits = match scanned.hits.is_empty() && over && ends {
                true => scanner.finish(),
                false => scanned.hits,
            };
            let Some(&pattern) = hits.first() else { return };
            let start = self.set.locate(pattern, &text, from..at).map_or(from, |found| found.start);
            let printed = &printed_by[start..at];
            if let Some(last) = printed.iter().max().filter(|&&at| at >= known) {
                let first = printed.iter().min().unwrap_or(last).max(&known);
                let (start, end) = (self.start + *first as u64, self.start + *last as u64 + 1);
                found.push(ShownMatch {
                    pattern,
                    printed: start..end,
                    line: self.start..self.start + self.line.len() as u64,
                    row: String::from_utf8_lossy(&text).into_owned(),
                });
            }
            if at == from {
                // An empty match would be found again.
                return;
            }
            from = at;
            scanner.restart(before(at));
        }
    }
}

/// What a terminal shows in a row.
struct ShownRow {
    text: Vec<u8>,
    /// Which byte of the line each byte of the text was printed by.
    printed_by: Vec<usize>,
    /// Whether the text begins and ends with the row.
    begins: bool,
    ends: bool,
}

/// Returns the rows that a line shows, in each of their states.
fn rows(line: &[u8]) -> Vec<ShownRow> {
    let spelled = in_seven_bits(line).map_or(Cow::Borrowed(line), Cow::Owned);
    let added = added_bytes(line, &spelled);
    let original = |at: usize| at - added.partition_point(|&added| added <= at);
    if let Some(shown) = shown_bytes(&spelled) {
        let text = shown.iter().map(|&at| spelled[at]).collect();
        let printed_by = shown.into_iter().map(original).collect();
        return vec![ShownRow { text, printed_by, begins: true, ends: true }];
    }
    let rows = rows_of(&spelled).into_iter().map(|row| {
        let RowState { text, printed_by, begins, ends } = row;
        let printed_by = printed_by.into_iter().map(original).collect();
        ShownRow { text: text.into_bytes(), printed_by, begins, ends }
    });
    rows.collect()
}

/// Lists the bytes that were added where an introducer of 8 bits was spelled out.
fn added_bytes(line: &[u8], spelled: &[u8]) -> Vec<usize> {
    let mut added = Vec::new();
    let mut at = 0;
    for &byte in line.iter().take_while(|_| line.len() < spelled.len()) {
        if byte == CSI && spelled.get(at) == Some(&ESCAPE) {
            at += 1;
            added.push(at);
        }
        at += 1;
    }
    added
}

/// Lists the bytes of a line that a terminal shows; nothing if one of them moves the cursor.
fn shown_bytes(line: &[u8]) -> Option<Vec<usize>> {
    let mut shown = Vec::with_capacity(line.len());
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        let behind = match byte {
            ESCAPE => at + sequence_len(&line[at..]).clamp(1, line.len() - at),
            _ => at + 1,
        };
        match byte {
            BACKSPACE => return None,
            ESCAPE if movement(&line[at..behind]).is_some() => return None,
            // A UART that is switched on prints these in front of a line.
            0xff if shown.is_empty() => {}
            _ if is_hidden(byte) => {}
            _ => shown.push(at),
        }
        at = behind;
    }
    Some(shown)
}

/// Measures the lines at the front that a terminal shows as they are, with their ends.
fn unchanged_lines(bytes: &[u8]) -> usize {
    let same = bytes.iter().position(|&byte| may_change(byte)).unwrap_or(bytes.len());
    memchr::memrchr2(b'\n', b'\r', &bytes[..same]).map_or(0, |end| end + 1)
}

/// Tells whether a terminal may show the line of a byte otherwise than as it came.
fn may_change(byte: u8) -> bool {
    is_hidden(byte) || byte == CSI
}

/// Tells whether a byte is a control character that shows nothing and leaves the cursor in its row.
fn is_hidden(byte: u8) -> bool {
    matches!(byte, 0..=0x08 | 0x0e..=0x1f | 0x7f)
}

#[cfg(test)]
#[path = "shown_text_tests.rs"]
mod tests;
