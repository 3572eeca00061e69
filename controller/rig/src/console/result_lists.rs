//! Tells whether a line is a failed row of a list or a table, by the lines beside it. Pure.
//!
//! # Design
//! By itself `flash  fail` may be a log line. A word is a verdict where a
//! row beside it has a passed verdict in the same place: at the same end of the line, behind the same
//! joint, in the same field. What the head of a table says of its columns is read elsewhere. Two rows in
//! front of which nothing but a blank or a colon stands may be log lines, so two passed ones are
//! needed there, unless the verdicts are words of tests, or both are written in capitals.
//! What stands behind a failed verdict is a detail, if no counter (`crc fail 2`). A row that passes later under the same name was tried again, unless the list itself
//! comes again: below `Channel 1` and `Channel 2`, `offset` is the name of two things.

use super::count_table::{CountTable, ROWS};
use super::denied_rows::{is_denied_row, may_be_denied};
use super::judged_table::JudgedTable;
use super::log_prefix::texts;
use super::odd_verdicts::{is_odd, may_be_odd};
use super::required_value::{differs_from_line, may_be_second};
use super::result_rows::goes_on;
use super::table::holds_verdicts;
use super::words::{Word, listed, number, parsed_count, words};
use super::yaml_results::{is_failed_state, may_be_failed_state};

/// Text of which one stands in each failed row and in each head of a table, unless a word of results
/// does.
pub(super) const HINTS: &str = r"\b(?:ok|good|correct|valid|bestanden|geslaagd|supera[td][aeio]s?|apro[bv]ad[ao]s) ?[:=] ?[0-9]+ ?(?:/|of)|[^a-z]bad[^a-z]|\bng\b|\b(?:tests|checks|cases|vectors|points|channels) (?:ok|good|correct)\b|[0-9] (?:good|correct)\b|\b(?:matched|verified) [0-9]|\b(?:dead|missing|stuck|faulty|corrupt)\b|(?-i:[ ,;|:][FX](?:[\r\n,;| ]|$))|rate:? [0-9]";

/// Lines that are looked at in front of a line and behind it.
pub(crate) const BESIDE: usize = 16;

/// Longest name of a row, and longest field.
const NAME: usize = 48;
/// Most words of a name.
const NAME_WORDS: usize = 6;

const PASSED: &str = "pass passed passes ok okay good success successful succeeded correct";
const FAILED: &str = "fail failed fails failure nok ng ko bad error err incorrect";
/// Verdicts in capitals only.
const STOPPED: &str = "\
    timeout crash crashed abort aborted hang hung dead missing broken mismatch corrupt stuck faulty \
    wrong";
/// Verdicts of one letter, in capitals.
const LETTERS: [(&str, bool); 3] = [("P", true), ("F", false), ("X", false)];
/// Words of a pass that no log has in such a place.
const TESTED: &str = "pass passed correct";
/// Words that are also the level of a log.
const LEVELS: &str = "error err bad";
/// Words behind a word of failure that make another word of it: `fail over`.
const COMPOUNDS: &str = "over safe open back to";
/// Words between a name and its verdict.
const JOINTS: &str = "is was test check";
/// Units of a value beside a verdict.
const UNITS: &str =
    "v mv uv a ma ua ms us ns s sec hz khz mhz c k degc ohm kohm dbm db ppm rpm bar w mw";

/// So many rows of one name are a series, and not one thing that is tried again.
const SERIES: usize = 3;
/// So many rows of a list that all fail are no log.
const ALL_FAILED: usize = 3;

/// Where a verdict stands in its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In front of the name, and what stands between them.
    Front(char),
    /// Behind the name.
    Back(char),
    /// In a field.
    Field(char, usize),
}

impl Place {
    /// Tells whether few log lines have a word in this place.
    fn is_sure(self) -> bool {
        matches!(self, Self::Front('[') | Self::Back('[' | '.') | Self::Field(..))
    }
}

