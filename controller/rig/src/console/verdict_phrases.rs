//! Tells whether a line is a verdict in the words of a home-made test: with a detail behind it, in
//! another language, as an assertion or as a pair of values. Pure.
//!
//! # Design
//! Words of a verdict are also words of a log. So each phrase is bound to the place of a verdict: the
//! whole line, the end behind a name and a joint, a bracket. What a driver prints, too (`adc: ERROR`),
//! counts only as a whole line, in front of which no level and no tag stands. A line that goes on in
//! another way (`retrying`) or that was wanted is none.
//! `failed_result_lines.toml` holds examples.

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use super::scan::searched_once;
use super::words::{listed, words};

/// Names in front of a verdict, and verdicts, by the name that [`phrase`] puts them in for.
const PARTS: &[(&str, &str)] = &[
    ("NAME", r"[A-Za-z0-9_][\w./+-]*(?: [\w./+-]+){0,3}"),
    ("JOINT", r"(?: ?(?:[:|]|=>|->|\.{2,}) ?| -+ )"),
    (
        "DETAIL",
        r"(?:,? (?:rc|err|code|bin)?[ =:]?-?(?:0x)?0*[1-9A-Fa-f][0-9A-Fa-f]*| ?[(\[{<].*)?[.!]*$",
    ),
    ("SPOILT", r"(?:ERR|ERROR|REJECT|REJECTED|FAULTY|DEFECT|DEFECTIVE)"),
    (
        "FOREIGN",
        r"(?:FEHLER|FEHLERHAFT|FEHLGESCHLAGEN|DEFEKT|NICHT OK|NICHT I\.O\.|(?:\xc3\x89|E)CHEC|(?:\xc3\x89|E)CHOU(?:\xc3\x89|E)|ERREUR|NON CONFORME|FALLO|FALLIDO|FALLIDA|FALL(?:\xc3\x93|O)|FALLITO|ERRORE|FALHA|FALHOU|REPROVADO|MISLUKT|FOUT)",
    ),
    (
        "DENIED",
        r"(?:nicht (?:bestanden|erfolgreich)|(?:non|pas) r(?:\xc3\xa9|e)ussie?|no (?:superad[oa]|aprobad[oa])|non (?:superat[oa]|riuscit[oa])|n(?:\xc3\xa3|a)o (?:passou|aprovado)|niet geslaagd)",
    ),
    ("VALUE", r"[\w.+'\x22-]+"),
    ("MISMATCH", r"(?:error|fail|failed|failure|mismatch|miscompare)"),
];

