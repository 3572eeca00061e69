//! Which fault signatures the texts of a line begin with.
//!
//! # Design
//! Nearly no run prints a crash, so a run compiles nearly no signature. Of the shipped ones it is
//! known what text each match holds ([`Pattern::required_texts`]): one search for all these texts
//! passes over a line, and a signature is compiled when a line holds one of its texts for the first
//! time. Signatures of a user are compiled at the start, so that a bad one is refused there.
//!
//! An interrupt or a fault handler may print in the middle of another line: `idle: lo*** HardFault`.
//! So a shipped signature counts within a word, too (see [`breaks_word`]), where its match has a space,
//! as no name has: `testHardFault` is one.

use std::sync::{Arc, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use jig_model::pattern::Pattern;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::PatternID;
use regex_automata::{Anchored, Input, MatchKind, PatternSet as Matches};

use super::log_prefix::texts;
use super::scan::PatternSetError;

/// Limit of the compiled form, against nested repetitions: a hundred signatures take 200 KiB.
const NFA_LIMIT: usize = 4 << 20;

/// Signatures, of which the first ones take precedence. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Signatures(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Finds the texts of signatures.
    search: Option<AhoCorasick>,
    /// The signature that each of these texts belongs to.
    owners: Vec<usize>,
    /// The signatures, each by itself.
    each: Vec<Automaton>,
    /// Those of which no text is known, in one automaton.
    always: Automaton,
    always_indices: Vec<usize>,
    /// Those that take precedence.
    preferred: Automaton,
}

/// Most bytes between the start of a signature and the text that it holds, of signatures within a
/// word.
const REACH: usize = 40;

/// What the automata of one stream keep between texts.
#[derive(Debug, Clone, Default)]
pub(super) struct Caches {
    candidates: Vec<usize>,
    each: Vec<Option<Cache>>,
    always: Option<Cache>,
    preferred: Option<Cache>,
}

impl Signatures {
    /// Makes the search; compiles the signatures that are not known to compile.
    pub(super) fn new(patterns: &[Pattern], precedence: usize) -> Result<Self, PatternSetError> {
        Self::with_texts(patterns, precedence, |pattern| pattern.required_texts().collect())
    }

    fn with_texts(
        patterns: &[Pattern],
        precedence: usize,
        required: impl Fn(&Pattern) -> Vec<&'static str>,
    ) -> Result<Self, PatternSetError> {
        let (mut texts, mut owners, mut always_indices) = (Vec::new(), Vec::new(), Vec::new());
        for (index, pattern) in patterns.iter().enumerate() {
            let required = required(pattern);
            if required.is_empty() {
                always_indices.push(index);
            }
            owners.extend(required.iter().map(|_| index));
            texts.extend(required);
        }
        let always: Vec<Pattern> =
            always_indices.iter().map(|&index| patterns[index].clone()).collect();
        let preferred = patterns.get(..precedence).unwrap_or_default();
        Ok(Self(Arc::new(Inner {
            search: search(&texts, patterns)?,
            owners,
            each: patterns.iter().map(|one| Automaton::of(std::slice::from_ref(one))).collect(),
            always: Automaton::checked(&always)?,
            always_indices,
            preferred: Automaton::checked(preferred)?,
        })))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.each.is_empty()
    }

    /// Adds the signatures that are in a line. Of one that is not `complete`, the last byte does not
    /// count.
    pub(super) fn find(
        &self,
        line: &str,
        complete: bool,
        caches: &mut Caches,
        matches: &mut Matches,
    ) {
        self.find_at_starts(line, complete, caches, matches);
        // Whether a word is broken off shows what follows.
        if complete && !caches.candidates.is_empty() {
            self.find_within_words(line, caches, matches);
        }
    }

    /// Adds the signatures that a text of a line begins with.
    fn find_at_starts(
        &self,
        line: &str,
        complete: bool,
        caches: &mut Caches,
        matches: &mut Matches,
    ) {
        let inner = &*self.0;
        caches.candidates.clear();
        // To look whether there is a text at all is the faster search.
        let search = inner.search.as_ref().filter(|search| search.is_match(line));
        for found in search.into_iter().flat_map(|search| search.find_overlapping_iter(line)) {
            let owner = inner.owners[found.pattern().as_usize()];
            if !caches.candidates.contains(&owner) {
                caches.candidates.push(owner);
            }
        }
        if caches.candidates.is_empty() && inner.always_indices.is_empty() {
            return;
        }
        caches.each.resize(inner.each.len(), None);
        for text in texts(line, complete) {
            let end = if complete { text.len() } else { text.len().saturating_sub(1) };
            let input = Input::new(text).range(..end).anchored(Anchored::Yes);
            inner.always.find(&mut caches.always, &input, |found| {
                matches.insert(signature(inner.always_indices[found]));
            });
            for &index in &caches.candidates {
                inner.each[index].find(&mut caches.each[index], &input, |_| {
                    matches.insert(signature(index));
                });
            }
        }
    }