/// A line with a name and a verdict.
#[derive(Debug)]
struct Row<'a> {
    name: &'a str,
    place: Place,
    passed: bool,
    /// The verdict is one that tests have and logs have not.
    tested: bool,
    /// The verdict is written in capitals.
    capital: bool,
}

/// Tells whether a line may be a failed row, or the head of a table with one.
pub(crate) fn may_fail_in_list(line: &str) -> bool {
    may_be_failed_state(line)
        || may_be_second(line)
        || may_be_denied(line)
        || may_be_odd(line)
        || texts(line, true).any(|text| {
            failed_row(text).is_some()
                || CountTable::of(text).is_some()
                || share(text).is_some()
                || JudgedTable::of(text).is_some()
        })
}

/// Finds the failed row that a line is, or is the head of, among the lines `before` it (the last one
/// comes last) and those `behind` it. Returns how many lines behind it that row stands.
pub(crate) fn failed_in_list(before: &[&str], line: &str, behind: &[&str]) -> Option<usize> {
    let differs = before.last().is_some_and(|before| differs_from_line(before, line));
    let odd = is_denied_row(before, line, behind) || is_odd(before, line, behind);
    if differs || odd || is_failed_state(before, line, behind) {
        return Some(0);
    }
    texts(line, true).enumerate().find_map(|(prefixes, text)| {
        let row = failed_row(text).filter(|_| !goes_on(line));
        if row.is_some_and(|row| is_failed_row(&row, prefixes, before, behind)) {
            return Some(0);
        }
        if share(text).is_some_and(|share| is_final(&share, behind)) {
            return Some(0);
        }
        let counted = CountTable::of(text).and_then(|table| table.failed_row(behind));
        counted.or_else(|| JudgedTable::of(text)?.failed_row(behind))
    })
}

fn is_failed_row(row: &Row<'_>, prefixes: usize, before: &[&str], behind: &[&str]) -> bool {
    let single = row.place == Place::Back('\0');
    if single && prefixes > 0 {
        return false;
    }
    let alike = |line: &&str| {
        let texts: Vec<&str> = texts(line, true).take(if single { 1 } else { 8 }).collect();
        texts
            .into_iter()
            .filter_map(verdict_row)
            .find(|other| {
                other.passed
                    && other.place == row.place
                    && (!single
                        || first_words_agree(row, other)
                        || other.tested && other.capital && row.capital)
            })
            .map(|other| {
                let capitals = !single && other.capital && row.capital;
                (other.name.to_owned(), other.tested || capitals)
            })
    };
    let front: Vec<_> = before.iter().filter_map(alike).collect();
    let back: Vec<_> = behind.iter().filter_map(alike).collect();
    let listed_again = comes_again(row.name, &front, &back);
    let numbered = |name: &str| without_digits(name) == without_digits(row.name);
    let passes_later = back.iter().any(|(name, _)| name == row.name)
        || front.is_empty() && back.iter().any(|(name, _)| numbered(name));
    if front.iter().filter(|(name, _)| name == row.name).count() >= SERIES {
        return true;
    }
    if passes_later && !listed_again {
        return false;
    }
    if front.is_empty() && back.is_empty() && !single && all_fail(row, behind) {
        return true;
    }
    if let Place::Field(separator, field) = row.place
        && before.iter().any(|line| names_verdicts(line, separator, field))
    {
        return true;
    }
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in front.iter().chain(&back) {
        if (listed_again || name != row.name) && !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let tested = row.tested || front.iter().chain(&back).any(|(_, tested)| *tested);
    let needed = if row.place.is_sure() || tested { 1 } else { 2 };
    names.len() >= needed
}

/// Tells whether the passed rows beside a failed one are those of lists with the same names: another
/// row stands on two sides of the failed row, or of one with its name.
fn comes_again(name: &str, front: &[(String, bool)], back: &[(String, bool)]) -> bool {
    let passed = |rows: &[(String, bool)]| -> Vec<String> {
        rows.iter().map(|(name, _)| name.clone()).collect()
    };
    let rows = [passed(front), vec![name.to_owned()], passed(back)].concat();
    let laps: Vec<&[String]> = rows.split(|row| row == name).collect();
    rows.iter().any(|row| laps.iter().filter(|lap| lap.contains(row)).count() > 1)
}

/// Tells whether the lines behind a failed row are failed rows, too.
fn all_fail(row: &Row<'_>, behind: &[&str]) -> bool {
    let fails = |line: &&&str| {
        texts(line, true)
            .filter_map(failed_row)
            .any(|next| next.place == row.place && next.name != row.name)
    };
    behind.iter().take_while(fails).count() + 1 >= ALL_FAILED
}

/// `BIST RAM ok` and `BIST FLASH fail`, `ram ok` and `flash fail`, `3v3 3.29 ok` and `5v0 4.20 fail`,
/// `1. ram ok` and `3. flash fail`.
fn first_words_agree(row: &Row<'_>, other: &Row<'_>) -> bool {
    let is_value = |word: &str| word.starts_with(|c: char| c.is_ascii_digit() || c == '(');
    let unnumbered = |name: &str| -> Vec<String> {
        let words = name
            .split_ascii_whitespace()
            .skip_while(|word| is_value(word) && !word.contains(char::is_alphabetic));
        words.map(str::to_owned).collect()
    };
    let (one, two) = (unnumbered(row.name), unnumbered(other.name));
    let (Some(first), Some(second)) = (one.first(), two.first()) else { return false };
    let alike = |(a, b): (&String, &String)| {
        is_value(a) && is_value(b)
            || a == b && (listed(JOINTS, a) || listed(UNITS, &a.to_ascii_lowercase()))
    };
    one.len() == two.len() && (first == second || one.iter().zip(&two).skip(1).all(alike))
}

fn without_digits(name: &str) -> String {
    name.chars().filter(|c| !c.is_ascii_digit()).collect()
}

fn failed_row(text: &str) -> Option<Row<'_>> {
    verdict_row(text).filter(|row| !row.passed)
}

