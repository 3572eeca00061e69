//! Tells whether a line is a failed row of a table, a count, or a verdict of a self-made test. Pure.
//!
//! # Design
//! No framework prints these lines, so each rule asks for a form that a log has rarely: the verdict
//! in capitals as a whole field of a row, a count between `P=` and `F=`, the exit code of a test or
//! of `main` and of nothing else. A line that goes on in another way (`FAILED, retry 2`) is none.
//! `failed_result_lines.toml` holds examples.

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use super::scan::searched_once;

/// Patterns of such lines, of ASCII in any case.
const PATTERNS: &[&str] = &[
    // JSON
    r#""passed" ?: ?false"#,
    r#""(?:test|case|suite|name)\w*" ?:.*"(?:ok|success|pass|succeeded)" ?: ?false"#,
    r#""(?:ok|success|pass|succeeded)" ?: ?false.*"(?:test|case|suite|name)\w*" ?:"#,
    r#": ?"(?:self[_-]?)?tests?".*"(?:ok|success|pass|succeeded)" ?: ?false"#,
    r#"^\{ ?"(?:id|no?|num|index|step|tp)" ?: ?"?\w+"? ?, ?"(?:ok|pass)" ?: ?false"#,
    r#""(?:ok|pass|passed)" ?: ?true.*"(?:ok|pass|passed)" ?: ?false"#,
    r#""(?:ok|pass|passed)" ?: ?false.*"(?:ok|pass|passed)" ?: ?true"#,
    // Counts
    r"^(?:(?:summary|totals?|results?|tests?|tally)\b:? )?P[=:] ?\d+[ ,;/]+F[=:] ?0*[1-9]",
    r"^(?:(?:summary|totals?|results?|tests?|tally)\b:? )?F[=:] ?0*[1-9]\d*[ ,;/]+P[=:] ?\d+",
    r"^\d+ good, 0*[1-9]\d* bad$",
    r"^errors? (?:found|detected)[:=] ?(?:0x0*[1-9a-f]|0*[1-9])[0-9a-f]*(?: in .*\btest\b.*)?$",
    r"^fail(?:ed|ures?)? - 0*[1-9]\d*$",
    r"^(?:loop|pass|iteration|iter|run|cycle|round|test|step) #?\d+(?:/\d+)?[:,] ?0*[1-9]\d* (?:errors?|failures?|mismatch(?:es)?)[.!]?$",
    r"\bfail(?:ed|ures?|s)?[ _]count ?[:=] ?0x0*[1-9a-f]",
    r"\b(?:mask|bits|bitmap|map) of (?:failed|failing)(?: tests?| cases?| checks?)? ?[:=] ?(?:0x|0b)?0*[1-9a-f]",
    r"\b0*[1-9]\d* (?:tests?|cases?|benchmarks?) (?:has |have )?regressed\b",
    r"\bfail(?:ed|ure)?[ _](?:mask|bits|bitmap)[:= ]+0x0*[1-9a-f]",
    r"\b[1-9]\d* tests? (?:could not|couldn't|cannot) be (?:run|executed|started)\b",
    // Verdicts
    r"^\*{3,} ?(?:(?:self[ -]?)?tests? )?(?:failure|failed|fail) ?\*{3,}",
    r"^(?:test|case|step) ?#?\d+ ?[:=-]+ ?(?:wrong|error|incorrect|bad|ng|nok)[.!]?$",
    r"^(?:(?:self[ -]?)?test )?(?:overall|total|final|judge?ment|verdict|result|decision|go ?/ ?no-?go)(?: result)? ?[:=] ?(?:ng|nok|ko|bad|not ok|error|invalid|abnormal|no[ -]?go|reject|rejected|red|unacceptable|not accepted)[.!]?$",
    r"^(?:verdict|judge?ment|decision):? (?:ng|nok|ko|no[ -]?go|reject|rejected)[.!]?$",
    r"^(?:\w+ )?(?:gate|criteria|criterion|requirements?)(?: \w+)? ?[:=] ?(?:not met|missed|violated)[.!]?$",
    r"^all (?:\w+ )?tests (?:ok|pass|passed|good) ?[:=?]+ ?(?:no|false)[.!]?$",
    r"\btests?(?: run)? (?:(?:was|were|is|finished|ended|completed) )?unsuccessful(?:ly)?[.!]*$",
    r"\btests? did not (?:succeed|complete|finish)\b",
    r"^(?:the )?(?:\w+[ _-])?(?:self[ -]?)?tests?(?: (?:sequence|run|session|execution))? (?:was |were )?(?:aborted|cancell?ed|interrupted|killed)(?:[.!:]*$| (?:by|after|at|due|because|on)\b)",
    r"^program (?:was )?aborted\b",
    r"\b(?:skipping|aborting) (?:all |the )?(?:remaining|other|further|following|rest of the) (?:tests?|cases?|checks?|steps?)\b",
    r"^[\w.-]+(?: [\w.-]+)? (?:did not|didn't|does not|doesn't) pass[.!]*$",
    r"^[\w.-]+(?: [\w.-]+)? never (?:finished|completed|ended|returned)[.!]*$",
    r"^(?:error: ?|warning: ?)?(?:performance )?regressions? (?:was |were )?(?:detected|found)\b",
    r"^[\w.-]+ FAIL(?:ED)? (?:rc|err|ret|code) ?= ?-?[1-9]\d*$",
    r"^(?:[\w.-]+ ?){0,4}:? ?miscompares? (?:at |@ ?|on |in )",
    // Exit codes
    r"^(?:exit|return) (?:code|status)[:= ]+-?0*[1-9]\d*$",
    r"^(?:main(?:\(\))?|program|application|(?:self[ -]?)?tests?(?: [\w-]+)?) (?:has )?(?:exited|finished|ended|completed|terminated|returned) with (?:a |an )?(?:(?:return|exit|error) )?(?:code|status)[:= ]+-?0*[1-9]\d*[.!]?$",
    r"^main(?:\(\))? (?:returned|returns) -?0*[1-9]\d*[.!]?$",
    r"^(?:[\w.-]+ )?(?:self[ -]?)?test(?: [\w.-]+)?(?:\(\))? returned -0*[1-9]\d*[.!]?$",
    r"^test[ _][\w.-]+ ?[:,]? ?rc ?= ?-?0*[1-9]\d*$",
    // What a test ended with
    r"\b(?:(?:(?:mem|memory|ram|rom|flash|self|unit|loop|loopback|stress|smoke|sanity|bus|cpu|dma|io|hw|sw)[ _-]?)?tests?|bist)(?: [\w-]+)?[ _.](?:result|status|rc|ret|return|error)(?: (?:code|mask|word|value|bits))? ?[:=] ?(?:0x0*[1-9a-f][0-9a-f]*|-?0*[1-9]\d*)(?: \([\w -]+\))?[.!]?$",
];