/// Phrases wherever a message begins, behind whatever a logger puts in front.
const PHRASES: &[&str] = &[
    // A verdict with a detail
    r"^[^.]+[. ]\.{2,} ?(?:ERROR|FAIL|FAILED|FAILURE|NG|KO|BAD|NOT OK) ?[(\[]",
    r"^[^.]+ \.{3,} (?:fail|failed|error|not ok) ?[(\[]",
    r"(?i-u)^test \d+ ?\.{2,} ?failed\b",
    r"(?i-u)\btests? failed[.!]? [(\[](?:rc|err|error|code|ret)\b",
    r"(?i-u)^\[ ?(?:fail|failed|nok|not ok) ?\] NAME$",
    r"(?i-u)^(?:[-*+]|\d{1,2}[.)]) +NAME ?: ?(?:fail|failed|nok|not ok)[.!]*$",
    r"^NAME ?(?:JOINT)?NOT (?:OK|PASSED|GOOD)DETAIL",
    r"(?i-u)^NAME: not ok -+ \S",
    r"^NAME ?(?:=>|->|\.{2,}) ?(?:KO|NG|NOK)[.!]*$",
    // Another language
    r"^\W*FOREIGN\W*$",
    r"^[^:]{1,40}JOINTFOREIGNDETAIL",
    r"[\[(<] ?FOREIGN ?[\])>]",
    r"(?i-u)\bDENIED\b[ .!]*(?:\(.*\))?$",
    r"(?i-u)\b\w*(?:test|pr\xc3\xbcfung|prueba|essai|prova)\b.* (?:fehlgeschlagen|(?:\xc3\xa9|e)chou(?:\xc3\xa9|e)e?|fallid[oa]|fall(?:\xc3\xb3|o)|fallit[oa]|falhou|mislukt)[ .!]*$",
    // Counts
    r"(?i-u)^(?:NAME: ?)?\d+ (?:ok|good|passed), 0*[1-9]\d* not ok\b",
    r"(?i-u)^0*[1-9]\d* not ok, \d+ ok\b",
    r"(?i-u)^(?:bad|ng|nok|ko) ?[:=] ?0*[1-9]\d*[ ,;/]+(?:good|ok|pass) ?[:=] ?\d+$",
    r"(?i-u)^(?:good|ok|pass) ?[:=] ?\d+[ ,;/]+(?:bad|ng|nok|ko) ?[:=] ?0*[1-9]\d*$",
    r"(?i-u)^\S+: \d+ (?:blocks|vectors|samples|words|bytes|patterns|pages|sectors), 0*[1-9]\d* mismatch(?:es)?$",
    r"(?i-u)^(?:\w+ )?[\w-]*test: 0*[1-9]\d* (?:problem|fault|issue)(?:s|\(s\))?(?: found| detected)?(?:[,;] .*)?[.!]*$",
    // Structured
    r#"(?i-u)"pass" ?: ?false"#,
    r#"(?i-u)^\{ ?"status" ?: ?"error" ?, ?"code" ?: ?-?[1-9]\d* ?\}$"#,
    // Exit codes
    r"(?i-u)^(?:has )?(?:exited|terminated) with (?:(?:exit|return) )?(?:status|code)[:= ]+-?0*[1-9]\d*[.!]?$",
    r"(?i-u)^(?:\w+[ _])?(?:self[ _-]?)?test\w*\(\) ?= ?-?0*[1-9]\d*$",
    r"^EXIT_FAILURE$",
    // Assertions
    // What ztest prints of one goes on behind the place; its case says whether that was wanted.
    r"(?i-u)^assert(?:ion)? (?:failed|failure) (?:(?:in|on) \S|at \S+(?: line \d+)?$)",
    r"(?i-u)^assert(?:ion)?: \S.* failed (?:at|in|on) \S",
    r"(?i-u)^(?:\w*assert\w*|check\w*|expect\w*|require\w*|verify\w*)\(.*\) (?:has )?failed[.!]*$",
    r"(?i-u)^expectation failed\b",
    r"^\S+\.[ch]:\d+:assert: assert failed with ",
    r"(?i-u)^[\w./\\-]+\.(?:c|cc|cpp|cxx|h|hpp|ino)\(\d+\) ?: (?:error|fail|failed|failure)\b",
    r"^panicked at [^ ']+\.rs:\d+:\d+:?$",
    r"(?i-u)^assertion .+ (?:(?:did|does) not hold|is violated|violated|is false)[.!]*$",
    r"(?i-u)^(?:[a-z]\w* )?(?:invariant|pre-?condition|post-?condition|contract|constraint)(?: \S+)? (?:is |was )?(?:violated|failed|broken|not satisfied|not met)\b",
    r"(?i-u)^(?:check|condition|constraint|requirement) ?#?\w* (?:is |was )?(?:unsatisfied|not satisfied|unmet|not met|violated)[.!]*$",
    // Values
    r"(?i-u)^(?:\w+ ){0,2}(?:hash|hashes|crc|crcs|checksums?|digests?|contents?|data|outputs?|results?|images?|signatures?) (?:differs?|mismatch|mismatches|(?:do|does) not match|doesn't match)[.!]*$",
    r"(?i-u)^diff(?:erence|erences|ers)? (?:at|in) (?:byte|offset|line|address|position|word|0x|#)? ?[0-9a-f]",
    r"(?i-u)\b(?:data |memory |verify |read-?back |compare )mismatch at (?:0x)?[0-9a-f]+\b.*\b(?:read|got|expected|wrote)\b",
    r"(?i-u)\bstuck bits? \d+ at 0x[0-9a-f]",
    r"(?i-u)^(?:memory|ram|flash|data|compare|verify|read-?back) error at (?:address )?0x[0-9a-f]",
    // A unit under test
    r"^(?:DUT|UUT|UNIT|BOARD|PART|MODULE)(?: \d+)? (?:IS )?REJECTED[.!]*$",
];

