//! Fault signatures at the start of lines, behind colours and what loggers put there.
//!
//! # Design
//! Every logger's prefix in front of every signature would multiply them. Lines are cleaned instead,
//! as for test results, and each text that is left behind a prefix is matched from its first byte on.
//!
//! A fault handler may print its headline and stop without a line end. So an unfinished line is
//! matched, too, without its last byte: what follows cannot undo such a match. A line that is too
//! long is matched as far as it is kept, in the same way. Hence the set of signatures told of a line
//! depends on its bytes and not on how they arrived.
//!
//! The first signatures take precedence over the others on a line. So nothing is told of an
//! unfinished line that one of them may still match.

use jig_model::pattern::Pattern;
use regex_automata::PatternSet as Matches;

use super::lines::{LineSplitter, RawLine, lossy, plain};
use super::scan::PatternSetError;
use super::signatures::{Caches, Signatures};

/// A signature that a line begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FaultLine {
    /// The signature's index.
    pub(super) index: usize,
    /// Offset of the line's first byte.
    pub(super) start: u64,
    /// Offset one past the last byte that was looked at.
    pub(super) end: u64,
    /// The line so far, without colours; hostile text.
    pub(super) text: String,
}

/// Matches signatures against the lines of a stream.
#[derive(Debug, Clone)]
pub(super) struct FaultLines {
    signatures: Signatures,
    splitter: LineSplitter,
    matcher: Matcher,
}

#[derive(Debug, Clone)]
struct Matcher {
    caches: Caches,
    matches: Matches,
    /// Signatures told of the current line.
    told: Matches,
    /// How many signatures take precedence.
    precedence: usize,
    /// Where the unfinished line begins, if what it matches waits for its next bytes.
    undecided: Option<u64>,
}

/// How much of a line is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// All of it.
    Whole,
    /// Its beginning.
    Begun,
    /// Its beginning, behind which nothing comes for now.
    Abandoned,
}

impl FaultLines {
    /// Compiles signatures, of which the first `precedence` take precedence; each is matched from
    /// the start of a text.
    pub(super) fn new(patterns: &[Pattern], precedence: usize) -> Result<Self, PatternSetError> {
        Ok(Self::of(Signatures::new(patterns, precedence)?, patterns.len(), precedence))
    }

    fn of(signatures: Signatures, count: usize, precedence: usize) -> Self {
        let none = || Matches::new(count);
        let matcher = Matcher {
            caches: Caches::default(),
            matches: none(),
            told: none(),
            precedence,
            undecided: None,
        };
        Self { signatures, splitter: LineSplitter::new(0), matcher }
    }

    /// Begins a new stream at an offset.
    pub(super) fn restart(&mut self, offset: u64) {
        self.splitter = LineSplitter::new(offset);
        self.matcher.told.clear();
        self.matcher.undecided = None;
    }

    /// Looks at the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8], tell: impl FnMut(FaultLine)) {
        if self.signatures.is_empty() {
            return;
        }
        let (signatures, matcher, mut tell) = (&self.signatures, &mut self.matcher, tell);
        self.splitter.feed(bytes, |raw| {
            matcher.look(signatures, &raw, Known::Whole, &mut tell);
            matcher.told.clear();
        });
        matcher.undecided = None;
        if let Some(raw) = self.splitter.begun() {
            matcher.look(signatures, &raw, Known::Begun, &mut tell);
        }
    }

    /// Says that the stream is over: its unfinished line is a line.
    pub(super) fn finish(&mut self, tell: impl FnMut(FaultLine)) {
        self.look_at_begun(Known::Whole, tell);
    }

    /// Tells what waits for the next bytes of the unfinished line.
    pub(super) fn decide(&mut self, tell: impl FnMut(FaultLine)) {
        if self.matcher.undecided.is_some() {
            self.look_at_begun(Known::Abandoned, tell);
        }
    }

    /// Returns where the unfinished line begins, if what it matches waits for its next bytes.
    pub(super) fn undecided_from(&self) -> Option<u64> {
        self.matcher.undecided
    }

    fn look_at_begun(&mut self, known: Known, mut tell: impl FnMut(FaultLine)) {
        self.matcher.undecided = None;
        if let Some(raw) = self.splitter.begun() {
            self.matcher.look(&self.signatures, &raw, known, &mut tell);
        }
    }
}

impl Matcher {
    fn look(
        &mut self,
        signatures: &Signatures,
        raw: &RawLine<'_>,
        known: Known,
        tell: &mut impl FnMut(FaultLine),
    ) {
        let bytes = plain(raw.bytes);
        let line = lossy(&bytes);
        self.matches.clear();
        let complete = known == Known::Whole && !raw.cut;
        signatures.find(&line, complete, &mut self.caches, &mut self.matches);
        let first = self.matches.iter().next().map(|first| first.as_usize());
        let late = first.is_some_and(|first| first >= self.precedence);
        if late
            && known == Known::Begun
            && !raw.cut
            && signatures.preferred_may_match(&line, &mut self.caches)
        {
            self.undecided = Some(raw.span.start);
            return;
        }
        for matched in self.matches.iter() {
            if self.told.insert(matched) {
                let text = line.trim_ascii_end().to_owned();
                let (start, end) = (raw.span.start, raw.span.end);
                tell(FaultLine { index: matched.as_usize(), start, end, text });
            }
        }
    }
}

#[cfg(test)]
#[path = "fault_lines_tests.rs"]
mod tests;
