//! Tells whether a line says that a measured value misses what was required of it. Pure.
//!
//! # Design
//! A benchmark or a self-made test prints a value beside its limit, and leaves the verdict to the reader:
//! `latency 900 us > 500 us limit`, `score 40/100 (minimum 80)`. Two numbers and a word of a limit make
//! it a result; the numbers decide where they can be compared. A line that goes on in another way
//! (`temp 85 C above limit 80 C, throttling`) is a log. `required_value_lines.toml` holds examples.

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use super::quantity::Quantity;
use super::result_rows::goes_on;
use super::scan::searched_once;

/// Patterns by the relation of the first value to the second one that is a failure.
const FORMS: &[(Miss, &str)] = &[
    // `CRC: 0xdead, should be 0xbeef`
    (
        Miss::Differs,
        r"^NAME(?: ?[:=] ?| )(VALUE),? (?:but )?(?:should(?: be|:)|must be|ought to be|instead of|differs from) (VALUE)[.!]?$",
    ),
    // `checksum expected 1234 actual 1235`
    (
        Miss::Differs,
        r"^(?:crc|checksum|hash|digest|sum|signature|value|result|output|state|data)(?: ?\w+)? expected:? (VALUE)[,;]? +(?:but )?(?:got|was|actual|found|read|computed):? (VALUE)[.!]?$",
    ),
    (
        Miss::Differs,
        r"^(?:kat [\w-]+|crc|checksum|hash|digest|sum|signature|value|result|output|state|data)(?: ?\w+)?:? (?:got|actual|found|read|computed):? (VALUE)[,;]? +(?:but )?(?:expected|wanted|want):? (VALUE)[.!]?$",
    ),
    // `crc stored 0x5a3c9911 computed 0x5a3c9912`, `wrote 00000004 read 00000000`
    (
        Miss::Differs,
        r"\b(?:stored|expected|expect|golden|reference|want|wanted)[ :=]+(HEX)[,;]? +(?:but )?(?:computed|calculated|calc|got|read(?: back)?|actual|found|was|received)[ :=]+(HEX)\b",
    ),
    (
        Miss::Differs,
        r"\b(?:wrote|written|programmed)[ :=]+(0x[0-9a-f]+|[0-9a-f]{8})[,;]? +(?:but )?(?:got|read(?: back)?|found)[ :=]+(0x[0-9a-f]+|[0-9a-f]{8})\b",
    ),
    (
        Miss::Differs,
        r"\b(?:crc\d*|checksum|hash|sum|digest|sha\d*|md5)[ :=]+(HEX)[,;]? +(?:golden|stored|expected|reference|should be)[ :=]+(HEX)\b",
    ),
    // `WHO_AM_I read 0x00, expected 0x68`
    (
        Miss::Differs,
        r"\b(?:got|read|found|reads|returned|received)[ :=]+(0x[0-9a-f]+)[,;]? +\(?(?:but )?(?:expected|expect|wanted|want|should be)[ :=]+(0x[0-9a-f]+)\b",
    ),
    // `address 0x0800c21a. Was 0x00 instead of 0x42`
    (Miss::Differs, r"\bwas (0x[0-9a-f]+),? (?:instead of|should be|expected) (0x[0-9a-f]+)\b"),
    // `latency max 900 us > 500 us limit`
    (
        Miss::Greater,
        r"^NAME(?: ?[:=] ?| )(NUMBER ?UNIT) ?>=? ?(NUMBER ?UNIT) ?\(?(?:limit|maximum|max|allowed|budget)\)?[.!]?$",
    ),
    (
        Miss::Less,
        r"^NAME(?: ?[:=] ?| )(NUMBER ?UNIT) ?<=? ?(NUMBER ?UNIT) ?\(?(?:minimum|min|required|target)\)?[.!]?$",
    ),
    // `self test: 11/12 ok`
    (
        Miss::Less,
        r"\b(?:self[ -]?tests?|post|bist) ?: ?(NUMBER) ?/ ?(NUMBER) (?:ok|good|healthy)[.!]?$",
    ),
    // `throughput 3 kB/s, below limit 100 kB/s`
    (
        Miss::Less,
        r"^NAME(?: ?[:=] ?| )(NUMBER ?UNIT),? ?[(\[]?(?:is )?(?:below|under) (?:the )?(?:limit|minimum|min|threshold|required|requirement|target|spec\w*)(?: of)? ?[:=]? ?(NUMBER ?UNIT)[)\]]?[.!]?$",
    ),
    (
        Miss::Greater,
        r"^NAME(?: ?[:=] ?| )(NUMBER ?UNIT),? ?[(\[]?(?:is )?(?:above|over|exceeds) (?:the )?(?:limit|maximum|max|threshold|budget|allowed|spec\w*)(?: of)? ?[:=]? ?(NUMBER ?UNIT)[)\]]?[.!]?$",
    ),
];

/// Parts of the patterns, by the name that they are put in for.
const PARTS: &[(&str, &str)] = &[
    ("NAME", r"[a-z][\w.-]*(?: [a-z][\w.-]*){0,3}"),
    ("VALUE", r"[\w.+-]+"),
    ("NUMBER", r"-?\d+(?:\.\d+)?"),
    ("HEX", r"(?:0x)?[0-9a-f]{4,16}"),
    ("UNIT", r"(?:[a-z%][a-z/%]{0,7})?"),
];