/// Reads a row with one verdict.
fn verdict_row(text: &str) -> Option<Row<'_>> {
    let text = text.trim_ascii();
    let row = field_row(text).or_else(|| front_row(text)).or_else(|| back_row(text))?;
    let name = row.name;
    let lettered = name.chars().any(char::is_alphabetic);
    let short = name.len() <= NAME && name.split_ascii_whitespace().count() <= NAME_WORDS;
    (lettered && short).then_some(row)
}

/// Tells of a word whether it is a passed or a failed verdict, and one of tests alone.
fn verdict(word: &str) -> Option<(bool, bool)> {
    if let Some((_, passed)) = LETTERS.iter().find(|(letter, _)| *letter == word) {
        return Some((*passed, false));
    }
    let small = word.to_ascii_lowercase();
    let passed = listed(PASSED, &small);
    let failed = listed(FAILED, &small) || is_capital(word) && listed(STOPPED, &small);
    (passed || failed).then(|| (passed, listed(TESTED, &small)))
}

fn is_capital(word: &str) -> bool {
    word.len() > 1 && !word.bytes().any(|b| b.is_ascii_lowercase())
}

/// `ring,pass`, `| 2 | flash | fail |`.
fn field_row(text: &str) -> Option<Row<'_>> {
    [',', ';', '|', '\t', '\u{2502}', '\u{2503}', '\u{2551}'].into_iter().find_map(|separator| {
        let fields: Vec<&str> = fields(text, separator)?;
        let mut verdicts = fields.iter().enumerate().filter_map(|(at, f)| Some((at, verdict(f)?)));
        let (at, (passed, tested)) = verdicts.next()?;
        let named = |field: &&&str| field.bytes().any(|b| b.is_ascii_alphabetic());
        let name = fields[..at].iter().find(named)?;
        let place = Place::Field(separator, at);
        let capital = is_capital(fields[at]);
        verdicts.next().is_none().then_some(Row { name, place, passed, tested, capital })
    })
}

