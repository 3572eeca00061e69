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
//!
//! The first signatures take precedence over the others on a line. So nothing is told of an
//! unfinished line that one of them may still match.

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
    /// Of the signatures that take precedence, if there are any.
    preferred: Option<Arc<DFA>>,
    splitter: LineSplitter,
    matcher: Matcher,
}

#[derive(Debug, Clone)]
struct Matcher {
    cache: Option<Cache>,
    preferred_cache: Option<Cache>,
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
        let preferred = patterns.get(..precedence).unwrap_or_default();
        let none = || Matches::new(patterns.len());
        let matcher = Matcher {
            cache: None,
            preferred_cache: None,
            matches: none(),
            told: none(),
            precedence: preferred.len(),
            undecided: None,
        };
        Ok(Self {
            automaton: build(patterns)?,
            preferred: build(preferred)?,
            splitter: LineSplitter::new(0),
            matcher,
        })
    }

    /// Begins a new stream at an offset.
    pub(super) fn restart(&mut self, offset: u64) {
        self.splitter = LineSplitter::new(offset);
        self.matcher.told.clear();
        self.matcher.undecided = None;
    }

    /// Looks at the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8], tell: impl FnMut(FaultLine)) {
        let Some(automata) = self.automaton.as_ref().map(|all| (all, self.preferred.as_ref()))
        else {
            return;
        };
        let (matcher, mut tell) = (&mut self.matcher, tell);
        self.splitter.feed(bytes, |raw| {
            matcher.look(automata, &raw, Known::Whole, &mut tell);
            matcher.told.clear();
        });
        matcher.undecided = None;
        if let Some(raw) = self.splitter.begun() {
            matcher.look(automata, &raw, Known::Begun, &mut tell);
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
        if let (Some(all), Some(raw)) = (&self.automaton, self.splitter.begun()) {
            self.matcher.look((all, self.preferred.as_ref()), &raw, known, &mut tell);
        }
    }
}

/// The automaton of all signatures, and that of those that take precedence.
type Automata<'a> = (&'a Arc<DFA>, Option<&'a Arc<DFA>>);

impl Matcher {
    fn look(
        &mut self,
        (automaton, preferred): Automata<'_>,
        raw: &RawLine<'_>,
        known: Known,
        tell: &mut impl FnMut(FaultLine),
    ) {
        let bytes = plain(raw.bytes);
        let line = lossy(&bytes);
        let cache = self.cache.get_or_insert_with(|| automaton.create_cache());
        self.matches.clear();
        let complete = known == Known::Whole && !raw.cut;
        for text in texts(&line, complete) {
            let end = if complete { text.len() } else { text.len().saturating_sub(1) };
            let input = Input::new(text).range(..end).anchored(Anchored::Yes);
            // It fails only where a limit of the automaton is exceeded, and none is set.
            let _ = automaton.try_which_overlapping_matches(cache, &input, &mut self.matches);
        }
        let first = self.matches.iter().next().map(|first| first.as_usize());
        let late = first.is_some_and(|first| first >= self.precedence);
        if late
            && known == Known::Begun
            && !raw.cut
            && let Some(preferred) = preferred
        {
            let cache = self.preferred_cache.get_or_insert_with(|| preferred.create_cache());
            if texts(&line, false).any(|text| may_match(preferred, cache, text)) {
                self.undecided = Some(raw.span.start);
                return;
            }
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

/// Tells whether some text that goes on like this may match.
fn may_match(automaton: &DFA, cache: &mut Cache, text: &str) -> bool {
    let input = Input::new(text).anchored(Anchored::Yes);
    let Ok(mut state) = automaton.start_state_forward(cache, &input) else { return false };
    for &byte in text.as_bytes() {
        match automaton.next_state(cache, state, byte) {
            Ok(next) if !next.is_dead() => state = next,
            _ => return false,
        }
    }
    true
}

/// Lists what stands in a line: itself, then what is left behind each prefix.
pub(super) fn texts(line: &str, complete: bool) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(line), move |text| without_context(text, complete))
        .take(1 + MAX_PREFIXES)
        .map(str::trim_ascii_start)
}

fn build(patterns: &[Pattern]) -> Result<Option<Arc<DFA>>, PatternSetError> {
    let Some(blame) = patterns.first() else { return Ok(None) };
    let texts: Vec<&str> = patterns.iter().map(Pattern::as_str).collect();
    DFA::builder()
        .configure(DFA::config().match_kind(MatchKind::All))
        .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(NFA_LIMIT)))
        .syntax(Pattern::dialect())
        .build_many(&texts)
        .map(|automaton| Some(Arc::new(automaton)))
        .map_err(|error| PatternSetError::Unbuildable {
            pattern: blame.clone(),
            message: error.to_string(),
        })
}

#[cfg(test)]
#[path = "fault_lines_tests.rs"]
mod tests;
