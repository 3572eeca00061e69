//! Tells whether a line consists of counts, and one of them counts failures. Pure.
//!
//! # Design
//! `3 errors` may be the result of a soak test, `rx errors: 3` is a number that a driver keeps. What
//! tells them apart is the rest of the line. A summary says nothing but how many: each of its words is
//! a number, what tests are counted by, or a word between these. A log line also says of what. So one
//! foreign word makes a line a log line. `err: 5` alone may be the number of an error, so it counts
//! only where nothing stands in front of it, not even a level and a tag.

use super::words::{Word, listed};

/// Names of failures, of which several are counted.
const PLURAL: &str = "\
    errors errs failures fails failed failing mismatches nfail nfails nfailed nerr nerrs nerrors \
    num_failed num_failures num_errors fail_count failure_count error_count failcount errcount \
    err_count failed_count errors_total total_errors test_errors";

/// Names of failures that may also stand in front of the number of one failure.
const SINGULAR: &str = "error err fail failure mismatch";

/// Other things that a summary counts.
const OTHERS: &str = "\
    test tests case cases check checks suite suites assertion assertions pass passed passes ok good \
    success successes successful skip skipped ignored warning warnings warn";

/// Words of a summary that count nothing.
const BETWEEN: &str = "\
    total totals sum run ran count counts number of and with in all found detected result results \
    summary done finished complete completed there were was are is had has have";

/// Longest number that is a count.
const DIGITS: usize = 9;

/// Tells whether the words of a text consist of counts, one of which counts failures and is not zero.
/// They may be the `whole` line.
pub(super) fn counts_only_failures(words: &[Word<'_>], whole: bool) -> bool {
    let failing = |word: &Word<'_>| listed(PLURAL, &word.text) || listed(SINGULAR, &word.text);
    let counted = |word: &Word<'_>| failing(word) || listed(OTHERS, &word.text);
    let plain =
        |word: &Word<'_>| counted(word) || number(word).is_some() || listed(BETWEEN, &word.text);
    if !words.iter().all(plain) {
        return false;
    }
    let Some(first) = words.iter().position(counted) else { return false };
    let numbers = words.iter().filter(|word| number(word).is_some()).count();
    if words[..first].iter().any(|word| number(word).is_some()) {
        let mut last = None;
        return words.iter().any(|word| {
            last = number(word).or(last);
            failing(word) && last.is_some_and(|count| count > 0)
        });
    }
    (0..words.len()).any(|at| {
        let named = listed("count counts number total", words.get(at + 1).map_or("", |w| &w.text));
        let Some(value) = words.get(at + 1 + usize::from(named)) else { return false };
        let several = listed(PLURAL, &words[at].text) || named;
        let joint = value.before.trim_ascii();
        let joined = matches!(joint, ":" | "=") || several && joint.is_empty();
        failing(&words[at])
            && joined
            && number(value).is_some_and(|count| count > 0)
            && (several || numbers > 1 || whole)
    })
}

fn number(word: &Word<'_>) -> Option<u64> {
    if word.text.len() > DIGITS { None } else { word.text.parse().ok() }
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