/// Cuts a row into its fields: at least two, and each is short.
fn fields(text: &str, separator: char) -> Option<Vec<&str>> {
    if !text.contains(separator) {
        return None;
    }
    let body = text.trim_matches(separator);
    let fields: Vec<&str> = body.split(separator).map(str::trim_ascii).collect();
    (fields.len() > 1 && fields.iter().all(|field| field.len() <= NAME)).then_some(fields)
}

/// `[fail] eth: no link`, `pass: uart0`, `fail - rtc`.
fn front_row(text: &str) -> Option<Row<'_>> {
    let (word, joint, rest) = match text.strip_prefix('[') {
        Some(inside) => {
            let (word, rest) = inside.split_once(']')?;
            (word.trim_ascii(), '[', rest)
        }
        None => {
            let len = text.bytes().take_while(u8::is_ascii_alphabetic).count();
            let (word, rest) = text.split_at_checked(len)?;
            let joint = joint(&rest[..rest.find(|c: char| c.is_ascii_alphanumeric())?])?;
            (word, joint, rest)
        }
    };
    let (passed, tested) = verdict(word)?;
    let is_level = joint != '[' && listed(LEVELS, &word.to_ascii_lowercase());
    if joint == '\0' || is_level {
        return None;
    }
    // What stands behind the name is a reason.
    let name = rest.trim_start_matches([' ', '\t', ':', '-']);
    let name = name.split([':', '(', ',']).next()?.trim_ascii();
    let capital = is_capital(word);
    Some(Row { name, place: Place::Front(joint), passed, tested, capital })
}

/// `BIST FLASH  fail`, `eth: fail (no link)`, `ram .... [ok]`.
fn back_row(text: &str) -> Option<Row<'_>> {
    let words = words(text);
    let mut end = 0;
    let mut found = None;
    for (at, word) in words.iter().enumerate() {
        let start = end + word.before.len();
        end = start + word.raw.len();
        // The letters of other scripts stand between the words.
        let name = text[..start].trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_');
        let gap = &text[name.len()..start];
        let stopped = || {
            let last = is_nothing(&text[end..]) && listed(STOPPED, &word.text);
            let joint = joint(gap).filter(|_| last)?;
            Place::Back(joint).is_sure().then_some((false, false))
        };
        let verdict = verdict(word.raw).or_else(stopped).filter(|_| !name.is_empty());
        let Some((passed, tested)) = verdict else { continue };
        let (front, raw) =
            at.checked_sub(1).map_or(("", ""), |at| (&*words[at].text, words[at].raw));
        // Letters of another script may stand behind it.
        let denied = text[..start].trim_ascii_end().strip_suffix(raw);
        let denied = denied.filter(|_| front == "not");
        if matches!(front, "no" | "never" | "without") || found.is_some() {
            return None;
        }
        let (name, gap) = match denied {
            Some(front) if at > 1 => {
                let name = front.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
                (name, &front[name.len()..])
            }
            _ => (name, gap),
        };
        let denied = denied.is_some();
        let after = &text[end..];
        // `lfs.c:1369:error: x` has a place in a source and a level; minunit prints a blank in front of `error`.
        let numbered = |(_, line): (&str, &str)| line.bytes().all(|b| b.is_ascii_digit());
        let level = gap == ":" && listed(LEVELS, &word.text) && after.starts_with(':');
        if level && name.rsplit_once(':').is_some_and(numbered) {
            return None;
        }
        let ends = is_nothing(after)
            || is_measured(after)
            || after.starts_with("  ") && after.trim_ascii_start().starts_with('(')
            || after.starts_with('(') && after.ends_with(')')
            || [" (", ", ", " - ", ": ", "; ", "] "].iter().any(|next| after.starts_with(next));
        let joint = joint(gap.trim_start_matches([')', ']', '}', '"', '\'']))?;
        let (place, passed) = (Place::Back(joint), passed && !denied);
        let capital = is_capital(word.raw);
        let row = Row { name: name.trim_ascii(), place, passed, tested, capital };
        if !ends {
            let shouted = capital && joint == ':' && is_capital(after);
            let detail = || is_detail(word.raw, after) || shouted;
            let detailed = !passed && (capital || joint != '\0') && detail();
            return detailed.then_some(row);
        }
        found = Some(row);
    }
    found
}

