//! Tells why a text that a plan waits for proves nothing where it stands in its line. Pure.
//!
//! # Design
//! A pattern that is too short also matches the opposite of what it was written for: `complete` in
//! `incomplete`, `all tests` in `not all tests passed`, `rc=` in front of `-5`. A run passes by the
//! awaited text alone, so its line is read more strictly than a log line. Four things count:
//!
//! - **the border of a word.** The text begins within a word, or its last word is a good verdict
//!   that goes on as another word (`pass` in `password`). Other words may go on: `Boot` in `Booting`.
//!   The zero of a code or a count that goes on is another number (`exit code 0` in `exit code 0x5`).
//! - **a denial in front**, with nothing but words like `yet`, `all`, `the` between. A good verdict is
//!   also denied by what makes it a wish, a condition, a part or a quotation (`waiting for`, `if`, `almost`,
//!   `prints "`).
//! - **a restriction behind** a good verdict: `except spi`, `but one`, `so far`, `failed`.
//! - **a failing value behind**: behind the name of a code a number that is not zero, behind a
//!   verdict `no`, `false`, `0`, such a code, a part of a whole, a count of errors or `with errors`. A
//!   number behind another name is a value: `temp=-5`.
//!
//! A text that names a failure itself is denied and counted in other ways (`no errors`), so only the
//! borders of its words count. `awaited_text_lines.toml` holds examples and near misses.

use super::error_codes;
use super::failed_result::{counts_failure, names_failure};
use super::suspicion::is_suspicious;
use super::trouble::tells_trouble;
use super::words::{Word, is_zero, listed, number, words};

/// Why an awaited text proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AwaitedDoubt {
    /// It is a part of another word.
    PartOfWord,
    /// The words in front of it deny it.
    Denied,
    /// The words behind it take it back, or leave a part of it.
    Restricted,
    /// What stands behind it is the value of a failure.
    FailingValue,
    /// A later line denies it in one of these ways, or gives it such a value.
    TakenBack,
}

/// Words of a pass.
const GOOD: &str = "\
    pass passed passes passing ok okay good done ready complete completed success successful \
    successfully succeeded valid verified finished correct up connected established";

/// How such a word may go on: `passed`, `completely`, `okay`.
const INFLECTIONS: &str = "s es d ed ing ly ful fully ay ated ating ation ity";

/// Words in front that deny a text.
const DENIALS: &str = "\
    not no never cannot without neither nor none non isn't wasn't aren't weren't hasn't haven't \
    didn't doesn't don't couldn't can't won't isnt didnt hardly";

/// Words that do so directly in front.
const MISSING: &str = "missing lost";

/// Words in front of a quotation by which a text says what will be printed or is to be typed.
const MENTIONS: &str = "print prints output outputs emit emits echo type enter";

/// Words in front of `to` that deny what follows.
const REFUSALS: &str = "failed fails unable refused refuses";

/// Phrases in front that make a good verdict a wish, a condition or a part.
const UNREAL: &str = "\
    if, unless, until, till, whether, when, almost, nearly, partly, partially, should, would, \
    could, might, must, shall, will, may be, can be, to be, expected to, needs to, need to, has \
    to, have to, wants to, instead of, stuck before, aborted before, failed before, trying to, attempting to, to see, hoping, hopefully, assuming, in \
    case, cannot bring, supposed to, about to, some, most, half, few, several, part";

/// Phrases that do so in front of the name of a thing, too: `waiting for spi |ready|`.
const AWAITED: &str = "\
    wait for, waits for, waiting for, waited for, wait until, waits until, waiting until, waited \
    until, wait till, waiting till, waiting on, polling for, polling until, check if, checking \
    if, check whether, checking whether, awaiting, expecting, if, unless, until";

/// Verdicts that may belong to what stands in front of them: `Waiting for link |OK|`.
const VERDICTS_OF_WAITS: &str = "ok okay done good pass passed";

/// Words in front of a number that is less than all: `only 2 |tests passed|`.
const ONLY: &str = "only just merely barely";

/// Phrases behind a good verdict that restrict it or take it back.
const RESTRICTIONS: &str = "\
    except, excepting, excluding, excl, apart from, aside from, other than, save for, but, \
    however, unless, so far, partially, partly, in part, only, with exception, with exceptions, \
    with the exception, with one exception, not yet, not really, not quite, not fully, not all, \
    timed out, see failures, see errors, was not, was lost, were not, did not, not reached, not seen, not \
    received, never came, never reached, was never, prematurely, too early, abnormally, \
    unexpectedly, with unexpected, unsuccessfully, missing, by timeout, in error";

