//! Tells why a text that a plan waits for proves nothing where it stands in its line. Pure.
//!
//! # Design
//! A pattern that is too short also matches the opposite of what it was written for: `complete` in
//! `incomplete`, `all tests` in `not all tests passed`, `rc=` in front of `-5`. A run passes by the
//! awaited text alone, so its line is read more strictly than a log line. Three things count:
//!
//! - **the border of a word.** The text begins within a word, or its last word is a good verdict
//!   that goes on as another word (`pass` in `password`). Other words may go on: `Boot` in `Booting`.
//! - **a denial in front**, with nothing but words like `yet`, `all`, `the` between.
//! - **a failing value behind**: behind the name of a code a number that is not zero, behind a
//!   verdict `no`, `false`, `0`, such a code, a part of a whole or `with errors`. A number behind another name is a value: `temp=-5`.
//!
//! A text that names a failure itself is denied and counted in other ways (`no errors`), so only the
//! borders of its words count. `awaited_text_lines.toml` holds examples and near misses.

use super::failed_result::names_failure;
use super::suspicion::is_suspicious;
use super::words::{Word, is_zero, listed, number, words};

/// Why an awaited text proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AwaitedDoubt {
    /// It is a part of another word.
    PartOfWord,
    /// The words in front of it deny it.
    Denied,
    /// What stands behind it is the value of a failure.
    FailingValue,
}

/// Words of a pass.
const GOOD: &str = "\
    pass passed passes passing ok okay good done ready complete completed success successful \
    successfully succeeded valid verified finished correct up";

/// How such a word may go on: `passed`, `completely`, `okay`.
const INFLECTIONS: &str = "s es d ed ing ly ful fully ay ated ating ation ity";

/// Words in front that deny a text.
const DENIALS: &str = "\
    not no never cannot without neither nor none non isn't wasn't aren't weren't hasn't haven't \
    didn't doesn't don't couldn't can't won't isnt didnt hardly";

/// Words in front of `to` that deny what follows.
const REFUSALS: &str = "failed fails unable refused refuses";

/// Words between a denial and the text.
const FILLERS: &str = "\
    yet all of the a an any been fully quite be being is are was were every each have has had";

/// Most of these.
const MOST_FILLERS: usize = 4;

/// Things of which none is wanted: `no warnings`.
const UNWANTED: &str = "\
    warning warnings problem problems issue issues leak leaks alarm alarms loss retry retries \
    timeout timeouts mismatch mismatches";

/// Names of a code: of zero where all is well.
const CODES: &str = "rc ret retval rval err errno exit returned return returns";

/// Names of a code that is also something else: only a negative number is a failure.
const STATES: &str = "status result res code state";

/// Words that end a program, in front of its code.
const ENDS: &str = "exit exits exited exiting ended returned terminated";

/// Words between the name of a code and its number.
const BETWEEN: &str = "code status value is was with of number";

/// Values that take a verdict back.
const NEGATIVE: &str = "no false nope never not nok ko ng";

/// Tells why a text proves nothing, by what stands `before` and `behind` it in its line.
///
/// The text is a part that its pattern spells out. Only a part at the `edges` of the whole match
/// has borders of its own.
pub(crate) fn awaited_doubt(
    before: &str,
    text: &str,
    behind: &str,
    edges: (bool, bool),
) -> Option<AwaitedDoubt> {
    let spoken = words(text);
    let last = spoken.last().filter(|word| word.after.trim_ascii().len() <= 1);
    if edges.0 && begins_within_word(before, text)
        || edges.1 && last.is_some_and(|last| goes_on_as_other_word(last, behind))
    {
        return Some(AwaitedDoubt::PartOfWord);
    }
    let unwanted = |word: &Word<'_>| listed(UNWANTED, &word.text);
    let coded = |word: &Word<'_>| listed(CODES, &word.text) || listed(STATES, &word.text);
    // Of `err=` the value says whether it is one.
    let named = match spoken.last() {
        Some(last) if coded(last) => text.rfind(last.raw).map_or(text, |at| &text[..at]),
        _ => text,
    };
    let failure = names_failure(named) || is_suspicious(named);
    if failure || spoken.iter().any(unwanted) {
        return None;
    }
    if is_denied(before, &spoken, behind) {
        return Some(AwaitedDoubt::Denied);
    }
    let ends = || words(before).iter().chain(&spoken).any(|word| listed(ENDS, &word.text));
    let failing = last.is_some_and(|last| is_failing_value(last, behind, &ends));
    failing.then_some(AwaitedDoubt::FailingValue)
}