/// Phrases of a whole line.
const WHOLE: &[&str] = &[
    r"^NAMEJOINTSPOILTDETAIL",
    // With a number it is a setting.
    r"^(?:FATAL|ABORTED|E_FAIL)[.!]*$",
    r"(?i-u)^rc ?= ?-?0*[1-9]\d*$",
    r"(?i-u)^(?:return value|exit) ?[:=]? ?-?0*[1-9]\d*$",
    r"(?i-u)^(?:read-?back|compare|verify) (?:mismatch|failed)(?: at 0x[0-9a-f]+)?[.!]*$",
    r"^NAMEJOINT(?:TIMEOUT|TIMED OUT)[.!]*$",
    r"^[\w-]+: timed out[.!]*$",
    r"(?i-u)^\W*(?:not (?:ok|passed|successful)|unsuccessful)\W*$",
    r"(?i-u)^(?:errors?|errs?) ?[:=] ?0x0*[1-9a-f][0-9a-f]*$",
    r"^error, .+ (?:!=|==|<=?|>=?) \S+$",
];

/// Pairs of values, of which one was expected.
const PAIRS: &[&str] = &[
    r"(?i-u)^(?:[\w.-]+ ?: ?)?expected:? (VALUE)[,;]? +(?:but )?(?:got|was|actual|found|received):? (VALUE)[.!]?$",
    r"(?i-u)^(?:[\w.-]+ ?: ?)?(?:got|actual|found|received):? (VALUE)[,;]? +(?:but )?expected:? (VALUE)[.!]?$",
];

/// Pairs of values behind a word of failure, of which one was expected or written.
const FAILED_PAIRS: &[&str] = &[
    r"(?i-u)\bMISMATCH\b.*\b(?:expected|wanted|want|wrote|written):? (VALUE)[,;]? +(?:but )?(?:got|was|actual|found|received|read)(?: back)?:? (VALUE)[.!)]*$",
    r"(?i-u)\bMISMATCH\b.*\b(?:got|actual|found|received|read):? (VALUE)[,;]? +(?:but )?(?:expected|wanted|want|wrote|written):? (VALUE)[.!)]*$",
];

/// Text of which one stands in each such line, unless a word of results does.
pub(super) const HINTS: &str = r#"(?-i:\bFATAL|ABORTED|E_FAIL)|return value|\bexit ?[:=]? ?-?0*[1-9]|read-?back|compare |verify |assertion |invariant|condition|contract|constraint|unsatisf|unmet|\bdiffer|\bdiff |not match|doesn't match|\bnicht |fehler|defekt|fehlgeschl|(?:\xc3\x89|\xc3\xa9|\be)cho?[eu]|erreur|non[ -](?:conf|r|s)|\bpas r|fall(?:o|\xc3\x93|\xc3\xb3|id|it)\b|fallid|fallit|\bno (?:super|aprob)|errore|falh|reprov|mislukt|\bfout\b|niet ges|n(?:\xc3\xa3|a)o (?:pass|aprov)|\bbad[:=]|\bexpected:? |\berr\b|\berr=0x|reject|faulty|defect|test[^\r\n ]*\(\) ?=|\bwrote |exited with|panicked at|stuck bit|problem"#;

/// Words of a line that goes on in another way, or that was wanted.
const GOES_ON: &str = "\
    retry retries retrying again attempt attempts skip skipped skipping using default defaults \
    fallback falling ignored ignoring reconnect reconnecting todo wanted simulated injected known \
    if when should optional";

/// Words of a line that tells of a wanted failure, where no pair of values is told of.
const WANTED: &str = "expected expects expect";

