//! Console bytes as lines with times.
//!
//! # Design
//! A console is stored as chunks, cut wherever the transport happened to pause. A reader wants
//! lines, each with the time of its first byte. A line whose rest comes late, such as a
//! prompt that is answered, is shown in parts, or its answer would seem to come before
//! what happened in between.

use std::collections::VecDeque;

use jig_rig::console::{IndexHealth, IndexRecord, LogReader, RecordKind, escape};

/// Longest pause within a line: 100 ms is a hundred times that of a line at 9600 baud and
/// less than a person needs to answer a prompt.
const PAUSE_NS: u64 = 100_000_000;

/// Longest line in bytes; a longer one is shown in parts.
const MAX_LINE: usize = 4096;

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// One line, or what else a console tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConsoleLine {
    /// When its first byte came; none where the index is missing.
    pub(super) at_ns: Option<u64>,
    /// Where it begins in the log.
    pub(super) offset: u64,
    /// The line, escaped, without its end.
    pub(super) text: String,
    /// Whether it was sent to the target; the text then tells how much.
    pub(super) sent: bool,
}

/// Iterates over the lines of a log, in bounded memory.
pub(super) struct ConsoleLines<'l> {
    log: &'l LogReader,
    records: Box<dyn Iterator<Item = IndexRecord> + 'l>,
    /// Bytes of the record that is being read that are not read yet.
    left: std::ops::Range<u64>,
    /// When the record that is being read came.
    now: Option<u64>,
    /// The line so far, when it began and where.
    line: Vec<u8>,
    began: Option<u64>,
    began_at: u64,
    ready: VecDeque<ConsoleLine>,
    done: bool,
}

impl<'l> ConsoleLines<'l> {
    /// Begins at the start of a log.
    pub(super) fn new(log: &'l LogReader) -> Self {
        // Without an index there are bytes without times; they are shown all the same.
        let left = if log.health() == IndexHealth::Missing { 0..log.committed() } else { 0..0 };
        Self {
            log,
            records: Box::new(log.records()),
            left,
            now: None,
            line: Vec::new(),
            began: None,
            began_at: 0,
            ready: VecDeque::new(),
            done: false,
        }
    }

    /// Reads on until there is a line or nothing more.
    fn advance(&mut self) {
        if self.left.is_empty() {
            return self.next_record();
        }
        let want = usize::try_from(self.left.end - self.left.start).unwrap_or(CHUNK).min(CHUNK);
        let mut buffer = vec![0; want];
        match self.log.read_at(self.left.start, &mut buffer) {
            // The disk does not answer, or the log is shorter than it says.
            Ok(0) | Err(_) => self.left = 0..0,
            Ok(n) => {
                self.split(&buffer[..n], self.left.start);
                self.left.start += n as u64;
            }
        }
    }

    fn next_record(&mut self) {
        let Some(record) = self.records.next() else {
            self.end_line();
            self.done = true;
            return;
        };
        let at = record.stamp.mono_ns;
        match record.kind {
            RecordKind::Bytes(len) => {
                if self.now.is_some_and(|before| at.saturating_sub(before) > PAUSE_NS) {
                    self.end_line();
                }
                self.now = Some(at);
                self.left = record.offset..record.offset.saturating_add(len);
            }
            // What was sent answers what is shown; a new boot begins a new line.
            RecordKind::Sent(len) => {
                self.end_line();
                let s = if len == 1 { "" } else { "s" };
                let text = format!("{len} byte{s} sent");
                let line = ConsoleLine { at_ns: Some(at), offset: record.offset, text, sent: true };
                self.ready.push_back(line);
            }
            RecordKind::Boot | RecordKind::Detached => self.end_line(),
            // Losses are events of the run.
            RecordKind::Gap { .. } | RecordKind::Garbled(_) | RecordKind::Attached => {}
        }
    }

    fn split(&mut self, bytes: &[u8], mut offset: u64) {
        for piece in bytes.split_inclusive(|&b| b == b'\n') {
            let mut rest = piece;
            while !rest.is_empty() {
                if self.line.is_empty() {
                    self.began = self.now;
                    self.began_at = offset;
                }
                let (part, after) = rest.split_at(rest.len().min(MAX_LINE - self.line.len()));
                self.line.extend_from_slice(part);
                offset += part.len() as u64;
                rest = after;
                if self.line.ends_with(b"\n") {
                    self.end_line();
                } else if self.line.len() >= MAX_LINE {
                    self.break_line();
                }
            }
        }
    }

    /// Ends a line that is too long, not in the middle of a character.
    fn break_line(&mut self) {
        // A character has at most three bytes after its first; more of them are no text.
        let tail = self.line.iter().rev().take(4).position(|b| b & 0xc0 != 0x80);
        let keep = match tail.map(|back| (back, self.line[self.line.len() - 1 - back])) {
            Some((back, first)) if first >= 0xc0 => self.line.len() - 1 - back,
            _ => self.line.len(),
        };
        let rest = self.line.split_off(keep);
        let next = self.began_at + keep as u64;
        self.end_line();
        self.line = rest;
        self.began = self.now;
        self.began_at = next;
    }

    fn end_line(&mut self) {
        if self.line.is_empty() {
            return;
        }
        let line = std::mem::take(&mut self.line);
        let text = escape(&line);
        // A lone CR is a line end for people: lines that a target overwrites stay readable.
        let text = text.strip_suffix('\n').unwrap_or(&text);
        for part in text.split('\n') {
            let (at_ns, offset) = (self.began, self.began_at);
            self.ready.push_back(ConsoleLine { at_ns, offset, text: part.to_owned(), sent: false });
        }
    }
}

impl Iterator for ConsoleLines<'_> {
    type Item = ConsoleLine;

    fn next(&mut self) -> Option<ConsoleLine> {
        while self.ready.is_empty() && !self.done {
            self.advance();
        }
        self.ready.pop_front()
    }
}
