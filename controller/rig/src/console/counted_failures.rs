//! Tells whether a line consists of counts, and one of them counts failures. Pure.
//!
//! # Design
//! `3 errors` may be the result of a soak test, `rx errors: 3` is a number that a driver keeps. What
//! tells them apart is the rest of the line. A summary says nothing but how many: each of its words is
//! a number, what tests are counted by, or a word between these. A log line also says of what. So one
//! foreign word makes a line a log line. `err: 5` alone may be the number of an error, so it counts
//! only where nothing stands in front of it, not even a level and a tag.

use super::words::{Word, listed, number};

/// Names of failures, of which several are counted.
const PLURAL: &str = "\
    errors errs failures fails failed failing mismatches nfail nfails nfailed nerr nerrs nerrors \
    num_failed num_failures num_errors fail_count failure_count error_count failcount errcount \
    err_count failed_count errors_total total_errors test_errors";

/// Names of failures that may also stand in front of the number of one failure.
const SINGULAR: &str = "error err fail failure mismatch bad wrong incorrect defective";

/// Other things that a summary counts.
const OTHERS: &str = "\
    test tests case cases check checks suite suites assertion assertions pass passed passes ok good \
    success successes successful skip skipped ignored warning warnings warn";

/// Words of a summary that count nothing.
const BETWEEN: &str = "\
    total totals sum run ran count counts number of and with in all found detected result results \
    summary done finished complete completed there were was are is had has have";

/// Words between what is counted and its number: `error count = 1`.
const NAMED: &str = "count counts number total found detected";

/// Tells whether the words of a text consist of counts, one of which counts failures and is not zero.
/// They may be the `whole` line.
pub(super) fn counts_only_failures(words: &[Word<'_>], whole: bool) -> bool {
    let counted = |word: &Word<'_>| is_failing(word) || listed(OTHERS, &word.text);
    let plural = |word: &Word<'_>| word.text == "s" && word.before == "(";
    let plain = |word: &Word<'_>| {
        counted(word) || number(word).is_some() || listed(BETWEEN, &word.text) || plural(word)
    };
    words.iter().all(plain)
        && (0..words.len())
            .any(|at| is_failing(&words[at]) && count(words, at, whole).is_some_and(|n| n > 0))
}

fn is_failing(word: &Word<'_>) -> bool {
    listed(PLURAL, &word.text) || listed(SINGULAR, &word.text)
}

/// Returns the number that counts the word at an index: the one behind a joint (`failed: 0`), else the
/// one that stands beside it. Between two numbers it is the one in front where the part of the sentence
/// begins with a number: `3 tests 1 failed 0 skipped`, but `total 5 failed 0`.
fn count(words: &[Word<'_>], at: usize, whole: bool) -> Option<u64> {
    let before = at.checked_sub(1).filter(|_| words[at].before.trim_ascii().is_empty());
    let before = before.and_then(|index| number(&words[part(words, index)]));
    let named = listed(NAMED, words.get(at + 1).map_or("", |word| &word.text));
    let value = words.get(at + 1 + usize::from(named));
    let joint = value.map_or("", |value| value.before.trim_ascii());
    let joined = matches!(joint, ":" | "=");
    let several = named || listed(PLURAL, &words[at].text);
    let numbers = words.iter().filter(|word| number(word).is_some()).count();
    let counts = joined && (several || numbers > 1 || whole) || joint.is_empty() && several;
    let behind = value.filter(|_| counts).and_then(number);
    match (before, behind) {
        (Some(before), Some(_)) if !joined && begins_with_number(words, at) => Some(before),
        (_, Some(behind)) => Some(behind),
        (before, None) => before,
    }
}

/// Returns the index of the number that a number is the whole of: `1 of 5`, `1/5`.
fn part(words: &[Word<'_>], at: usize) -> usize {
    let is_number = |back: usize| at >= back && number(&words[at - back]).is_some();
    if is_number(1) && words[at].before == "/" {
        at - 1
    } else if is_number(2) && words[at - 1].text == "of" {
        at - 2
    } else {
        at
    }
}

/// Tells whether the part of a sentence in which the word at an index stands begins with a number.
fn begins_with_number(words: &[Word<'_>], at: usize) -> bool {
    let first = (0..=at).rev().find(|&from| words[from].before.contains([',', ';', '|', '(']));
    words.get(first.unwrap_or(0)).and_then(number).is_some()
}

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    #[test]
    fn a_summary_says_nothing_but_how_many() {
        for (text, failed) in [
            ("3 errors", true),
            ("errors: 3", true),
            ("ERROR COUNT = 1", true),
            ("2 passed, 1 failed", true),
            ("ok: 2, err: 1", true),
            ("err=1 ok=4", true),
            ("done (errors: 1)", true),
            ("found 3 errors in 12 tests", true),
            ("1 error(s), 2 warning(s)", true),
            ("0 error(s), 2 warning(s)", false),
            ("total: 5, passed: 4, failed: 1", true),
            ("Total: 5, passed: 5, failed: 0.", false),
            ("total 5 passed 4 failed 1", true),
            ("total 5 passed 5 failed 0", false),
            ("3 tests 1 failed 0 skipped", true),
            ("3 tests 0 failed 1 skipped", false),
            ("Run: 5 Failed: 1 Skipped: 0", true),
            ("Run: 5 Failed: 0 Skipped: 0", false),
            ("1 of 5 failed", true),
            ("0 of 5 failed", false),
            ("0/5 failed", false),
            ("2/5 failed", true),
            ("passed=5/5 failed=0/5", false),
            ("passed=4/5 failed=1/5", true),
            ("6 passed 5, failed 0", false),
            ("Run 5, Failed 0", false),
            ("Result: 0 failures (5 tests)", false),
            ("Ran 3 tests, 1 bad", true),
            ("Ran 3 tests, 0 bad", false),
            ("5 checks run, 1 wrong", true),
            ("bad: 1, good: 4", true),
            ("scan results: 2 bad blocks", false),
            ("0 errors", false),
            ("errors: 0, warnings: 3", false),
            ("12 tests, 0 errors", false),
            ("ok: 2, err: 0", false),
            ("rx errors: 3", false),
            ("3 errors on can0", false),
            ("error 5", false),
            ("error: -5", false),
            ("errors", false),
            ("3", false),
        ] {
            assert_eq!(counts_only_failures(&words(text), false), failed, "{text}");
        }
        let numbered = words("err: 1");
        assert!(counts_only_failures(&numbered, true) && !counts_only_failures(&numbered, false));
    }
}
