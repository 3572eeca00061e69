//! Tells whether a line behind the end of a report denies, misses or exceeds something: `no free buffers`,
//! `clock is not ready`, `length must be even`. Pure.
//!
//! # Design
//! Systems give the reason of a halt in words of their own: of 1,690 texts that some fifty of them print in
//! front of one, 29 % had none of the words of a crash or of trouble. What these have in common
//! is a form: something is not as it has to be. The same forms are in some ordinary lines, too, so
//! they count behind the end of a report only, and not where a word in front of them makes them a
//! condition or a test, where the line goes on in another way, or where they name a plain state
//! (`not connected`, `no changes`). `trouble_form_lines.toml` holds examples and near misses of each form.

use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::line_forms::{Form, compiled};
use super::words::{Word, is_zero, listed, words};

/// Parts of the patterns, by the name that they are put in for.
const PARTS: &[(&str, &str)] = &[
    ("START", r"(?:^|[\])}:>.|-]\s+)"),
    ("FILLERS", r"(?: (?:yet|be|been|a|an|the|have|any|enough|all|in|for|from|on|at))*"),
    (
        "FREE",
        r"(?:more|free|suitable|valid|usable|available|such|memory|space|room|response|answer|reply)",
    ),
    (
        "THERE",
        r"(?:found|available|left|given|present|defined|detected|exists?|supported|implemented|initiali[sz]ed|selected|assigned|registered|active)",
    ),
    (
        "WRONG",
        r"(?:unsupported|inconsistent|insufficient|malformed|conflicting|duplicated?|undefined|unimplemented|incompatible|mis-?aligned|misconfigured|non-?existent|unexisting|unrecogni[sz]ed|unusable|unreadable|unresponsive|uninitiali[sz]ed|unbalanced|inaccessible|bogus|impossible|ambiguous|excessive|inadequate|improper|erroneous|faulty)",
    ),
    (
        "AMOUNT",
        r"(?:large|small|many|few|long|short|big|low|high|slow|fast|old|late|early|much|little|deep|narrow|wide|close)",
    ),
    (
        "RESOURCE",
        r"(?:range|bounds?|space|resources?|memory|heap|buffers?|handles?|slots?|descriptors?|sync)",
    ),
    ("LINK", r"(?:connection|link|contact|sync|synchroni[sz]ation|lock|carrier|clock|power)"),
    ("CODE", r"(?:rc|ret|res|err|status|result)"),
    ("EVENT", r"(?:FAIL|FAILED|FAILURE|ERROR|ERR|PANIC|TRAP|FAULT|ABORT|INVALID)"),
];

/// Name of the form whose last word is what is denied.
const DENIED: &str = "denied";
/// Name of the form that names what is absent.
const NONE: &str = "none";
/// Name of the form that is the name of an event or of a code.
const NAME: &str = "name";

const FORMS: &[Form] = &[
    (DENIED, r"(?:\b(?:not|never)|\b\w+n't)FILLERS [a-z]+"),
    (
        NONE,
        r"STARTno (?:FREE \w+|[\w/.-]+(?: [\w/.-]+){0,4} (?:is |are |was |were )?THERE\b)|\b(?:has|have|had|got|with) no [a-z]+",
    ),
    ("adjective", r#"\b(?:unknown|undefined) [a-z]\w+|\bWRONG ["'a-z]|\w WRONG\W*$"#),
    ("missing", r"\bmissing\b|\black(?:s|ing)? (?:of )?[a-z]"),
    (
        "excess",
        r"\btoo AMOUNT\b|\b(?:larger|greater|smaller|longer|shorter|bigger) th[ae]n\b|\bexceed(?:s|ed|ing)?\b|\btook (?:more|longer) than\b|\blimit (?:is |was )?(?:reached|hit)\b|\brequires? at least\b|\bbelow zero\b|\b(?:is|was|became|went) negative\b|\b(?:over|under)(?:run|flow)\W*$",
    ),
    (
        "exhausted",
        r"\bout of (?:\w+ ){0,2}RESOURCE\b|\bexhausted\b|\bnot enough\b|\bran out of\b|\bstack (?:is )?low\b|\broom for only\b",
    ),
    (
        "timeout",
        r"\btimed[ -]out\b|\btime-?out(?: error)?\W*$|\btime-?out (?:waiting|while|when|on|in|during|after|at|for|from|reading|writing)\b",
    ),
    ("lost", r"\blost track\b|\blost (?:\w+ ){0,2}LINK\b|\bLINK (?:is |was |has been )?lost\b"),
    (
        "stuck",
        r"\bstuck\b|\bwent backwards?\b|\bdegraded\b|\bglitch\b|\bpartially (?:applied|written|erased)\b",
    ),
    (
        "collision",
        r"\boverlap(?:s|ped|ping)?\b|\bcollid(?:es|ed|ing)\b|\bconflicts? with\b|\bmore than once\b|\bcorruption\W*$|\balready (?:exists|in use|taken|owned|locked|claimed|occupied|allocated)\b",
    ),
    (
        "duty",
        r"\bmust(?:n't)? [a-z]+|\b(?:has|have) to be\b|\bshould (?:not|never) (?:be|have|get|happen)\b|\bcalled (?:in|from|outside|without) (?:\w+ ){0,2}(?:mode|context|isr|interrupt|lock)\b|\w, but \w",
    ),
    (
        "restricted",
        r"\bonly\b.*\b(?:supported|supports?|allowed|permitted|are valid)\b|\bonly (?:valid|works?|usable|possible)\b",
    ),
    (
        "expected",
        r"^\W*(?:error|exception)(?:[:,]| on) .*\bexpected\b|\bexpected [a-z].*\b(?:got|found)\b|\bwhere .* expected\W*$",
    ),
    (
        "refused",
        r"\battempted to\b|\b(?:unable|failed) to [a-z]|\b(?:rejected|denied)\W*$|\berror (?:initiali[sz]ing|reading|writing|opening|creating|loading|mounting|setting|registering|allocating|configuring|starting)\b|\b(?:access|permission|operation|request) (?:is |was )?(?:denied|refused|rejected)\b|\bgiving up\b|\bgave up\b|\brefus(?:es|ed|ing) to\b|\bstop(?:ped|ping)? boot\w*|\bproblems? (?:with|in|while|when|during)\b",
    ),
    ("null", r"== ?null\b|\bnull (?:pointer|proc|deref\w*|ptr)\b|\bis null\b|\bcalled with null\b"),
    (
        NAME,
        r"(?-i:START[A-Z0-9]+(?:_[A-Z0-9]+)*_EVENT\W*(?:$|:)|(?:START|: \w+_)INVALID_\w+$|\bCODE ?= ?-?(?:0x)?0*[1-9A-Fa-f][0-9A-Fa-f]*,? \(?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\)?$)|\b__ubsan_handle_|unreachable\(",
    ),
];

/// Words in front that make it a condition, a wish, or what a test is about.
const UNREAL: &str = "\
    if unless whether until no none without never zero do must detect detects detection test tests \
    testing check checks checking verify verifies verifying note usage simulate simulating simulated \
    inject injecting injected expect expects likely";

/// Words of a line that goes on, or has gone on.
const GOES_ON: &str = "\
    retry retries retrying again reconnect reconnecting default defaults ignored ignoring \
    skipping skip skipped continuing handled corrected dropped dropping formatting ok okay pass passed \
    passes xfail todo assume assuming creating truncating instead rejecting force forced optional \
    falling fell disabling fixing";

/// Plain states, of which a firmware that is well tells.
const STATES: &str = "\
    advised needed required necessary recommended specified enabled used use configured connected \
    secure only applicable running active armed set programmed expected move worry care matter \
    attached authenticated inserted plugged charging paired provisioned production obsolete";

/// Things and events of which none is wanted.
const UNWANTED: &str = "\
    error errors fail failed failing fault faults failure failures abort assert hang reset watchdog \
    expire expired exceed exceeds exceeded lost stuck issue issues problem problems leak leaks warning warnings \
    conflict conflicts collision collisions mismatch mismatches violation violations change changes \
    update updates overlap overlaps crash crashes panic panics loss core overflow overflows timeout \
    timeouts deadlock deadlocks corruption";

pub(super) static TROUBLE: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(FORMS, PARTS));