/// Tells whether nothing but marks stands behind a verdict.
fn is_nothing(after: &str) -> bool {
    after.trim_matches(['.', '!', ' ', ']', ')']).is_empty()
}

/// Tells whether a text tells more of the failed verdict in front of it: ` at 0x80401000`, ` no ACK`.
/// Behind a word that is also a level of a log, only a code does that ends the line or a part of it.
fn is_detail(verdict: &str, after: &str) -> bool {
    let Some(detail) = after.strip_prefix(' ').map(str::trim_ascii_start) else { return false };
    let first = detail.split([' ', ':', ',']).next().unwrap_or_default();
    let code = first.starts_with("0x") || first.starts_with('-');
    let words = detail.bytes().any(|b| b.is_ascii_alphabetic()) || first.starts_with('@');
    if listed(LEVELS, &verdict.to_ascii_lowercase()) {
        let behind = detail[first.len()..].trim_ascii_start();
        // `mmc0: error -110 whilst initialising`
        let logged = verdict == "error" && behind.starts_with(char::is_alphanumeric);
        return code && !logged;
    }
    code || words && !listed(COMPOUNDS, &first.to_ascii_lowercase())
}

/// Tells whether a text is a value with its unit: ` 40 ms`.
fn is_measured(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    let value =
        words.next().is_some_and(|word| word.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    let unit = words.next().is_some_and(|word| listed(UNITS, &word.to_ascii_lowercase()));
    value && unit && words.next().is_none()
}

/// Names what stands between a name and its verdict; `\0` is a single blank.
fn joint(gap: &str) -> Option<char> {
    let inner = gap.trim_ascii();
    match inner {
        "" if gap == " " => Some('\0'),
        "" if gap.is_empty() => None,
        "" => Some(' '),
        ":" => Some(':'),
        "=" => Some('='),
        "-" | "--" | "->" | "=>" => Some('-'),
        _ if inner.ends_with(['[', '(']) => Some('['),
        _ if inner.len() > 1 && inner.bytes().all(|b| matches!(b, b'.' | b' ' | b':')) => Some('.'),
        _ => None,
    }
}

/// Tells whether a line heads a table whose rows have their verdict in a field.
fn names_verdicts(line: &str, separator: char, field: usize) -> bool {
    texts(line, true).any(|text| {
        let Some(fields) = fields(text.trim_ascii(), separator) else { return false };
        let title =
            |field: &&str| field.bytes().all(|b| b.is_ascii_alphabetic() || b" _-".contains(&b));
        let heads = fields.get(field).is_some_and(|name| {
            let name = name.to_ascii_lowercase();
            holds_verdicts(&name)
                || listed("result status", &name)
                || ROWS.split(' ').any(|row| name == format!("{row} result"))
        });
        heads && fields.iter().all(title)
    })
}

/// A share of passes below the whole: `vectors ok: 9/10`, `Score: 3/5`, `3 out of 5 tests OK`.
#[derive(Debug)]
struct Share<'a> {
    label: &'a str,
    some: u64,
    whole: u64,
}

/// Reads a share of several things that are good.
fn share(text: &str) -> Option<Share<'_>> {
    let share = any_share(text)?;
    (share.some < share.whole).then_some(share)
}

fn any_share(text: &str) -> Option<Share<'_>> {
    let text = text.trim_ascii().trim_end_matches('.');
    good_share(text).or_else(|| labelled_share(text)).or_else(|| tally(text))
}

