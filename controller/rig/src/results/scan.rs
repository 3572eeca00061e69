//! Small matchers that the grammars share.

/// What each of TeamCity's messages begins with.
pub(super) const TEAMCITY: &str = "##teamcity[";

/// Reads a whole text as a count. More than nine digits is no count of tests.
pub(super) fn number(text: &str) -> Option<u64> {
    let ok = (1..=9).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if ok { text.parse().ok() } else { None }
}

/// Reads a whole text as a count of a summary. One of more than nine digits is a mistake of the firmware, and
/// read as a billion, so that the summary contradicts its cases.
pub(super) fn summed_number(text: &str) -> Option<u64> {
    const MISTAKEN: u64 = 1_000_000_000;
    let digits = text.len() > 9 && text.bytes().all(|b| b.is_ascii_digit());
    number(text).or(digits.then_some(MISTAKEN))
}

/// Reads the count that a text starts with.
pub(super) fn leading_number(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (head, rest) = text.split_at_checked(digits)?;
    Some((number(head)?, rest))
}

/// Tells whether a text is a C identifier.
pub(super) fn is_ident(text: &str) -> bool {
    text.bytes().next().is_some_and(|b| !b.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Reads decimal seconds as milliseconds.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let thousandths = fraction.get(..3).unwrap_or(fraction);
    let scale = [1000, 100, 10, 1].get(thousandths.len()).copied()?;
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(number(whole)? * 1000 + number(thousandths)? * scale)
}

/// Tells whether a text is `one` after the count 1 and `many` after any other; firmwares
/// that do not bother with the singular are understood too.
pub(super) fn is_counted(count: u64, text: &str, one: &str, many: &str) -> bool {
    text == many || (count == 1 && text == one)
}