    /// Adds the signatures that begin where a word was broken off.
    fn find_within_words(&self, line: &str, caches: &mut Caches, matches: &mut Matches) {
        let inner = &*self.0;
        for found in inner.search.iter().flat_map(|search| search.find_overlapping_iter(line)) {
            let index = inner.owners[found.pattern().as_usize()];
            if matches.contains(signature(index)) {
                continue;
            }
            let first = found.start().saturating_sub(REACH);
            let starts = (first..=found.start()).filter(|&at| breaks_word(line, at));
            for start in starts {
                let mut texts = texts(&line[start..], true);
                if texts.any(|text| {
                    let input = Input::new(text).anchored(Anchored::Yes);
                    let ends = inner.each[index].end(&mut caches.each[index], &input);
                    ends.is_some_and(|end| text.as_bytes()[..end].contains(&b' '))
                }) {
                    matches.insert(signature(index));
                    break;
                }
            }
        }
    }

    /// Tells whether a signature that takes precedence may match a line that goes on.
    pub(super) fn preferred_may_match(&self, line: &str, caches: &mut Caches) -> bool {
        texts(line, false).any(|text| self.0.preferred.may_match(&mut caches.preferred, text))
    }
}

/// First words of crashes that a word of small letters may be broken off by, and ends of longer words
/// in front of them: `lo|assertion`, not `re|assertion`.
const FIRST_WORDS: [&str; 4] = ["assertion", "panicked", "terminate", "pure"];
const LONGER_WORDS: [&str; 3] = ["de", "re", "im"];

/// Tells whether something else begins at an offset of a line, right behind a part of a word or a
/// progress mark: `lo|Assertion`, `1|assertion`, `src/|assertion`, `lo|***`, `lo|[00:01]`,
/// `...|Assertion`, `.|Assertion` at the start of a line. Small letters behind letters are the rest of their word (`de|assert`), and a word
/// of several is one of a name (`test|HardFault`).
fn breaks_word(line: &str, at: usize) -> bool {
    let (Some(before), Some(behind)) = (line.get(..at), line.get(at..)) else { return false };
    let (Some(&last), Some(&first)) = (before.as_bytes().last(), behind.as_bytes().first()) else {
        return false;
    };
    let progress = before.ends_with("..") || before.bytes().all(|byte| byte == b'.');
    let marks = last.is_ascii_digit() || b"/%".contains(&last) || progress;
    let second = behind.as_bytes().get(1).copied().unwrap_or_default();
    match first {
        b'[' => (marks || last.is_ascii_alphabetic()) && second.is_ascii_digit(),
        b'*' | b'!' | b'#' | b'=' | b'>' | b'-' => {
            let rule = behind.bytes().take_while(|&byte| byte == first).count();
            rule >= 3 && (last.is_ascii_alphanumeric() || last == b'.')
        }
        b'A'..=b'Z' => marks || last.is_ascii_lowercase() && is_one_word(behind),
        b'a'..=b'z' if marks => true,
        b'a'..=b'z' => {
            let longer = LONGER_WORDS.iter().any(|end| before.ends_with(end));
            last.is_ascii_lowercase()
                && !longer
                && FIRST_WORDS.iter().any(|word| behind.starts_with(word))
        }
        _ => false,
    }
}

/// Returns what a failed result within a word is: `[net] rx|FAIL: rtc`. What stands behind its name is
/// none: `onFAIL: reboot`, `rxFAIL: 3`.
pub(super) fn broken_off<'a>(line: &'a str, verdict: &str) -> Option<&'a str> {
    line.match_indices(verdict).find_map(|(at, _)| {
        let (before, text) = (line.get(..at)?, line.get(at..)?);
        let word = before.bytes().rev().take_while(u8::is_ascii_alphanumeric).count();
        let name = word == before.len() && !before.bytes().any(|b| b.is_ascii_digit());
        let behind = text.trim_start_matches(|c: char| c.is_ascii_uppercase());
        let joint = [": ", " - "].iter().find_map(|joint| behind.strip_prefix(joint))?;
        let named = joint.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        (breaks_word(line, at) && named && !name).then_some(text)
    })
}

