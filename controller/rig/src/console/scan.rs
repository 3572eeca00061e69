//! Exact streaming search for several patterns at once, in bounded memory.
//!
//! # Design
//! A dense automaton carries one small state across chunks, so where a chunk ends cannot
//! matter and nothing needs to be kept of the past. It visits every byte once, however
//! hostile the text, and knows every offset at which some pattern's match ends.
//!
//! The automaton learns of a match one byte late, because `$` and `\b` look ahead. A prompt
//! has no next byte, so at the end of a chunk the scanner asks what *every* possible next
//! byte (and the end of the text) would say: what they agree on is certain and is told at
//! once, the rest waits. That is exact for each state, without inspecting expressions, and
//! keeps the outcome independent of chunking.
//!
//! **Refused here:** starts and captures while scanning. They are found afterwards, over a
//! bounded window that ends at the match ([`PatternSet::locate`]).

use std::ops::Range;
use std::sync::Arc;

use jig_model::pattern::Pattern;
use regex_automata::dfa::Automaton;
use regex_automata::dfa::dense::{Config, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_automata::{Anchored, Input, MatchKind, meta};

/// Limit of one automaton in bytes. Ten usual banners need 50 to 200 KiB; at 8 MiB a set
/// has left every cache, and building it takes in the order of a second.
const AUTOMATON_LIMIT: usize = 8 << 20;
/// Limit of the memory that building an automaton may take: twice its result.
const BUILD_LIMIT: usize = 2 * AUTOMATON_LIMIT;
/// Limit of the intermediate form, against nested repetitions such as `(.{999}){999}`.
const NFA_LIMIT: usize = 4 << 20;

/// Says why patterns cannot be searched for.
#[derive(Debug, thiserror::Error)]
pub enum PatternSetError {
    /// The automaton would be too large.
    #[error(
        "pattern `{pattern}` needs too large an automaton (limit {limit} bytes): shorten its counted repetitions, such as `.{{1,200}}`"
    )]
    TooLarge {
        /// The pattern, or the one that needs most where only all together are too large.
        pattern: Pattern,
        /// The limit in bytes.
        limit: usize,
    },
    /// The automaton cannot be built for another reason.
    #[error("pattern `{pattern}` cannot be compiled: {message}")]
    Unbuildable {
        /// The pattern.
        pattern: Pattern,
        /// The compiler's words.
        message: String,
    },
}

/// Patterns compiled for a [`Scanner`]. Cheap to clone. May be empty: then nothing matches.
#[derive(Debug, Clone)]
pub struct PatternSet(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    patterns: Vec<Pattern>,
    finders: Vec<meta::Regex>,
    automaton: Option<AutomatonParts>,
}

#[derive(Debug)]
struct AutomatonParts {
    dfa: DFA<Vec<u32>>,
    /// One byte of each class of bytes that the automaton treats alike.
    probes: Vec<u8>,
    /// Start states by the byte before; the last is for no byte before.
    starts: Vec<StateID>,
}

/// Where a match lies in the bytes given to [`PatternSet::locate`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedMatch {
    /// First byte of the match.
    pub start: usize,
    /// Capture groups from 1 on, with their names; `None` for one that took no part.
    pub groups: Vec<(Option<String>, Option<Range<usize>>)>,
}

/// What one call of [`Scanner::scan`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scanned {
    /// How many of the bytes were used; where there are hits, the matches end right there.
    pub used: usize,
    /// Indices of the patterns whose match ends there. Empty: all bytes were used.
    pub hits: Vec<usize>,
}

impl PatternSet {
    /// Compiles patterns.
    ///
    /// # Errors
    /// Refuses patterns whose automaton exceeds 8 MiB, and names the culprit.
    pub fn new(patterns: &[Pattern]) -> Result<Self, PatternSetError> {
        let finders = patterns.iter().map(finder).collect::<Result<Vec<_>, _>>()?;
        let automaton = match patterns {
            [] => None,
            [only] => Some(AutomatonParts::build(patterns, only)?),
            [first, ..] => {
                Some(AutomatonParts::build(patterns, first).or_else(|_| culprit(patterns))?)
            }
        };
        Ok(Self(Arc::new(Compiled { patterns: patterns.to_vec(), finders, automaton })))
    }

    /// Returns the patterns, in the order their indices count.
    pub fn patterns(&self) -> &[Pattern] {
        &self.0.patterns
    }