/// Text of which one stands in each such line, unless a word of results does.
pub(super) const HINTS: &str = r#"miscompare|no[ -]?go\b|invalid|abnormal|\bred[.!]?(?:[\r\n]|$)|accept|not met|missed|violated|regress|cancel|killed|skipping|never |(?-i:\.[FE][.FEsxSXI]*(?:[\r\n]|$)|[FE]\.[.FEsxSXI]*(?:[\r\n]|$))|" ?: ?false|\bP[=:] ?[0-9]+[ ,;/]+F[=:]|\bF[=:] ?[0-9]+[ ,;/]+P[=:]|[0-9] good, |tests? (?:could|can|did )|\bWRONG|incorrect|\bbad[.!]?[\r\n]|\bNG|\bNOK|not ok|(?:code|status)[:= ]+-?0*[1-9]|main(?:\(\))? return|test[^\r\n]* returned -|\btest_[a-z0-9_]+: expected |\brc ?= ?-?0*[1-9]|test (?:sequence|run|session|execution) (?:was )?interr|(?:test|bist)[^\r\n]*[:=] ?-?(?:0x)?0*[1-9a-f]|\b(?:result|tally|summary)s?[:= ]+[0-9]+ ?(?:/|of)"#;

pub(super) static FAILURES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let ascii = syntax::Config::new().unicode(false).utf8(false).case_insensitive(true);
    Regex::builder().configure(searched_once()).syntax(ascii).build_many(PATTERNS).ok()
});

/// Verdicts that are a field of a row.
const VERDICTS: [&str; 5] = ["FAIL", "FAILED", "FAILURE", "NG", "NOK"];

/// Words of a line that is no result: of a log that tries again, or goes on in another way.
const GOES_ON: [&str; 12] = [
    "retry",
    "retries",
    "retrying",
    "again",
    "attempt",
    "expected",
    "skip",
    "using",
    "default",
    "fallback",
    "ignored",
    "reconnect",
];

/// Most bytes of a field.
const FIELD: usize = 48;

/// Tells whether a line is a failed row, or a verdict of a self-made test.
pub(super) fn is_failed_row(line: &str) -> bool {
    let line = line.trim_ascii_end();
    FAILURES.as_ref().is_some_and(|patterns| patterns.is_match(line)) && !goes_on(line)
        || is_other_than_expected(line)
        || is_progress_with_failure(line)
        || ["|", ";", "\t", ",", "  "].iter().any(|separator| is_row(line, separator))
}