/// Tells whether no capital follows a small letter in the word that a text begins with.
fn is_one_word(text: &str) -> bool {
    let word = text.bytes().take_while(u8::is_ascii_alphanumeric);
    let mut pairs = word.clone().zip(word.skip(1));
    !pairs.any(|(left, right)| left.is_ascii_lowercase() && right.is_ascii_uppercase())
}

/// Signatures are fewer than the numbers of patterns.
fn signature(index: usize) -> PatternID {
    PatternID::new(index).unwrap_or(PatternID::MAX)
}

/// Patterns that are compiled into one automaton when they are needed.
#[derive(Debug)]
struct Automaton {
    patterns: Vec<Pattern>,
    compiled: OnceLock<Option<DFA>>,
}

impl Automaton {
    fn of(patterns: &[Pattern]) -> Self {
        Self { patterns: patterns.to_vec(), compiled: OnceLock::new() }
    }

    /// Compiles the patterns at once, unless all of them are known to compile.
    fn checked(patterns: &[Pattern]) -> Result<Self, PatternSetError> {
        let automaton = Self::of(patterns);
        if let Some(blame) = patterns.iter().find(|pattern| !pattern.is_shipped()) {
            let _ = automaton.compiled.set(Some(compile(patterns, blame)?));
        }
        Ok(automaton)
    }

    /// Returns the automaton, if there are patterns. That the shipped ones compile is tested.
    fn compiled(&self) -> Option<&DFA> {
        let blame = self.patterns.first()?;
        self.compiled.get_or_init(|| compile(&self.patterns, blame).ok()).as_ref()
    }

    /// Tells which patterns an input begins with. One that cannot be compiled counts as one of them:
    /// a crash that nobody had is seen, one that is missed is not.
    fn find(&self, cache: &mut Option<Cache>, input: &Input<'_>, mut tell: impl FnMut(usize)) {
        let Some(automaton) = self.compiled() else {
            return (0..self.patterns.len()).for_each(tell);
        };
        let cache = cache.get_or_insert_with(|| automaton.create_cache());
        let mut matches = Matches::new(self.patterns.len());
        // It fails only where a limit of the automaton is exceeded, and none is set.
        let _ = automaton.try_which_overlapping_matches(cache, input, &mut matches);
        matches.iter().for_each(|found| tell(found.as_usize()));
    }

    /// Returns the end of the longest match that an input begins with.
    fn end(&self, cache: &mut Option<Cache>, input: &Input<'_>) -> Option<usize> {
        let automaton = self.compiled()?;
        let cache = cache.get_or_insert_with(|| automaton.create_cache());
        automaton.try_search_fwd(cache, input).ok().flatten().map(|found| found.offset())
    }

    /// Tells whether some text that goes on like this may match.
    fn may_match(&self, cache: &mut Option<Cache>, text: &str) -> bool {
        let Some(automaton) = self.compiled() else { return false };
        let cache = cache.get_or_insert_with(|| automaton.create_cache());
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
}

/// Makes the search for texts. It is built at each start: a complete automaton would cost more than
/// it saves.
fn search(texts: &[&str], patterns: &[Pattern]) -> Result<Option<AhoCorasick>, PatternSetError> {
    let Some(blame) = patterns.first().filter(|_| !texts.is_empty()) else { return Ok(None) };
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::NoncontiguousNFA))
        .prefilter(false)
        .build(texts)
        .map(Some)
        .map_err(|error| unbuildable(blame, &error))
}

fn compile(patterns: &[Pattern], blame: &Pattern) -> Result<DFA, PatternSetError> {
    let texts: Vec<&str> = patterns.iter().map(Pattern::as_str).collect();
    let dfa = DFA::builder()
        .configure(DFA::config().match_kind(MatchKind::All))
        .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(NFA_LIMIT)))
        .syntax(Pattern::dialect())
        .build_many(&texts);
    dfa.map_err(|error| unbuildable(blame, &error))
}

fn unbuildable(blame: &Pattern, error: &dyn std::error::Error) -> PatternSetError {
    PatternSetError::Unbuildable { pattern: blame.clone(), message: error.to_string() }
}

#[cfg(test)]
#[path = "signatures_tests.rs"]
mod tests;