/// `in|complete`, `BY|PASS`, but not `test|Done`, `rx_|done`, `12|passed`.
fn begins_within_word(before: &str, text: &str) -> bool {
    let (Some(&last), Some(&first)) = (before.as_bytes().last(), text.as_bytes().first()) else {
        return false;
    };
    let hump = last.is_ascii_lowercase() && first.is_ascii_uppercase();
    last.is_ascii_alphabetic() && first.is_ascii_alphabetic() && !hump
}

/// `pass|word`, `OK|LAHOMA`, but not `pass|ed`, `ready|State`.
fn goes_on_as_other_word(last: &Word<'_>, behind: &str) -> bool {
    let rest = &behind[..behind.bytes().take_while(u8::is_ascii_alphabetic).count()];
    let hump = last.raw.ends_with(|c: char| c.is_ascii_lowercase())
        && rest.starts_with(|c: char| c.is_ascii_uppercase());
    last.after.is_empty()
        && !rest.is_empty()
        && !hump
        && listed(GOOD, &last.text)
        && !listed(INFLECTIONS, &rest.to_ascii_lowercase())
}

/// `not yet |ready|`, `failed to |complete|`, `0 |tests passed|`.
fn is_denied(before: &str, text: &[Word<'_>], behind: &str) -> bool {
    let front = words(before);
    let joined = |gap: &str| gap.chars().all(|c| matches!(c, ' ' | '\t' | '-'));
    let mut gap = front.last().map_or("", |last| last.after);
    for (count, at) in (0..front.len()).rev().enumerate() {
        let word = &front[at];
        if count > MOST_FILLERS || !joined(gap) {
            return false;
        }
        let refused = || word.text == "to" && at > 0 && listed(REFUSALS, &front[at - 1].text);
        let none = || {
            let is_good = |word: &Word<'_>| listed(GOOD, &word.text);
            count == 0 && word.text == "0" && text.iter().any(is_good)
        };
        if listed(DENIALS, &word.text) || refused() || none() {
            // `no |unit tests| have failed`
            return !(matches!(word.text.as_str(), "no" | "none") && names_failure(behind));
        }
        if !listed(FILLERS, &word.text) {
            return false;
        }
        gap = word.before;
    }
    false
}

/// `rc=|-5`, `exit| code 3`, `passed|? no`, `DONE|!=OK`.
fn is_failing_value(last: &Word<'_>, behind: &str, ends: &dyn Fn() -> bool) -> bool {
    let rest = behind.trim_ascii_start();
    if rest.starts_with("!=") {
        return true;
    }
    let next = words(behind);
    if listed(GOOD, &last.text) && takes_back(last, &next) {
        return true;
    }
    (listed(CODES, &last.text) || listed(STATES, &last.text))
        && is_code_value(last, &next, behind, ends)
}

/// Tells whether the words behind the name of a code give it the value of a failure.
fn is_code_value(
    name: &Word<'_>,
    next: &[Word<'_>],
    behind: &str,
    ends: &dyn Fn() -> bool,
) -> bool {
    let between = next.iter().take(2).take_while(|word| listed(BETWEEN, &word.text)).count();
    let Some(value) = next.get(between) else { return false };
    let plain = |c: char| matches!(c, ' ' | ':' | '=' | '?' | '-' | '(' | '"' | '\'');
    let joined = next[..=between].iter().all(|word| word.before.chars().all(plain));
    if !joined || !behind.chars().take_while(|c| !c.is_ascii_alphanumeric()).all(plain) {
        return false;
    }
    let digits = value.text.strip_prefix("0x").unwrap_or(&value.text);
    let hex = value.text.starts_with("0x") && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let decimal = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let failing = (hex || decimal) && !value.after.starts_with('.') && !is_zero(&value.text);
    let counts = listed(CODES, &name.text) || value.before.ends_with('-') || ends();
    between == 0 && listed("false nok ko ng", &value.text) || failing && counts
}

/// `passed|? no`, `ready|: 0`, `done| rc=-5`, `done|: 2/3`, `done|, with errors`.
fn takes_back(last: &Word<'_>, next: &[Word<'_>]) -> bool {
    let Some(value) = next.first() else { return false };
    let joint = [last.after, value.before].concat();
    let joint = joint.trim_ascii();
    let asked =
        !joint.is_empty() && joint.bytes().all(|b| matches!(b, b':' | b'=' | b'?' | b' ' | b'"'));
    let zero = value.text == "0" && !value.after.starts_with('.');
    // `ready: 0 errors`
    let counted = matches!(value.text.as_str(), "0" | "no");
    let thing = next.get(1).is_some_and(|next| next.before.trim_ascii().is_empty());
    if asked && (listed(NEGATIVE, &value.text) || zero) && !(counted && thing) {
        return true;
    }
    let part = || {
        let (some, all) = (number(value)?, number(next.get(1)?)?);
        Some(matches!(next[1].before, "/" | " / ") && next.len() == 2 && some < all)
    };
    if asked && part().unwrap_or_default() {
        return true;
    }
    let plain = joint.bytes().all(|b| matches!(b, b':' | b',' | b';' | b'(' | b'-' | b' '));
    let with = value.text == "with";
    let bad =
        next.get(1).is_some_and(|word| listed("errors error failures problems faults", &word.text));
    if plain && with && bad && next.len() == 2 {
        return true;
    }
    let code = listed(CODES, &value.text) || matches!(value.text.as_str(), "status" | "code");
    let behind = value.after;
    let rest = next.get(1..).unwrap_or_default();
    let ends = || true;
    plain && code && rest.len() <= 3 && is_code_value(value, rest, behind, &ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Cases {
        part_of_word: Vec<String>,
        denied: Vec<String>,
        failing_value: Vec<String>,
        near_misses: Vec<String>,
    }

    fn doubt(line: &str) -> Option<AwaitedDoubt> {
        let mut parts = line.split('|');
        let mut part = || parts.next().unwrap();
        awaited_doubt(part(), part(), part(), (true, true))
    }

    #[test]
    fn each_doubt_has_examples_and_near_misses() {
        let cases: Cases = toml::from_str(include_str!("awaited_text_lines.toml")).unwrap();
        for (lines, wanted) in [
            (&cases.part_of_word, Some(AwaitedDoubt::PartOfWord)),
            (&cases.denied, Some(AwaitedDoubt::Denied)),
            (&cases.failing_value, Some(AwaitedDoubt::FailingValue)),
            (&cases.near_misses, None),
        ] {
            let wrong: Vec<_> = lines.iter().filter(|line| doubt(line) != wanted).collect();
            assert!(wrong.is_empty(), "{wanted:?}: {wrong:#?}");
        }
    }

    #[test]
    fn a_part_within_a_match_has_no_borders() {
        assert_eq!(awaited_doubt("H", "ello", "", (false, true)), None);
        assert_eq!(awaited_doubt("", "pass", "word: ", (true, false)), None);
        assert_eq!(
            awaited_doubt("spi not ", "passed", "", (false, false)),
            Some(AwaitedDoubt::Denied)
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_answered(before in "\\PC{0,40}", text in "\\PC{0,20}", behind in "\\PC{0,40}") {
            awaited_doubt(&before, &text, &behind, (true, true));
        }
    }
}
