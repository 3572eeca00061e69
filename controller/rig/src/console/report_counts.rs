//! Tells whether a line counts failures, or fewer passes than tests. Pure.
//!
//! # Design
//! A number counts the word behind it (`3 failed`) or the one in front of it (`failed: 3`). Which of
//! them is told by what stands between and by how the line begins. `failed_result_lines.toml` holds
//! examples.

use super::failed_result::{COUNTED, ERRORS, FAILURES, PASSES, RETRIES, Report, is_about};
use super::words::{Word, listed, number};

/// Words for repetitions of a test, of which errors are a share: `1000 transfers, 3 errors`.
const ROUNDS: &str = "iterations transfers cycles loops rounds transactions transmissions";

/// Words in front of a count that is no ordinal number: `with 3 failures`, `tests 5 failed 2`.
const CONNECTING: &str = "\
    and with but had has have got found were are is total run runs ran only least detected \
    there in of ok";

/// Words behind a number that say what else it counts: `failed 3 times`.
const UNITS: &str = "\
    time times retry retries attempt attempts bytes byte ms us ns s sec seconds minutes";

impl Report<'_> {
    /// Tells whether some failed, or fewer than all passed.
    pub(super) fn counts(&self) -> bool {
        self.counts_failures() || self.counts_passes() || self.counts_fewer_good()
    }

    /// Tells whether the number at an index counts something, and numbers nothing: `Test 3`.
    fn is_count(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1).map(|at| &self.words[at]) else { return true };
        let joined = self.words[at].before.trim_matches([' ', '\t']);
        let ordinal = listed("test case check suite scenario spec step", &before.text);
        let connecting = || {
            !ordinal
                && (listed(CONNECTING, &before.text) || is_about(before))
                && !before.text.starts_with("test_")
        };
        let list = joined.starts_with([',', ';', '|', '(', '=', ':', '"', '-', '*', '#', '/', '.']);
        (list && (!ordinal || joined.starts_with([':', '='])))
            || number(before).is_some()
            || connecting()
    }

    /// Returns the index of the number that counts a word, with the one that it is a part of:
    /// `1 of 5 failed`.
    pub(super) fn part(&self, at: usize) -> usize {
        let of = |back: usize| at >= back && number(&self.words[at - back]).is_some();
        if of(1) && self.words[at].before == "/" {
            at - 1
        } else if of(2) && self.word(at - 1) == "of" {
            at - 2
        } else if of(3) && self.word(at - 1) == "of" && self.word(at - 2) == "out" {
            at - 3
        } else {
            at
        }
    }

    /// `3 failed`, `1 of 5 tests failed`, `Failures: 2`, `failures="1"`, `# FAIL:  1`.
    fn counts_failures(&self) -> bool {
        (0..self.words.len()).any(|at| {
            let label = self.word(at);
            let error = listed(ERRORS, label);
            // `<testsuite name="errors" tests="3">`
            let word = &self.words[at];
            let value = word.before.ends_with("=\"") && word.after.starts_with('"');
            let qualifies =
                word.after == "-" && listed("safe over back soft open", self.word(at + 1));
            if !error && !listed(FAILURES, label) || value || qualifies || self.is_expected(at) {
                return false;
            }
            let Some((count, index)) = self.count(at) else { return false };
            // `4 error relay    passed` names something, and `error (256)` is a code.
            let name = at == 1 && index == 0 && label == "error" && word.after == " ";
            let coded = label == "error" && index > at && word.after == " (";
            if count == 0 || name && self.has_uncounted_pass() || coded {
                return false;
            }
            let tries = self.words.iter().any(|word| listed(RETRIES, &word.text));
            let plural = || {
                self.words.iter().any(|w| listed(PASSES, &w.text) || listed("tests cases", &w.text))
            };
            let alone = || {
                let mut others = self.words.iter().enumerate().filter(|(other, _)| *other != at);
                let last = index + 1 == self.words.len() || at + 1 == self.words.len();
                let plain = |w: &Word<'_>| {
                    number(w).is_some() || listed("of out number total unexpected", &w.text)
                };
                !error && last && others.all(|(_, word)| plain(word))
            };
            if tries && !plural() {
                return false;
            }
            self.is_about_beside(at)
                || !error && self.has_other_count(at)
                || error && self.is_share_of_rounds(at)
                || alone()
        })
    }

    /// `1000 transfers, 3 errors`, `Total errors: 3`.
    fn is_share_of_rounds(&self, at: usize) -> bool {
        let rounds = |(index, word): (usize, &Word<'_>)| {
            listed(ROUNDS, &word.text) && index > 0 && number(&self.words[index - 1]).is_some()
        };
        at == 1 && self.word(0) == "total" || self.words.iter().enumerate().any(rounds)
    }

    fn has_uncounted_pass(&self) -> bool {
        let count = |at: usize| self.words.get(at).is_some_and(|word| number(word).is_some());
        (1..self.words.len())
            .any(|at| listed(PASSES, self.word(at)) && !count(at - 1) && !count(at + 1))
    }

    /// `3 ok, 1 failed`, `total 5 failed 1`.
    fn has_other_count(&self, at: usize) -> bool {
        self.words.iter().enumerate().any(|(index, word)| {
            let other =
                index != at && listed("ok good total run ran skipped ignored success", &word.text);
            let beside = |near: usize| self.words.get(near).is_some_and(|w| number(w).is_some());
            other && (beside(index + 1) || index > 0 && beside(index - 1))
        })
    }

    /// `1 expected failure`, `expected failures: 2`, `1 failed as expected`, but not `unexpected
    /// failures: 2`.
    fn is_expected(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map_or("", |back| self.word(back));
        let behind = self.word(at + 1) == "as" && self.word(at + 2) == "expected";
        behind || listed("expected known allowed tolerated simulated injected retry", before)
    }

    /// Finds the number that counts a word. Between two numbers it is the one behind where the one
    /// before belongs to the word in front of it: `passed 5 failed 0`.
    fn count(&self, at: usize) -> Option<(u64, usize)> {
        let (before, behind) = (self.count_before(at), self.count_behind(at));
        let named = |word: &Word<'_>| is_about(word) || listed(FAILURES, &word.text);
        // `3 Tests 1 Failures 0 Ignored` begins with a number.
        let first = self.words.iter().position(named).and_then(|first| first.checked_sub(1));
        let total = |first: usize| first > 0 && listed("total totals", self.word(first - 1));
        let first = first.filter(|&first| !total(first));
        let numbers_first = first.is_some_and(|first| number(&self.words[first]).is_some());
        // `run: 5 failed: 0`
        let joint = self.words.get(at + 1).is_some_and(|next| next.before.contains([':', '=']));
        let owned = |index: usize| index > 0 && is_about(&self.words[index - 1]);
        // `result: 0 failures (5 tests)`
        let bracketed = self.words.get(at + 1).is_some_and(|next| next.before.contains('('));
        match before {
            Some(_) if behind.is_some() && joint => behind,
            Some((_, index))
                if behind.is_some() && !bracketed && !numbers_first && owned(index) =>
            {
                behind
            }
            Some(before) => Some(before),
            None => behind,
        }
    }

    pub(super) fn count_before(&self, at: usize) -> Option<(u64, usize)> {
        // `tests 5 / errors 0`
        let mut back = at.checked_sub(1).filter(|_| !self.words[at].before.contains(" / "))?;
        while number(&self.words[back]).is_none() {
            if !listed(COUNTED, self.word(back)) {
                return None;
            }
            back = back.checked_sub(1)?;
        }
        let part = self.part(back);
        let counts = self.flows(back, at) && self.is_count(part);
        counts.then(|| number(&self.words[part])).flatten().map(|count| (count, back))
    }

    fn count_behind(&self, at: usize) -> Option<(u64, usize)> {
        // `failed tests: 1`
        let tests = listed(
            "tests test testcases cases checks suites assertions asserts specs scenarios",
            self.word(at + 1),
        );
        let at = at + usize::from(tests);
        let next = self.words.get(at + 1)?;
        if tests && !next.before.contains([':', '=']) {
            return None;
        }
        let joined = |c: char| {
            matches!(c, ' ' | '\t' | ':' | '=' | '(' | '"' | '\'' | '|' | '.' | '>' | ')' | '[')
        };
        let unit = self.words.get(at + 2).is_some_and(|w| listed(UNITS, &w.text));
        let count = number(next).filter(|_| !unit && next.before.chars().all(joined))?;
        Some((count, at + 1))
    }

    /// `4 of 5 tests passed`, `passed: 4/5`, `67% tests passed`.
    fn counts_passes(&self) -> bool {
        (0..self.words.len()).any(|at| {
            let Some(whole) = number(&self.words[at]) else { return false };
            let part = self.part(at);
            let percent = self.words[at].after.starts_with('%');
            if part == at && !percent {
                return false;
            }
            let some = number(&self.words[part]).unwrap_or_default();
            let less = if part == at { whole < 100 } else { some < whole };
            // `[2/5] test passed` and `2/5 Test #1` number the tests.
            let numbered = self.words[at].after.starts_with(']');
            let mut next = at + 1;
            while listed(COUNTED, self.word(next)) {
                next += 1;
            }
            let behind = listed(PASSES, self.word(next)) && self.flows(at, next);
            // `pass 1 of 3` numbers the passes.
            let pass = part > 0
                && self.word(part - 1) == "pass"
                && self.words[part].before.trim().is_empty();
            let before = part > 0
                && !pass
                && listed(PASSES, self.word(part - 1))
                && !self.words[part].before.contains([',', ';', '.']);
            less && !numbered && (before || behind && self.is_count(part))
        })
    }

    /// `12 tests run, 11 ok`, `score: 11/12 tests`.
    fn counts_fewer_good(&self) -> bool {
        let numbers: Vec<usize> =
            (0..self.words.len()).filter(|&at| number(&self.words[at]).is_some()).collect();
        let &[first, second] = numbers.as_slice() else { return false };
        let (one, other) = (number(&self.words[first]), number(&self.words[second]));
        let scored = first > 0
            && listed("score tally total result results summary", self.word(first - 1))
            && self.words[first].before.contains([':', '='])
            && self.part(second) == first;
        if scored {
            return self.about && one < other;
        }
        let tests = listed("tests testcases cases checks vectors", self.word(first + 1))
            && !listed(PASSES, self.word(first + 2));
        let good = listed(PASSES, self.word(second + 1)) || self.word(second + 1) == "ok";
        let apart = self.words[second].before.contains([',', ';', '-', ':']);
        tests && good && apart && second + 2 == self.words.len() && other < one && first <= 1
    }
}