/// Words that take a good verdict back where nothing but a reason stands behind them.
const FAILED: &str = "\
    failed failure timeout aborted crashed rejected cancelled canceled impossible unavailable denied refused";

/// What a text may name that does not come: `boot complete| flag not set`.
const SIGNS: &str = "\
    flag marker bit event signal message notification banner line interrupt irq reply ack criterion criteria \
    condition conditions threshold target goal level mark";
const ABSENT: &str = "\
    not, missing, never, timeout, timed out, lost, was not, was never, was lost, is not, is missing, \
    has not, did not, didn't, never came";

/// Words by which a crash ends, beside those of trouble.
const CRASH_ENDS: &str = "\
    halt halted halting reset resetting reboot rebooting restart restarting stopped dead hang syncing \
    bounds overflow overflowed underflow interrupt trap dump registers exited signal";

/// What a thing does that comes, or how it is found.
const COMES: &str = "\
    detected found seen reached present received available set established connected up ready";

/// Words that name what was to be and is not.
const WANTED: &str = "expected expects expect expecting wanted want";

/// What is counted of a good verdict that is none, and what takes that back.
const DEFECTS: &str = "\
    error errors failure failures problem problems issue issues defect defects fault faults";
const MENDED: &str = "corrected fixed recovered ignored expected tolerated";

/// Words in front of a reason.
const REASONS: &str = "at after with on because due by in to";

/// Words between a denial and the text.
const FILLERS: &str = "\
    yet all of the a an any been became become becomes got fully quite be being is are was were every each have has had \
    longer see get reach reached receive read find match state";

/// Most of these.
const MOST_FILLERS: usize = 4;

/// Things of which none is wanted: `no warnings`.
const UNWANTED: &str = "\
    warning warnings problem problems issue issues leak leaks alarm alarms loss retry retries \
    timeout timeouts mismatch mismatches";

/// Names of how many passed, and of how many there were.
const PASSED: &str = "pass passed ok good success successful";
const RUN: &str = "run ran executed total tests cases checks";

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

/// Values that do so where no zero counts them: `ready: failed`, but not `passed: 3, failed: 0`.
const BAD_VALUES: &str = "\
    fail failed failure error n none pending waiting unknown down missing aborted timeout nack red bad \
    wrong broken incomplete";

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
        || edges.1 && goes_on_as_other_number(&words(before), &spoken, behind)
    {
        return Some(AwaitedDoubt::PartOfWord);
    }
    let good = spoken.iter().any(is_good);
    let zero = || spoken.iter().any(|word| is_zero(&word.text));
    // `waiting for "|ready|"`
    let front = before.trim_end_matches(['"', '\'', '`', '[', '<']);
    if is_wanted_before(front) || (good || zero()) && is_wanted_behind(behind) {
        return Some(AwaitedDoubt::Denied);
    }
    let unwanted = |word: &Word<'_>| listed(UNWANTED, &word.text);
    // Of `err=` the value says whether it is one.
    let named = match spoken.last() {
        Some(last) if names_code(last) => text.rfind(last.raw).map_or(text, |at| &text[..at]),
        _ => text,
    };
    let failure = names_failure(named) || is_suspicious(named);
    if failure || spoken.iter().any(unwanted) {
        return None;
    }
    let mentioned = || front.len() < before.len() && is_mentioned(front);
    if is_denied(front, &spoken, behind)
        || good && (is_unreal(front, &spoken) || is_missing(front) || mentioned())
    {
        return Some(AwaitedDoubt::Denied);
    }
    if last.is_some_and(|last| is_good(last) && is_restricted(last, behind)) {
        return Some(AwaitedDoubt::Restricted);
    }
    let ends = || words(before).iter().chain(&spoken).any(|word| listed(ENDS, &word.text));
    let failing = last.is_some_and(|last| is_failing_value(last, behind, &ends));
    failing.then_some(AwaitedDoubt::FailingValue)
}