/// `Passed: 0 Failed: 0`: a tally of none, unless a later one counts some.
fn tally(text: &str) -> Option<Share<'_>> {
    let words = words(text);
    let [passed, passes, failed, failures] = words.as_slice() else { return None };
    let joint = |word: &Word<'_>| matches!(word.before.trim_ascii(), ":" | "=");
    let names = listed(PASSED, &passed.text) && listed(FAILED, &failed.text);
    let some = number(passes)? + number(failures)?;
    let label = "passed and failed";
    (names && joint(passes) && joint(failures)).then_some(Share { label, some, whole: 1 })
}

/// `3/5 OK`, `4 of 5 tests good`, `matched 39/40 (97.5%)`, `success rate: 80%`.
fn good_share(text: &str) -> Option<Share<'_>> {
    let words = words(text);
    let number = |at: usize| number(words.get(at)?);
    let word = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    let first = (0..words.len()).find(|&at| number(at).is_some())?;
    let some = number(first)?;
    let rate = first == 2 && listed("success pass", word(0)) && word(1) == "rate"
        || first == 1 && word(0) == "success";
    if rate && words.len() == first + 1 && words[first].after.trim_ascii() == "%" {
        return Some(Share { label: word_before(text), some, whole: 100 });
    }
    let whole = if words.get(first + 1)?.before.trim_ascii() == "/" {
        first + 1
    } else if word(first + 1) == "of" {
        first + 2
    } else if word(first + 1) == "out" && word(first + 2) == "of" {
        first + 3
    } else {
        return None;
    };
    let unit = listed("tests checks cases vectors points channels", word(whole + 1));
    let last = whole + 1 + usize::from(unit);
    let good = first == 0 && listed("ok good correct green", word(last)) && last + 1 == words.len();
    let percent = whole + 1 == words.len() || words.last()?.after.starts_with('%');
    let matched = first == 1 && listed("matched verified", word(0)) && percent;
    let label = word_before(text);
    (good || matched).then_some(Share { label, some, whole: number(whole)? })
}

/// Returns what stands in front of the first digit.
fn word_before(text: &str) -> &str {
    let digit = text.find(|c: char| c.is_ascii_digit()).unwrap_or_default();
    text[..digit].trim_ascii()
}

/// `Prove superate: 9/10`: several that passed, in other languages.
const GOOD_SEVERAL: &str = "\
    bestanden geslaagd superate superati superadas superados aprobadas aprobados aprovados aprovadas";

fn labelled_share(text: &str) -> Option<Share<'_>> {
    let (label, numbers) = text.rsplit_once([':', '='])?;
    let (some, whole) = numbers.split_once('/').or_else(|| numbers.split_once(" of "))?;
    let number = |text: &str| parsed_count(text.trim_ascii());
    let label = label.trim_ascii();
    let words = words(label);
    let (last, front) = words.split_last()?;
    let others = listed(GOOD_SEVERAL, &last.text);
    let several = others || front.last().is_none_or(|word| word.text.ends_with('s'));
    let good = listed("ok good correct valid", &last.text)
        || others
        || front.is_empty() && matches!(last.text.as_str(), "score")
        || front.len() == 1 && last.text == "rate" && listed("success pass", &front[0].text);
    let short = front.len() <= NAME_WORDS && good && several;
    Some(Share {
        label: Some(label).filter(|_| short)?,
        some: number(some)?,
        whole: number(whole)?,
    })
}

/// Tells whether no later line of the same label counts more, as one about progress does.
fn is_final(share: &Share<'_>, behind: &[&str]) -> bool {
    let more = |text: &str| {
        any_share(text).is_some_and(|later| {
            later.label == share.label && later.whole == share.whole && later.some > share.some
        })
    };
    !behind.iter().any(|line| texts(line, true).any(more))
}

#[cfg(test)]
#[path = "result_lists_tests.rs"]
pub(super) mod tests;