    /// Tells whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.0.patterns.is_empty()
    }

    /// Tells whether any of the patterns matches anywhere in a text.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.0.finders.iter().any(|finder| finder.is_match(text))
    }

    /// Finds start and groups of a match of one pattern that ends at `span.end`.
    ///
    /// `text` may be larger than `span`: what lies around it is seen by `^`, `$` and `\b`.
    /// `None` means that the match begins before `span`.
    pub fn locate(&self, pattern: usize, text: &[u8], span: Range<usize>) -> Option<LocatedMatch> {
        let finder = self.0.finders.get(pattern)?;
        if span.start > span.end || span.end > text.len() {
            return None;
        }
        let mut groups = finder.create_captures();
        // First as if the text ended here, so that a next byte which happens to be known
        // already cannot change the outcome; it is asked only where the pattern needs it.
        for known in [&text[..span.end], text] {
            finder.search_captures(&Input::new(known).span(span.clone()), &mut groups);
            if groups.get_match().is_some_and(|m| m.end() == span.end) {
                break;
            }
        }
        let found = groups.get_match().filter(|m| m.end() == span.end)?;
        let names = finder.group_info().pattern_names(found.pattern()).skip(1);
        let groups = names
            .enumerate()
            .map(|(i, name)| {
                (name.map(str::to_owned), groups.get_group(i + 1).map(|g| g.start..g.end))
            })
            .collect();
        Some(LocatedMatch { start: found.start(), groups })
    }
}

pub(super) fn finder(pattern: &Pattern) -> Result<meta::Regex, PatternSetError> {
    // It is asked a few times in a run: a complete automaton would cost more than it saves.
    let config = meta::Config::new().utf8_empty(false).nfa_size_limit(Some(NFA_LIMIT)).dfa(false);
    meta::Builder::new()
        .configure(config)
        .syntax(Pattern::dialect())
        .build(pattern.as_str())
        .map_err(|error| match error.size_limit() {
            Some(limit) => PatternSetError::TooLarge { pattern: pattern.clone(), limit },
            None => PatternSetError::Unbuildable {
                pattern: pattern.clone(),
                message: error.to_string(),
            },
        })
}

/// How the rules of lines are compiled: a log is searched once in a run, and a complete automaton
/// would cost more than it saves.
pub(super) fn searched_once() -> meta::Config {
    meta::Config::new().dfa(false).onepass(false).auto_prefilter(false)
}

/// Finds the parts of a match that its pattern spells out; those that touch are one. The match
/// begins at an index and ends with the text.
pub(crate) fn spelled_parts(
    pattern: &Pattern,
    text: &[u8],
    start: usize,
) -> Option<Vec<Range<usize>>> {
    let grouped = Pattern::new(&pattern.spelled_groups()?).ok()?;
    let finder = finder(&grouped).ok()?;
    let mut groups = finder.create_captures();
    let input = Input::new(text).span(start..text.len()).anchored(Anchored::Yes);
    finder.search_captures(&input, &mut groups);
    groups.get_match()?;
    let mut found: Vec<_> = groups.iter().skip(1).flatten().collect();
    found.sort_unstable_by_key(|part| part.start);
    let mut parts: Vec<Range<usize>> = Vec::new();
    for part in found {
        match parts.last_mut() {
            Some(last) if last.end >= part.start => last.end = last.end.max(part.end),
            _ => parts.push(part.start..part.end),
        }
    }
    Some(parts)
}

/// Finds out which pattern to name when all of them together cannot be compiled.
fn culprit(patterns: &[Pattern]) -> Result<AutomatonParts, PatternSetError> {
    let mut largest = (0, &patterns[0]);
    for pattern in patterns {
        let size =
            AutomatonParts::build(std::slice::from_ref(pattern), pattern)?.dfa.memory_usage();
        if size > largest.0 {
            largest = (size, pattern);
        }
    }
    Err(PatternSetError::TooLarge { pattern: largest.1.clone(), limit: AUTOMATON_LIMIT })
}

