//! Tells whether a line gives a measured value and, in brackets behind it, the limit that it misses. Pure.
//!
//! # Design
//! `BER 3.2e-03 (max 1.0e-03)`, `boot 812 ms (limit 500 ms)`, `3V3 3.021 V (3.13 .. 3.47 V)`: the numbers
//! decide, whatever the value is called. A minimum and a maximum that were measured beside a value enclose
//! it, so statistics are none. A range counts with a unit only: `page 5 (1-3)`. A line that goes on in
//! another way (`85 C (max 80 C), throttling`) is a log. `required_value_lines.toml` holds examples.

use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::quantity::Quantity;
use super::result_rows::goes_on;
use super::scan::searched_once;
use super::words::listed;

/// A value in front of brackets with a limit, or with a range.
const PATTERN: &str = concat!(
    r"(?i)(?:^|[\s:=,|(<>])([-+]?\d+(?:[.,]\d+)?(?:e[-+]?\d+)?)(?:/\d+(?:[.,]\d+)?)? ?([a-zµμΩ°%][a-z/%²]{0,7})? *[(\[] ?",
    r"(?:(?:(LOW)|HIGH)\.? ?[:=]? ?([-+]?\d+(?:[.,]\d+)?(?:e[-+]?\d+)?) ?([a-zµμΩ°%][a-z/%²]{0,7})?",
    r"|(?:range |limits? |spec )?([-+]?\d+(?:[.,]\d+)?)(?: ?[a-zµμΩ°%][a-z/%²]{0,7})? ?(?:\.\.\.?|…|to|-|–) ?([-+]?\d+(?:[.,]\d+)?) ?([a-zµμΩ°%][a-z/%²]{0,7}))",
    r" ?[)\]]",
);

/// Words in front of a lower limit, and of an upper one.
const LOW: &str =
    "minimum|mínimo|minimal|mindestens|min|mín|required|needs?|needed|at least|target|lsl|>=?|≥";
const HIGH: &str =
    "maximum|máximo|maximal|höchstens|max|máx|limit|allowed|at most|budget|deadline|usl|<=?|≤";

/// Text of which one stands in each such line.
pub(super) const HINTS: &str = r"[0-9][^\r\n(\[]{0,10}[(\[] ?(?:m(?:in|ax|\xc3\xadn|\xc3\xa1x|indest)|h\xc3\xb6chst|limit|required|need|at (?:least|most)|target|[lu]sl|[<>]|\xe2\x89[\xa4\xa5]|allowed|budget|deadline|range|spec|[-+]?[0-9][^\r\n()\[\]]*(?:\.\.|\xe2\x80|to|-)[^\r\n()\[\]]*[0-9] ?[a-z\xc2\xce%])";

pub(super) static LIMITS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = PATTERN.replace("LOW", LOW).replace("HIGH", HIGH);
    Regex::builder().configure(searched_once()).build(&pattern).ok()
});

/// Tells whether a text says so.
pub(super) fn misses_limit(text: &str) -> bool {
    let Some(limits) = LIMITS.as_ref().filter(|_| text.contains(['(', '['])) else { return false };
    let missed = |captures: regex_automata::util::captures::Captures| {
        let part = |group: usize| captures.get_group(group).map(|span| &text[span.range()]);
        let quantity = |number: usize, unit: usize| {
            let unit = part(unit).unwrap_or_default();
            Some(Quantity { unit, ..Quantity::parse(part(number)?)? })
        };
        let value = quantity(1, 2)?;
        // `bed 23 C (target 60 C), heating`
        let goes_on = part(3).is_some_and(|word| word.eq_ignore_ascii_case("target"))
            && !text.trim_end_matches(['.', '!', ' ']).ends_with([')', ']']);
        if goes_on {
            return None;
        }
        if let Some(limit) = quantity(4, 5) {
            let beyond = match part(3) {
                Some(_) => value.number < limit.number,
                None => value.number > limit.number,
            };
            return Some(value.has_unit_of(&limit) && beyond);
        }
        let (low, high) = (quantity(6, 8)?, quantity(7, 8)?);
        let outside = !(low.number..=high.number).contains(&value.number);
        let range = !value.unit.is_empty() && value.has_unit_of(&high) && low.number < high.number;
        Some(range && outside)
    };
    !goes_on(text)
        && !ends_well(text)
        && limits.captures_iter(text).filter_map(missed).any(|missed| missed)
}

/// Tells whether a line goes on as planned, or says itself that all is well.
fn ends_well(text: &str) -> bool {
    let rest = text.rsplit([')', ']']).next().unwrap_or_default().to_ascii_lowercase();
    rest.split(|c: char| !c.is_ascii_alphabetic())
        .any(|word| listed("ok pass passed good throttling throttled", word))
}