pub(super) static ANYWHERE: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(PHRASES));
pub(super) static LINES: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(WHOLE));
pub(super) static VALUES: LazyLock<Option<Regex>> =
    LazyLock::new(|| compiled(&[PAIRS, FAILED_PAIRS].concat()));

fn phrase(phrase: &&str) -> String {
    let put = |text: String, (name, part): &(&str, &str)| text.replace(name, part);
    PARTS.iter().fold((*phrase).to_owned(), put)
}

fn compiled(phrases: &[&str]) -> Option<Regex> {
    let ascii = syntax::Config::new().unicode(false).utf8(false);
    let phrases: Vec<String> = phrases.iter().map(phrase).collect();
    Regex::builder().configure(searched_once()).syntax(ascii).build_many(&phrases).ok()
}

/// Tells whether a text is a failed verdict. It may be the `whole` line.
pub(super) fn is_failed_phrase(text: &str, whole: bool) -> bool {
    let text = text.trim_ascii();
    let matches =
        |set: &LazyLock<Option<Regex>>| set.as_ref().is_some_and(|set| set.is_match(text));
    let words = || words(text);
    let unreal = || words().iter().any(|word| listed(GOES_ON, &word.text)) || is_activity(text);
    let wanted = || {
        let values = text.contains("read") || text.contains("got") || text.contains(".c:");
        !values && words().iter().any(|word| listed(WANTED, &word.text))
    };
    (matches(&ANYWHERE) || whole && matches(&LINES)) && !unreal() && !wanted()
        || whole && is_other_value(text) && !unreal()
}

/// `Connecting ... failed (timeout)`: what a device does.
fn is_activity(text: &str) -> bool {
    let first = text.split([' ', '.', ':']).next().unwrap_or_default();
    let noun = listed("ring string timing wiring mapping paging ping routing", first);
    first.len() > 4 && first.ends_with("ing") && !noun
}

/// `adc: expected 512 got 498`, but not `expected 1, got 1`.
fn is_other_value(text: &str) -> bool {
    let Some(set) = &*VALUES else { return false };
    let mut captures = set.create_captures();
    set.captures(text, &mut captures);
    let value = |group: usize| captures.get_group(group).and_then(|span| text.get(span.range()));
    let pair = value(1).zip(value(2));
    pair.is_some_and(|(one, other)| !one.eq_ignore_ascii_case(other.trim_end_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phrases_compile() {
        assert!(ANYWHERE.is_some() && LINES.is_some() && VALUES.is_some());
    }

    #[test]
    fn a_verdict_stands_in_its_place() {
        for (line, failed) in [
            ("adc: ERR", true),
            ("mtd_nandecctest: not ok - double-bit-error-in-data-detect", true),
            ("mtd_nandecctest: ok - double-bit-error-in-data-detect", false),
            ("Self-test: 1 problem found, see log", true),
            ("Self-test: 0 problems found", false),
            ("adc: ERROR -5", true),
            ("adc: ERROR: no ack", false),
            ("adc ERROR", false),
            ("Selbsttest nicht bestanden", true),
            ("Sensor: FEHLER", true),
            ("Sensor: kein FEHLER gefunden", false),
            ("expected 512, got 498", true),
            ("expected 512, got 512", false),
            ("RAMTest: ERROR: Address 20001000 Found: 00000000 Expected: 00000001", true),
            ("RAMTest: ERROR: Address 20001000 Found: 00000001 Expected: 00000001", false),
            ("ERROR: addr 0x20001000 expected 0x55 actual 0x51", true),
            ("[ERROR] RAM mismatch at 0x20001000 wrote 55 read 51", true),
            ("[ERROR] link expected 1 got 2, retrying", false),
            ("uart: wrote 55 read 51", false),
            ("expected 512, got 498, retrying", false),
            ("connecting ..... failed (timeout)", false),
            ("crypto ..... failed (tag)", true),
        ] {
            assert_eq!(is_failed_phrase(line, true), failed, "{line}");
        }
        assert!(
            !is_failed_phrase("adc: ERR", false) && !is_failed_phrase("expected 1, got 2", false)
        );
    }
}