/// Tells whether a text says that something is not as it has to be.
pub(super) fn denies_need(text: &str) -> bool {
    form_of(text).is_some()
}

/// Returns the name of the form that a text has.
fn form_of(text: &str) -> Option<&'static str> {
    let text = text.trim_ascii();
    let real = TROUBLE.as_ref()?.find_iter(text).find_map(|found| {
        let (name, _) = FORMS.get(found.pattern().as_usize())?;
        let clause = text.get(..found.start())?.rsplit(['.', ':', ';']).next()?;
        let unreal = words(clause).iter().any(|word| listed(UNREAL, &word.text));
        (!unreal && !is_plain(name, text.get(found.range())?, clause)).then_some(*name)
    })?;
    (!goes_on(text)).then_some(real)
}

/// `not connected`, `don't move the board`, `no errors found`, behind the front of the clause.
fn is_plain(form: &str, found: &str, front: &str) -> bool {
    let words = words(found);
    let has = |list: &str| words.iter().any(|word| listed(list, &word.text));
    // `can't change the clock`, `could not be set`
    let before = front.trim_end().to_ascii_lowercase();
    let unable = || has("can't couldn't know") || before.ends_with("could");
    match form {
        // `a value (not an address)`
        DENIED if before.ends_with(['(', '[']) || before.ends_with(" a") => true,
        // `not yet supported`
        DENIED if has("yet") && has("supported implemented") => true,
        DENIED => !unable() && (has("don't") || has(STATES) || has(UNWANTED)),
        NONE => has(UNWANTED),
        // `status=1 HAL_OK`
        NAME => ["_OK", "_SUCCESS", "_DONE"]
            .iter()
            .any(|end| found.trim_end_matches(')').ends_with(end)),
        _ => false,
    }
}

/// `invalid config, using 9600 baud`, but not `failed to configure the link using DHCP`.
pub(super) fn uses_other(words: &[Word<'_>]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        // `unknown argument (use --help)`
        let advice = word.text == "use" && word.before.contains('(');
        let own = at == 0 || word.before.contains([',', ';', '.', '-', '(', ':']);
        !advice
            && listed("use using", &word.text)
            && (own || listed("so now and will", &words[at - 1].text))
    })
}

fn goes_on(text: &str) -> bool {
    let words = words(text);
    // `unsupported requests: 0`, `secure boot missing: no`.
    let none = words.last().is_some_and(|word| {
        let joined = matches!(word.before.trim(), ":" | "=");
        joined && (is_zero(&word.text) || listed("none no off", &word.text))
    });
    let expected = words.windows(2).any(|two| two[0].text == "as" && two[1].text == "expected");
    none || expected || uses_other(&words) || words.iter().any(|word| listed(GOES_ON, &word.text))
}

#[cfg(test)]
mod tests {
    use super::super::line_forms::tests::examples_of;
    use super::super::tells_trouble;
    use super::*;

    #[test]
    fn each_form_has_examples_and_near_misses() {
        examples_of(FORMS, form_of, tells_trouble, include_str!("trouble_form_lines.toml"));
    }
}