impl AutomatonParts {
    fn build(patterns: &[Pattern], blame: &Pattern) -> Result<Self, PatternSetError> {
        let unbuildable =
            |message: String| PatternSetError::Unbuildable { pattern: blame.clone(), message };
        let texts: Vec<&str> = patterns.iter().map(Pattern::as_str).collect();
        let dfa = DFA::builder()
            .configure(
                Config::new()
                    .match_kind(MatchKind::All)
                    .accelerate(true)
                    .starts_for_each_pattern(false)
                    .dfa_size_limit(Some(AUTOMATON_LIMIT))
                    .determinize_size_limit(Some(BUILD_LIMIT)),
            )
            .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(NFA_LIMIT)))
            .syntax(Pattern::dialect())
            .build_many(&texts)
            .map_err(|error| {
                // A limit of the intermediate form is not told apart by this error's
                // accessor, but the finder was built under the same limit before.
                if error.is_size_limit_exceeded() {
                    PatternSetError::TooLarge { pattern: blame.clone(), limit: AUTOMATON_LIMIT }
                } else {
                    unbuildable(error.to_string())
                }
            })?;
        let start = |before: Option<u8>| {
            let config = start::Config::new().anchored(Anchored::No).look_behind(before);
            dfa.start_state(&config).map_err(|error| unbuildable(error.to_string()))
        };
        let starts = (0..=u8::MAX)
            .map(Some)
            .chain(std::iter::once(None))
            .map(start)
            .collect::<Result<Vec<_>, _>>()?;
        let probes =
            dfa.byte_classes().representatives(0..=255).filter_map(|unit| unit.as_u8()).collect();
        Ok(Self { dfa, probes, starts })
    }

    fn start(&self, before: Option<u8>) -> StateID {
        self.starts[before.map_or(256, usize::from)]
    }

    fn matches(&self, state: StateID) -> Vec<usize> {
        if !self.dfa.is_match_state(state) {
            return Vec::new();
        }
        let count = self.dfa.match_len(state);
        (0..count).map(|i| self.dfa.match_pattern(state, i).as_usize()).collect()
    }

    /// Lists the patterns that have matched whatever byte comes next, the end included.
    fn certain(&self, state: StateID) -> Vec<usize> {
        let mut hits = self.matches(self.dfa.next_eoi_state(state));
        for &probe in &self.probes {
            if hits.is_empty() {
                break;
            }
            let next = self.matches(self.dfa.next_state(state, probe));
            hits.retain(|hit| next.contains(hit));
        }
        hits
    }

    /// Skips bytes that cannot leave an accelerated state.
    fn skip(&self, state: StateID, bytes: &[u8]) -> usize {
        let found = match *self.dfa.accelerator(state) {
            [a] => memchr::memchr(a, bytes),
            [a, b] => memchr::memchr2(a, b, bytes),
            [a, b, c] => memchr::memchr3(a, b, c, bytes),
            _ => Some(0),
        };
        found.unwrap_or(bytes.len())
    }
}

/// Searches a stream for the patterns of a set.
///
/// Reports every offset at which a match ends, shortest first: `\d+` on `12` hits behind
/// `1` and behind `12`. A caller that wants matches that do not overlap calls
/// [`restart`](Self::restart) behind a hit.
#[derive(Debug, Clone)]
pub struct Scanner {
    set: PatternSet,
    /// The automaton's state after all bytes used so far.
    state: StateID,
    /// Patterns already told of at this very offset.
    told: Vec<usize>,
}

impl Scanner {
    /// Starts a search behind the byte `before`, or at the start of a text.
    pub fn new(set: &PatternSet, before: Option<u8>) -> Self {
        let mut scanner = Self { set: set.clone(), state: StateID::ZERO, told: Vec::new() };
        scanner.restart(before);
        scanner
    }

    /// Forgets everything but the byte before.
    pub fn restart(&mut self, before: Option<u8>) {
        self.told.clear();
        if let Some(parts) = &self.set.0.automaton {
            self.state = parts.start(before);
        }
    }

    /// Scans until a match ends, or all bytes are used.
    ///
    /// After hits, call again with the bytes from `used` on. At one offset, patterns that
    /// need no further byte are told before those that do, in calls of their own.
    pub fn scan(&mut self, bytes: &[u8]) -> Scanned {
        let Some(parts) = &self.set.0.automaton else {
            return Scanned { used: bytes.len(), hits: Vec::new() };
        };
        let dfa = &parts.dfa;
        let mut state = self.state;
        let mut at = 0;
        // Most bytes of most logs only move the state: the loop stores nothing else.
        while let Some(&byte) = bytes.get(at) {
            let next = dfa.next_state(state, byte);
            if dfa.is_special_state(next) {
                if dfa.is_match_state(next) {
                    let mut hits = parts.matches(next);
                    if at == 0 {
                        hits.retain(|hit| !self.told.contains(hit));
                    }
                    if hits.len() > 1 {
                        let certain = parts.certain(state);
                        if hits.iter().any(|hit| certain.contains(hit)) {
                            hits.retain(|hit| certain.contains(hit));
                        }
                    }
                    if !hits.is_empty() {
                        return self.tell(state, at, hits);
                    }
                } else if dfa.is_accel_state(next) {
                    at += parts.skip(next, &bytes[at + 1..]);
                }
            }
            state = next;
            at += 1;
        }
        let mut hits = parts.certain(state);
        if at == 0 {
            hits.retain(|hit| !self.told.contains(hit));
        }
        self.tell(state, at, hits)
    }

    /// Returns the patterns whose match is complete because nothing follows any more.
    pub fn finish(&mut self) -> Vec<usize> {
        let Some(parts) = &self.set.0.automaton else { return Vec::new() };
        let mut hits = parts.matches(parts.dfa.next_eoi_state(self.state));
        hits.retain(|hit| !self.told.contains(hit));
        self.told.extend_from_slice(&hits);
        hits
    }

    fn tell(&mut self, state: StateID, used: usize, mut hits: Vec<usize>) -> Scanned {
        hits.sort_unstable();
        self.state = state;
        if used > 0 {
            // They were told of at an offset that lies behind now.
            self.told.clear();
        }
        self.told.extend_from_slice(&hits);
        Scanned { used, hits }
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