/// Text of which one stands in each such line, or in the second line of a pair.
pub(super) const HINTS: &str = r"\b(?:should|must be|ought to|instead of|differs from|actual|want|computed|limit|minimum|maximum|required|need|at least|at most|target|budget|allowed|threshold|spec)\b|\b(?:stored|golden|reference|wrote|written|programmed|expect|expected)[ :=]+(?:0x|[0-9a-f]{4})|\bwas 0x|\b(?:got|read|found|reads|returned|received)[ :=]+0x[0-9a-f]+[,;]? +\(?(?:but )?expect|[0-9] ?/ ?[0-9]+ (?:ok|good|healthy)|[<>]=? ?-?[0-9]";

/// How a value misses the one that is required.
#[derive(Debug, Clone, Copy)]
enum Miss {
    Differs,
    Greater,
    Less,
}

pub(super) static VALUES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let ascii = syntax::Config::new().unicode(false).utf8(false).case_insensitive(true);
    let put = |text: String, (name, part): &(&str, &str)| text.replace(name, part);
    let patterns: Vec<String> =
        FORMS.iter().map(|(_, text)| PARTS.iter().fold((*text).to_owned(), put)).collect();
    Regex::builder().configure(searched_once()).syntax(ascii).build_many(&patterns).ok()
});

/// Tells whether a text says that a value misses what was required.
pub(super) fn misses_requirement(text: &str) -> bool {
    let text = text.trim_ascii();
    let Some(values) = &*VALUES else { return false };
    let mut captures = values.create_captures();
    values.captures(text, &mut captures);
    let Some((miss, _)) = captures.pattern().and_then(|form| FORMS.get(form.as_usize())) else {
        return false;
    };
    let value = |group: usize| captures.get_group(group).and_then(|span| text.get(span.range()));
    let (Some(had), Some(wanted)) = (value(1), value(2)) else { return false };
    let wanted = wanted.trim_end_matches('.');
    let measured = Quantity::parse(had).zip(Quantity::parse(wanted));
    let numbers = measured
        .filter(|(had, wanted)| !had.differs_in_scale(wanted))
        .map(|(had, wanted)| (had.number, wanted.number));
    let missed = match miss {
        Miss::Differs => differs(had, wanted),
        Miss::Greater => numbers.is_some_and(|(had, wanted)| had > wanted),
        Miss::Less => numbers.is_some_and(|(had, wanted)| had < wanted),
    };
    let goes_on = goes_on(&text.to_ascii_lowercase().replace("expected", ""));
    missed && !goes_on
}

fn differs(one: &str, other: &str) -> bool {
    let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    // `000000e4` is no power.
    let number = |text: &str| text.parse::<f64>().ok().filter(|_| !text.contains(['e', 'E']));
    let equal = number(one).zip(number(other)).map(|(one, other)| one == other);
    let equal = equal.or_else(|| hex(one).zip(hex(other)).map(|(one, other)| one == other));
    !one.eq_ignore_ascii_case(other) && !equal.unwrap_or_default()
}

/// Tells whether a line is the second one of a pair that may differ.
pub(super) fn may_be_second(text: &str) -> bool {
    wanted_in(text).is_some()
}

/// Tells whether a line gives another value than the one in front of it: `Int_Glob: 7` above
/// `should be: 5`, as Dhrystone prints them.
pub(super) fn differs_from_line(before: &str, text: &str) -> bool {
    let had = before.trim_ascii().rsplit_once([':', '=']).map(|(_, value)| value.trim_ascii());
    let pair = had.filter(|had| is_value(had)).zip(wanted_in(text));
    pair.is_some_and(|(had, wanted)| differs(had, wanted))
}

fn wanted_in(text: &str) -> Option<&str> {
    let value =
        text.trim_ascii().strip_prefix("should be")?.trim_start_matches([':', '=', ' ', '\t']);
    Some(value).filter(|value| is_value(value))
}

fn is_value(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._+-'".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::super::candidate_lines::candidate;
    use super::super::measured_limits::misses_limit;
    use super::super::tells_failure;
    use super::*;

    #[derive(serde::Deserialize)]
    struct Lines {
        missed: Vec<String>,
        met: Vec<String>,
    }

    #[test]
    fn numbers_decide_whether_a_requirement_is_met() {
        let lines: Lines = toml::from_str(include_str!("required_value_lines.toml")).unwrap();
        for line in &lines.missed {
            assert!(misses_requirement(line) || misses_limit(line), "{line:?}");
            assert!(tells_failure(line), "{line:?}");
            assert!(candidate(line.as_bytes()).is_some(), "not searched: {line:?}");
        }
        for line in &lines.met {
            assert!(!tells_failure(line), "{line:?}");
        }
    }

    #[test]
    fn a_pair_of_lines_differs_where_both_are_values() {
        for (before, text, differ) in [
            ("Int_Glob:            7", "        should be:   5", true),
            ("Int_Glob:            5", "        should be:   5", false),
            ("Ch_1_Glob:           B", "        should be:   A", true),
            ("Ptr_Comp:            134", "        should be:   (implementation-dependent)", false),
            ("Arr_2_Glob[8][7]:    5010", "        should be:   Number_Of_Runs + 10", false),
            ("a sentence: of several words", "should be: 5", false),
            ("no value", "should be: 5", false),
        ] {
            assert_eq!(differs_from_line(before, text), differ, "{before} {text}");
        }
    }
}