/// Tells whether a text, which stands in the line of a crash and which its pattern spells out, means that
/// crash: by a word of a crash, of trouble or of an end. A name within the line does not
/// (`hard fault on thread: |app_main|`), and neither does a condition (`[device_is_|ready|(dev)]`) or what
/// a message is about (`Unable to |mount root|`).
pub(crate) fn means_crash(text: &str) -> bool {
    let told = || names_failure(text) || is_suspicious(text) || tells_trouble(text);
    told() || words(text).iter().any(|word| listed(CRASH_ENDS, &word.text))
}

/// Lists phrases that commas separate.
fn phrases(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split(", ")
}

fn is_good(word: &Word<'_>) -> bool {
    listed(GOOD, &word.text)
}

fn names_code(word: &Word<'_>) -> bool {
    listed(CODES, &word.text) || listed(STATES, &word.text)
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

/// `exit code 0|x5`, `errors: 0|12`, but not `exit code 0|x0`, `uptime 0|5:12`.
fn goes_on_as_other_number(front: &[Word<'_>], text: &[Word<'_>], behind: &str) -> bool {
    let Some(zero) = text.last().filter(|last| last.after.is_empty() && is_zero(&last.text)) else {
        return false;
    };
    let more = behind.len() - behind.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).len();
    let whole = [&zero.text, &behind[..more]].concat().to_ascii_lowercase();
    let digits = whole.strip_prefix("0x").unwrap_or(&whole);
    let is_number = digits.bytes().all(|b| b.is_ascii_hexdigit())
        && (digits.len() < whole.len() || digits.bytes().all(|b| b.is_ascii_digit()));
    let counted = |word: &Word<'_>| names_code(word) || names_failure(word.raw);
    let near = front.iter().rev().take(2).chain(text);
    is_number && !digits.is_empty() && !is_zero(&whole) && near.into_iter().any(counted)
}

