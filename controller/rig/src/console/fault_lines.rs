//! Fault signatures at the start of lines, behind colours and what loggers put there.
//!
//! # Design
//! A hundred signatures in one dense automaton take seconds to build, and every logger's prefix
//! would multiply them. Lines are cleaned instead, as for test results, and each text that is left
//! behind a prefix is matched by a lazy automaton from its first byte on. Most lines leave the
//! automaton at that byte.
//!
//! A fault handler may print its headline and stop without a line end. So an unfinished line is
//! matched, too, without its last byte: what follows cannot undo such a match. A line that is too
//! long is matched as far as it is kept, in the same way. Hence the set of signatures told of a line
//! depends on its bytes and not on how they arrived.

use std::sync::Arc;

use jig_model::pattern::Pattern;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::{Anchored, Input, MatchKind, PatternSet as Matches};

use super::lines::{LineSplitter, RawLine, lossy, plain, without_context};
use super::scan::PatternSetError;

/// Most prefixes taken off one line: colour, time, thread, level, tag, file and line.
const MAX_PREFIXES: usize = 6;

/// Limit of the compiled form, against nested repetitions: a hundred signatures take 200 KiB.
const NFA_LIMIT: usize = 4 << 20;

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
    /// `None` without signatures.
    automaton: Option<Arc<DFA>>,
    splitter: LineSplitter,
    matcher: Matcher,
}

#[derive(Debug, Clone)]
struct Matcher {
    cache: Option<Cache>,
    matches: Matches,
    /// Signatures told of the current line.
    told: Matches,
}

impl FaultLines {
    /// Compiles signatures; each is matched from the start of a text.
    pub(super) fn new(patterns: &[Pattern]) -> Result<Self, PatternSetError> {
        let automaton = match patterns.first() {
            None => None,
            Some(blame) => Some(Arc::new(build(patterns, blame)?)),
        };
        let none = || Matches::new(patterns.len());
        let matcher = Matcher { cache: None, matches: none(), told: none() };
        Ok(Self { automaton, splitter: LineSplitter::new(0), matcher })
    }

    /// Begins a new stream at an offset.
    pub(super) fn restart(&mut self, offset: u64) {
        self.splitter = LineSplitter::new(offset);
        self.matcher.told.clear();
    }

    /// Looks at the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8], mut tell: impl FnMut(FaultLine)) {
        let Some(automaton) = &self.automaton else { return };
        let matcher = &mut self.matcher;
        self.splitter.feed(bytes, |raw| {
            matcher.look(automaton, &raw, true, &mut tell);
            matcher.told.clear();
        });
        if let Some(raw) = self.splitter.begun() {
            matcher.look(automaton, &raw, false, &mut tell);
        }
    }

    /// Says that the stream is over: its unfinished line is a line.
    pub(super) fn finish(&mut self, mut tell: impl FnMut(FaultLine)) {
        let Some(automaton) = &self.automaton else { return };
        if let Some(raw) = self.splitter.begun() {
            self.matcher.look(automaton, &raw, true, &mut tell);
        }
    }
}

impl Matcher {
    fn look(
        &mut self,
        automaton: &DFA,
        raw: &RawLine<'_>,
        complete: bool,
        tell: &mut impl FnMut(FaultLine),
    ) {
        let bytes = plain(raw.bytes);
        let line = lossy(&bytes);
        let cache = self.cache.get_or_insert_with(|| automaton.create_cache());
        self.matches.clear();
        let complete = complete && !raw.cut;
        for text in texts(&line, complete) {
            let end = if complete { text.len() } else { text.len().saturating_sub(1) };
            let input = Input::new(text).range(..end).anchored(Anchored::Yes);
            // It fails only where a limit of the automaton is exceeded, and none is set.
            let _ = automaton.try_which_overlapping_matches(cache, &input, &mut self.matches);
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

/// Lists what stands in a line: itself, then what is left behind each prefix.
pub(super) fn texts(line: &str, complete: bool) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(line), move |text| without_context(text, complete))
        .take(1 + MAX_PREFIXES)
        .map(str::trim_ascii_start)
}

fn build(patterns: &[Pattern], blame: &Pattern) -> Result<DFA, PatternSetError> {
    let texts: Vec<&str> = patterns.iter().map(Pattern::as_str).collect();
    DFA::builder()
        .configure(DFA::config().match_kind(MatchKind::All))
        .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(NFA_LIMIT)))
        .syntax(Pattern::dialect())
        .build_many(&texts)
        .map_err(|error| PatternSetError::Unbuildable {
            pattern: blame.clone(),
            message: error.to_string(),
        })
}

#[cfg(test)]
#[path = "fault_lines_tests.rs"]
mod tests;