/// `..F.`, `.E.s`: a letter for each test, as many runners print them.
fn is_progress_with_failure(line: &str) -> bool {
    let letters = line.trim_ascii();
    letters.len() > 2
        && letters.contains('.')
        && letters.contains(['F', 'E'])
        && letters.bytes().all(|b| b".FEsxSXI".contains(&b))
}

/// `test_pop: expected 1, got 2`.
fn is_other_than_expected(line: &str) -> bool {
    let Some((name, values)) = line.split_once(": expected ") else { return false };
    let joints = [", got ", ", was ", " but got ", " but was ", ", but got ", ", but was "];
    let pair = joints.iter().find_map(|joint| values.split_once(joint));
    name.starts_with("test_") && !name.contains(' ') && pair.is_some_and(|(want, had)| want != had)
}

/// Tells whether a line goes on in another way. `FAIL seq 7311 expected 7310` compares two values, and
/// `attempt 3: fail, giving up` is the last try.
pub(super) fn goes_on(line: &str) -> bool {
    let words = || line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let is = |word: &str, other: &str| word.eq_ignore_ascii_case(other);
    let gives_up = words().zip(words().skip(1)).any(|(verb, up)| {
        is(up, "up") && ["giving", "gave", "gives"].iter().any(|give| is(verb, give))
    });
    let compares = |(word, next): (&str, Option<&str>)| {
        let value = next.is_some_and(|next| next.starts_with(|c: char| c.is_ascii_digit()));
        is(word, "expected") && value
    };
    let nexts = words().skip(1).map(Some).chain([None]);
    let goes_on = |(word, next): (&str, Option<&str>)| {
        GOES_ON.iter().any(|other| is(word, other)) && !compares((word, next))
    };
    !gives_up && words().zip(nexts).any(goes_on)
}

/// `2,flash,FAIL,3`: a verdict between a name in front and a further field behind; `$TEST,adc,FAIL*3A`:
/// at the end of a row of three. Of a title, each field is in capitals: `ID;NAME;FAIL;TIME`.
fn is_row(line: &str, separator: &str) -> bool {
    if !line.contains(separator) {
        return false;
    }
    // The check sum of a sentence of NMEA.
    let body = line.rsplit_once('*').filter(|(_, sum)| line.starts_with('$') && sum.len() == 2);
    let line = body.map_or(line, |(body, _)| body);
    let fields = || line.split(separator).map(str::trim_ascii).filter(|field| !field.is_empty());
    let count = fields().count();
    let numbered = fields().any(|field| field.bytes().all(|b| b.is_ascii_digit()));
    let compact = numbered && separator != "  " && !line.contains(' ');
    let verdict = |(at, field): (usize, &str)| {
        let small = at + 1 == count && compact && matches!(field, "fail" | "failed" | "nok");
        (VERDICTS.contains(&field) || small).then_some(at)
    };
    let Some(at) = fields().enumerate().find_map(verdict) else { return false };
    let named = |field: &str| field.bytes().any(|b| b.is_ascii_alphabetic());
    let value = |field: &str| field.bytes().any(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let passed = |field: &str| matches!(field, "PASS" | "PASSED" | "OK");
    let ends = at > 1 && at + 1 == count && separator != "  ";
    at > 0
        && (ends || at + 1 < count)
        && fields().all(|field| field.len() <= FIELD && !passed(field))
        && fields().take(at).any(named)
        && fields().any(value)
        && !goes_on(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_compile() {
        assert!(FAILURES.is_some());
    }

    #[test]
    fn a_verdict_is_a_whole_field_between_others() {
        for (row, failed) in [
            ("2,flash,FAIL,3", true),
            ("flash;FAILED;3", true),
            ("flash;0;FAIL", true),
            ("flash,1,fail", true),
            ("$TEST,flash,FAIL*3A", true),
            ("flash,link,fail", false),
            ("ID;NAME;FAIL", false),
            ("ID,NAME,FAIL,TIME", false),
            ("2,flash,PASS,FAIL", false),
            ("flash,no FAIL yet,3", false),
            ("FAIL,flash,3", false),
            ("3,FAIL,4", false),
            ("mount,FAIL,using default", false),
            ("3,flash,FAIL,expected 5", true),
            ("3,flash,FAIL,as expected", false),
            ("3,flash,FAIL,attempt 2", false),
            ("3,flash,FAIL,attempt 3 and giving up", true),
        ] {
            assert_eq!(is_failed_row(row), failed, "{row}");
        }
    }
}