/// `not yet |ready|`, `failed to |complete|`, `0 |tests passed|`.
fn is_denied(before: &str, text: &[Word<'_>], behind: &str) -> bool {
    let front = words(before);
    let mut gap = front.last().map_or("", |last| last.after);
    for (count, at) in (0..front.len()).rev().enumerate() {
        let word = &front[at];
        if count > MOST_FILLERS || !joined(gap) {
            return false;
        }
        let refused = || word.text == "to" && at > 0 && listed(REFUSALS, &front[at - 1].text);
        // `0 tests passed`, but not `app 2.0 ready`
        let whole = || !word.before.ends_with(['.', '-', ':', '/', '_', '+']);
        let none = || count == 0 && word.text == "0" && whole() && text.iter().any(is_good);
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

/// `missing: |ready|`, `gave up: |ready|`, `waiting for: |ready|`.
fn is_missing(before: &str) -> bool {
    let front = before.trim_ascii_end().trim_end_matches(':').trim_ascii_end();
    let said = words(front);
    let last: Vec<&str> = said.iter().rev().take(2).map(|word| word.text.as_str()).collect();
    let asked = front.len() < before.trim_ascii_end().len();
    match last.as_slice() {
        [last, ..] if listed(MISSING, last) => true,
        [last, first, ..] => {
            let phrase = format!("{first} {last}");
            asked && phrases(AWAITED).any(|awaited| awaited == phrase) || phrase == "gave up"
        }
        _ => false,
    }
}

/// `prints "|selftest passed|" at the end`, but not `modem says "|ready|"`.
fn is_mentioned(front: &str) -> bool {
    let said = words(front);
    said.last().is_some_and(|last| listed(MENTIONS, &last.text) && joined(last.after))
}

/// `expected |exit code 0|, got 5`, but not `as expected: |ready|`.
fn is_wanted_before(before: &str) -> bool {
    let front = words(before);
    let (Some(last), beside) = (front.last(), front.iter().rev().nth(1)) else { return false };
    let joint = last.after.trim_ascii();
    listed(WANTED, &last.text)
        && matches!(joint, "" | ":" | "=")
        && beside.is_none_or(|beside| beside.text != "as")
}

/// `|0 errors| expected, 3 seen`, `|ready| was expected`
fn is_wanted_behind(behind: &str) -> bool {
    let next = words(behind);
    let was = usize::from(next.first().is_some_and(|first| first.text == "was"));
    let begun = next.first().is_some_and(|first| !first.before.is_empty());
    let wanted = next.get(was).filter(|wanted| begun && joined(wanted.before));
    wanted.is_some_and(|wanted| matches!(wanted.text.as_str(), "expected" | "wanted"))
}

/// Tells whether words in one part of a sentence stand on both sides of a gap.
fn joined(gap: &str) -> bool {
    gap.chars().all(|c| matches!(c, ' ' | '\t' | '-'))
}

/// `waiting for |ready|`, `almost |done|`, `only 2 |tests passed|`, `99% |complete|`, `!|ready|`,
/// `state != |ready|`, `[ ] |valid|`.
fn is_unreal(before: &str, text: &[Word<'_>]) -> bool {
    let negated = before.strip_suffix('!');
    if negated.is_some_and(|front| front.is_empty() || front.ends_with([' ', '(', '='])) {
        return true;
    }
    let joint = before.trim_ascii_end();
    if joint.ends_with("!=") || joint.ends_with("[ ]") {
        return true;
    }
    let front = words(before);
    // The words in front that belong to the same part of the sentence.
    let mut gap = front.last().map_or("", |word| word.after);
    let same = front.iter().rev().take_while(|word| {
        let same = joined(gap);
        gap = word.before;
        same
    });
    let near = &front[front.len() - same.count()..];
    let ends_with = |words: &[Word<'_>], phrase: &str| {
        let mut words = words.iter().rev();
        phrase.rsplit(' ').all(|part| words.next().is_some_and(|word| word.text == part))
    };
    let fillers = near.iter().rev().take_while(|word| listed(FILLERS, &word.text)).count();
    let unreal = |skipped: usize| {
        let words = &near[..near.len() - skipped];
        phrases(UNREAL).any(|phrase| ends_with(words, phrase))
    };
    let own = |word: &Word<'_>| is_good(word) && !listed(VERDICTS_OF_WAITS, &word.text);
    let own = text.iter().any(own);
    let named = near.iter().rev().take_while(|word| !is_good(word)).count().min(MOST_FILLERS);
    let awaited = |skipped: usize| {
        let words = &near[..near.len() - skipped];
        (own || skipped == 0 && text.first().is_some_and(|first| !listed("ok okay", &first.text)))
            && phrases(AWAITED).any(|phrase| ends_with(words, phrase))
    };
    (0..=fillers).any(unreal) || (0..=named).any(awaited) || is_part(near, before, text)
}

/// `only 2 |tests passed|`, `99% |complete|`, `3/5 |complete|`.
fn is_part(near: &[Word<'_>], before: &str, text: &[Word<'_>]) -> bool {
    let number_first = text.first().filter(|first| number(first).is_some());
    let mut some = near.iter().chain(number_first).rev();
    let counted = some.by_ref().find(|word| !listed(FILLERS, &word.text));
    let only = counted.is_some_and(|word| number(word).is_some())
        && some.next().is_some_and(|word| listed(ONLY, &word.text));
    let front = words(before);
    let value = |back: usize| front.get(front.len().checked_sub(back)?).and_then(number);
    let joint = |back: usize| front.get(front.len() - back).map_or("", |word| word.before);
    let percent = before
        .trim_ascii_end()
        .strip_suffix('%')
        .is_some_and(|rest| rest.trim_ascii_end().ends_with(|c: char| c.is_ascii_digit()));
    let share = percent && value(1).is_some_and(|share| share < 100);
    let of = || front.len() > 1 && matches!(joint(1), "/" | " / ");
    let less = value(1).zip(value(2)).is_some_and(|(all, some)| some < all);
    only || share || of() && less && joined(front.last().map_or("", |word| word.after))
}

/// `passed| except spi`, `ready|, but no link`, `done| so far`, `ready| failed`, `ok|ay? no`.
fn is_restricted(last: &Word<'_>, behind: &str) -> bool {
    let letters = behind.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (ending, behind) = behind.split_at(letters);
    let inflected = last.after.is_empty() && listed(INFLECTIONS, &ending.to_ascii_lowercase());
    if !ending.is_empty() && !inflected {
        return false;
    }
    let next = words(behind);
    if inflected && takes_back(last, &next) {
        return true;
    }
    let Some(first) = next.first() else { return false };
    let joint = [last.after, first.before].concat();
    if !joint.chars().all(|c| matches!(c, ' ' | '\t' | ',' | ';' | '(' | '-')) || joint.is_empty() {
        return false;
    }
    let begins_at = |from: usize, phrase: &str| {
        let parts = phrase.split(' ').zip(from..);
        parts.into_iter().all(|(part, at)| {
            next.get(at).is_some_and(|word| word.text == part && (at == 0 || joined(word.before)))
        })
    };
    let begins = |phrase: &str| begins_at(0, phrase);
    let reason = || {
        let is_reason = |word: &Word<'_>| {
            let joint = word.before.trim_ascii_start();
            listed(REASONS, &word.text)
                || joint.starts_with([',', ';', ':', '(']) && number(word).is_none()
        };
        next.get(1).is_none_or(is_reason)
    };
    let absent =
        || listed(SIGNS, &first.text) && phrases(ABSENT).any(|phrase| begins_at(1, phrase));
    // `not detected, giving up`
    let clause = 1 + next.iter().skip(1).take_while(|word| joined(word.before)).count();
    let came = || next.get(1).is_some_and(|word| listed(COMES, &word.text));
    let denied = listed("not never", &first.text) && (next.len() <= 2 || clause <= 2 && came());
    phrases(RESTRICTIONS).any(begins)
        || absent()
        || joined(&joint) && (denied || listed(FAILED, &first.text) && reason())
}

/// `rc=|-5`, `exit| code 3`, `passed|? no`, `DONE|!=OK`.
fn is_failing_value(last: &Word<'_>, behind: &str, ends: &dyn Fn() -> bool) -> bool {
    let rest = behind.trim_ascii_start();
    let next = words(behind);
    // `DONE!=OK`, `checksum 0x12345678 != 0x12340000`
    let is_value = |word: Option<&Word<'_>>| {
        word.is_some_and(|word| word.text.starts_with(|c: char| c.is_ascii_digit()))
    };
    let unequal = |at: usize| next.get(at).is_some_and(|word| word.before.trim_ascii() == "!=");
    if rest.starts_with("!=") || is_value(next.first()) && unequal(1) {
        return true;
    }
    let counts = || {
        let told = behind.trim_matches([' ', ',', ';', '(', ')', '[', ']', '-', '.', ':']);
        counts_failure(told)
    };
    let named = || error_codes::takes_back(behind);
    if is_good(last) && (takes_back(last, &next) || counts() || named())
        || is_state_taken_back(last, &next)
    {
        return true;
    }
    names_code(last) && is_code_value(last, &next, behind, ends)
}

/// `calibrated|=false`, `sensor found|: none`: a thing that was to be done, and was not.
fn is_state_taken_back(last: &Word<'_>, next: &[Word<'_>]) -> bool {
    let [value] = next else { return false };
    let participle = last.text == "found" || last.text.len() > 6 && last.text.ends_with("ed");
    let joint = [last.after, value.before].concat();
    participle && matches!(joint.trim_ascii(), ":" | "=") && listed("no false none", &value.text)
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
    let is_asked =
        |joint: &str| joint.bytes().all(|b| matches!(b, b':' | b'=' | b'?' | b' ' | b'"'));
    let asked = !joint.is_empty() && is_asked(joint);
    let zero = value.text == "0" && !value.after.starts_with('.');
    // `ready: 0 errors`
    let counted = matches!(value.text.as_str(), "0" | "no");
    let thing = next.get(1).is_some_and(|next| next.before.trim_ascii().is_empty());
    if asked && (listed(NEGATIVE, &value.text) || zero) && !(counted && thing) {
        return true;
    }
    let counted = next.iter().any(|word| is_zero(&word.text));
    if asked && listed(BAD_VALUES, &value.text) && !counted {
        return true;
    }
    // `ready - no`, `ready [false]`, `ready is false`, `ready ..... no`, `| ready | no |`
    let is = usize::from(value.text == "is" && joint.is_empty());
    let lone = next.get(is).filter(|_| next.len() == is + 1);
    let column = joint.is_empty() && [last.after, value.before].concat().contains('\t');
    let pointed = joint.bytes().all(|b| b" :=?>-[(|.".contains(&b))
        && (is == 1 || column || !joint.is_empty());
    if pointed && lone.is_some_and(|lone| listed(NEGATIVE, &lone.text)) {
        return true;
    }
    // `complete: 50%`
    if next.len() == 1
        && value.after.trim_ascii_start().starts_with('%')
        && number(value) < Some(100)
    {
        return true;
    }
    // `done: 2/3`, `done: 2/3 good`
    let part = || {
        let (some, all) = (number(value)?, number(next.get(1)?)?);
        let ends = next.len() == 2 || next.len() == 3 && is_good(&next[2]);
        Some(matches!(next[1].before, "/" | " / ") && ends && some < all)
    };
    let some_of = || {
        let (some, all) = (number(value)?, number(next.get(2)?)?);
        Some(next[1].text == "of" && some < all)
    };
    let ended = joint.is_empty() && listed("finished completed", &last.text);
    if (asked || ended || joint == "(") && part().unwrap_or_default()
        || asked && some_of().unwrap_or_default()
        || passes_fewer(next)
    {
        return true;
    }
    // `done => 0xfffffffb`
    let negative = |rest: &str| rest.len() == 3 && rest != "fff";
    let negative = value.text.strip_prefix("0xfffff").is_some_and(negative);
    if negative && next.len() == 1 && joint.bytes().all(|b| b" :=>-(".contains(&b)) {
        return true;
    }
    // `done: -3`
    let minus = joint.strip_suffix('-').is_some_and(|joint| !joint.is_empty() && is_asked(joint));
    if minus && next.len() == 1 && number(value) > Some(0) {
        return true;
    }
    let plain = joint.bytes().all(|b| matches!(b, b':' | b',' | b';' | b'(' | b'-' | b' '));
    let with = value.text == "with";
    let is_bad =
        |word: &Word<'_>| listed("errors error failures failure problems faults", &word.text);
    let bad = next.get(1).is_some_and(is_bad);
    // `complete, 1 problem found`
    let defects =
        next.get(1).is_some_and(|word| joined(word.before) && listed(DEFECTS, &word.text));
    let mended = next.iter().any(|word| listed(MENDED, &word.text));
    if plain && defects && !mended && number(value) > Some(0) {
        return true;
    }
    // `done, 2 of 5 drivers failed`
    let part = next.iter().skip(1).take_while(|word| joined(word.before)).last();
    let failed = part.is_some_and(|last| listed("failed failing missing broken", &last.text));
    if plain && failed && number(value) > Some(0) {
        return true;
    }
    let some = next.get(1).and_then(number).is_some_and(|count| count > 0);
    if plain && with && (bad && next.len() == 2 || some && next.get(2).is_some_and(is_bad)) {
        return true;
    }
    // `done, status 3`, `finished with error -5`
    let Some((name, rest)) = next.get(usize::from(with)..).and_then(<[_]>::split_first) else {
        return false;
    };
    let is_code = listed(CODES, &name.text) || matches!(name.text.as_str(), "status" | "code");
    let code = is_code || with && is_bad(name);
    let ends = || true;
    plain && code && rest.len() <= 3 && is_code_value(name, rest, name.after, &ends)
}

/// `run 13, good 12`, `ok: 12 (13 run)`: two counts, and fewer have passed than were run.
fn passes_fewer(next: &[Word<'_>]) -> bool {
    let counts: Vec<usize> = (0..next.len()).filter(|&at| number(&next[at]).is_some()).collect();
    let &[first, second] = counts.as_slice() else { return false };
    let beside = |at: usize, list: &str| {
        let near = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
        let mut near = near.filter_map(|at| next.get(at));
        near.any(|word| listed(list, &word.text))
    };
    let fewer = |passed: usize, run: usize| {
        beside(passed, PASSED) && beside(run, RUN) && number(&next[passed]) < number(&next[run])
    };
    next.len() == 4 && (fewer(first, second) || fewer(second, first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Cases {
        part_of_word: Vec<String>,
        denied: Vec<String>,
        restricted: Vec<String>,
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
        let lists = [
            (&cases.part_of_word, Some(AwaitedDoubt::PartOfWord)),
            (&cases.denied, Some(AwaitedDoubt::Denied)),
            (&cases.restricted, Some(AwaitedDoubt::Restricted)),
            (&cases.failing_value, Some(AwaitedDoubt::FailingValue)),
            (&cases.near_misses, None),
        ];
        let lines =
            lists.into_iter().flat_map(|(lines, wanted)| lines.iter().map(move |l| (l, wanted)));
        let wrong: Vec<_> = lines.filter(|(line, wanted)| doubt(line) != *wanted).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
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
