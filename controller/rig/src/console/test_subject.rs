//! Tells whether a line says what a named test found: `test spi: no ack`, `KAT vector 7 mismatch`. Pure.
//!
//! # Design
//! `no answer` or `missing` is an ordinary line of a log. Behind the name of a test, or of what is compared
//! in one, it is a failed result. So a form has both: what names the test, and what was found.
//! `test_subject_lines.toml` holds examples and near misses of each.

use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::line_forms::{Form, compiled};
use super::result_rows::goes_on;
use super::words::{listed, words};

/// Parts of the patterns, by the name that they are put in for; a later one may stand in an earlier one.
const PARTS: &[(&str, &str)] = &[
    (
        "SUBJECT",
        r"(?:self[ _-]?test|(?:mem|ram|rom|flash|unit|burn-?in|loopback|smoke)?[ _-]?test(?:case)?|check|bist|post|diag(?:nostics?)?|verif(?:y|ication)|calibration)",
    ),
    ("NAME", r"(?:[ _.#/][\w./#+-]+){0,5}"),
    ("JOINT", r" ?(?::|\.{2,}|->|=>| -) ?"),
    (
        "FOUND",
        r"(?:(?:it |is |was |are )?(?:BROKEN|no (?:response|answer|ack|reply|data|signal|link|connection)|not (?:found|detected|present|responding|correct|valid|equal|matching|working|connected)|bad \w+|wrong(?: \w+)?|unexpected \w+|RANGE|(?:VALUE,? )?(?:is )?RANGE)(?: (?:at|in|on|for) .*| \(.*\)|[,;] .*)?[.!]*$)",
    ),
    (
        "BROKEN",
        r"(?:dead|broken|stuck|missing|mismatch(?:ed)?|corrupt(?:ed)?|shorted|damaged|defective|faulty|unresponsive|degraded|hung)",
    ),
    (
        "THING",
        r"(?:vector|pattern|readback|read-back|checksum|digest|block|sector|page|word|crc|kat)s?",
    ),
    ("VALUE", r"[-+]?[0-9][0-9.]*(?: ?[a-z%]{1,4})?"),
    (
        "RANGE",
        r"(?:OUTSIDE|(?:below|above|exceeds|beyond) (?:the |its )?(?:limit|threshold|minimum|maximum|spec)s?|limits? (?:violated|exceeded))",
    ),
    (
        "OUTSIDE",
        r"(?:(?:out of|outside(?: of)?|not (?:in|within)) (?:the |its )?(?:range|spec(?:ification)?s?|tolerances?|limits?))",
    ),
];

const FORMS: &[Form] = &[
    ("subject", r"^(?:[\w.+-]+ ){0,2}SUBJECTNAMEJOINTFOUND"),
    (
        "compared",
        r"\bTHING(?: ?#?(?:0x)?[0-9a-f]*[0-9][0-9a-f]* mismatch(?:es|ed)?(?: at .*| in .*| \(.*\))?| mismatch(?:es|ed)? (?:at|in) (?:0x|THING|[0-9]).*)[.!]*$",
    ),
    (
        "measured",
        r"^[\w.+-]+(?: [\w.+-]+){0,3}(?: ?[:=])? VALUE(?: ?[\[(][^\])]*[\])])?,? (?:is )?OUTSIDE",
    ),
    (
        "all",
        r"\bnot all (?:are |were )?(?:fine|good|ok|okay|passed|green)\b|(?:^|[,;] )[1-9][0-9]* (?:(?:is|are|was|were) )?not (?:good|ok|okay|passed)$|^(?:\w+[:,] )?(?:(?:some|[1-9][0-9]*) )?(?:tests?|checks?|cases?) (?:are |is )?(?:failing|red)[.!]*$|, [1-9][0-9]* (?:tests?|checks?) red[.!]*$",
    ),
    (
        "subject-part",
        r"^(?:[\w.+-]+ ){0,3}SUBJECT: (?:[\w.+-]+ ){1,4}(?:held (?:low|high)|not (?:running|toggling|oscillating|responding|detected|found|present|working)|stuck (?:at|low|high)\b.*|(?:exceeds|beyond|below|above) (?:the |its )?(?:limit|threshold|minimum|maximum|spec)\b.*)[.!]*$",
    ),
    ("subject-lost", r"^(?:[\w.+-]+ ){0,3}SUBJECT: .*\b0*[1-9][0-9]* lost[.!]*$"),
    ("malfunction", r"\b(?:self[ _-]?test|bist)\b.* malfunctions?(?: detected)?\b"),
    ("packets", r"\b[1-9][0-9.]*% packet loss\b"),
];

/// Text of which one stands in each such line, unless a word of results does.
pub(super) const HINTS: &str = r"\bdead\b|\bbroken\b|\bstuck\b|missing|mismatch|corrupt|shorted|damaged|defective|faulty|unresponsive|degraded|\bhung\b|\bno (?:response|answer|ack|reply|data|signal|link|connection)|\bnot (?:found|detected|present|responding|correct|valid|equal|matching|working|connected|in|within|all|good|ok|passed)|: ?bad |wrong|unexpected|out of|outside|below|above|exceeds|beyond|limits? (?:violated|exceeded)|failing|\bred\b|packet loss|held (?:low|high)|not (?:running|toggling|oscillating)|malfunction|[1-9] lost";

/// Words of a line that tells of no failure.
const DENIALS: &str = "\
    never without unless if expected expecting wanted simulated injected known allowed optional \
    waiting wait until retry retrying skip skipped ignored";

pub(super) static FINDINGS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(FORMS, PARTS));

/// Tells whether a text says that a test found something wrong.
pub(super) fn finds_fault(text: &str) -> bool {
    form_of(text).is_some()
}

/// Returns the name of the form that a text has.
fn form_of(text: &str) -> Option<&'static str> {
    let text = text.trim_ascii();
    let found = FINDINGS.as_ref()?.find(text)?;
    let denied = words(text).iter().any(|word| listed(DENIALS, &word.text));
    let (name, _) = FORMS.get(found.pattern().as_usize())?;
    (!denied && !goes_on(text)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::super::line_forms::tests::have_examples;
    use super::*;

    #[test]
    fn each_form_has_examples_and_near_misses() {
        have_examples(FORMS, form_of, include_str!("test_subject_lines.toml"));
    }
}
