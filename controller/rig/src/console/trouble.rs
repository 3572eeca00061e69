//! Tells whether a line behind the end of a report says that something went wrong. Pure.
//!
//! # Design
//! Behind the end of a report the burden of proof has turned, and the words of a crash are not all that a
//! failure is told in: `malloc failed to allocate`, `something bad has happened`. What a log says of
//! a retry, as a warning or for information is ordinary, and so is a count of zero. A line with the level of
//! an error counts by that level alone, unless it tells of a retry.
//! What is told in none of these words has one of a few forms (`trouble_forms`).
//! Nothing is asked of output in front of an end, or behind the line of a text that a plan waits for: there
//! firmware tells of such things all the time. `trouble_lines.toml` holds the lines that the words were chosen by.

use super::failed_result::{is_hex_dump, is_of_none};
use super::log_prefix::texts;
use super::structured_counts::labelled_failures;
use super::suspicion::{denied, is_in_list, message, reports_error};
use super::trouble_forms::{denies_need, uses_other};
use super::words::{Word, is_zero, listed, number, words};

/// Words of which one tells of trouble.
const TROUBLE: &str = "\
    failed fail fails failure error errors err bad wrong invalid unable cannot broken illegal incorrect \
    unexpected violation mismatch hung nobody kasan kcsan kmsan ubsan corrupt damaged critical differ differs";

/// Words behind a result that make the trouble a part of its test: `PASS: bad CRC is refused`.
const RESULTS: &str = "ok okay pass passed passes xfail skip skipped todo";

/// Words of a log that tries again, or goes on in another way.
const GOES_ON: &str = "\
    retry retries retrying again reconnect reconnecting default defaults ignored ignoring \
    skipping continuing handled corrected dropped dropping formatting fixing injected simulated";

/// Words behind one of trouble that name a part of the system, or a measure of it.
const THINGS: &str = "\
    code codes ratio rate rates counter counters count counts handler handlers handling correction \
    detection injection threshold budget vector led log logging mask section sections mode modes rms \
    attempt attempts try tries";

/// Words that return as a value: `xAreQueuesStillRunning() returned false`.
const VALUES: &str = "false pdfalse pdfail null";

/// Phrases of what healthy systems tell of at each start: firmware and settings that are optional, blocks
/// that a flash has had bad since it was made.
const ORDINARY: &[&str] = &[
    "Direct firmware load for ",
    "failed to load regulatory.db",
    "device descriptor read/",
    "Bad eraseblock ",
    "for bad blocks",
    "Unable to read \"uboot.env\"",
    "Waiting for PHY auto negotiation",
    ": command not found",
];

/// Tells whether a line, colours removed, tells of trouble.
pub(crate) fn tells_trouble(line: &str) -> bool {
    let (text, calm) = message(line);
    let words = words(text);
    let is_plain = |word: &Word<'_>| [RESULTS, GOES_ON].iter().any(|list| listed(list, &word.text));
    let ordinary = ORDINARY.iter().any(|phrase| text.contains(phrase));
    // Of the levels that TF-A prints always, it is the lower one.
    let calm = calm && !line.trim_ascii_start().starts_with("NOTICE:") && !ends_start(text);
    if calm
        || ordinary
        || is_warning(line)
        || is_in_list(text)
        || labelled_failures(text) == Some(0)
        || texts(line, true).any(is_hex_dump)
    {
        return false;
    }
    let plain = || words.iter().any(is_plain) || uses_other(&words);
    let named = || (0..words.len()).any(|at| is_trouble(&words, at) && !denied(&words, at));
    !plain() && (reports_error(line) || named()) || denies_need(text)
}

/// `Disk initialization failed.`: what has not started does not go on, whatever the level of its line.
fn ends_start(text: &str) -> bool {
    let end = text.trim_end_matches(['.', '!']).to_ascii_lowercase();
    ["initialization failed", "initialisation failed", "init failed"]
        .iter()
        .any(|it| end.ends_with(it))
}

fn is_trouble(words: &[Word<'_>], at: usize) -> bool {
    let word = &words[at];
    let next = words.get(at + 1);
    let returned = word.text == "returned" && next.is_some_and(|next| listed(VALUES, &next.text));
    // `should fail`, `max error was 1.2`
    let before = at.checked_sub(1).map_or("", |before| words[before].text.as_str());
    let wanted = word.text == "fail" && listed("should must may can could will would to", before);
    // `1 expected failures`
    let wanted = wanted || before == "expected" && word.text.ends_with('s');
    let deviation =
        word.text == "error" && listed("max min mean rms relative absolute average", before);
    // `0 of 256 pages differ`
    let counted = words[..at].iter().find_map(number);
    let none = word.text.starts_with("differ") && counted == Some(0);
    returned
        || listed(TROUBLE, &word.text)
            && !wanted
            && !none
            && !deviation
            && !is_of_none(words, at)
            && !is_measured(words, at)
}

/// `errors=remount-ro`, `rx errors: 3`, `bit error ratio 1e-9`, `bad blocks: 0`: a setting, a part of the
/// system, or a count.
fn is_measured(words: &[Word<'_>], at: usize) -> bool {
    let Some(next) = words.get(at + 1) else { return false };
    let joined = next.before.trim_start();
    let is_set = joined.starts_with('=');
    let is_count =
        words[at].text.ends_with('s') && joined.starts_with(':') && number(next).is_some();
    let counted = words.get(at + 2).filter(|_| next.text.ends_with('s'));
    let is_none = is_zero(&next.text)
        || counted.is_some_and(|value| {
            is_zero(&value.text) || value.before.trim() == ":" && number(value).is_some()
        });
    // `fail-safe`, `error-free`
    let is_compound = next.before == "-";
    // `error code 0x2006`, but not `failed, code -2`
    let is_thing = joined.is_empty() && listed(THINGS, &next.text);
    is_set || is_compound || is_count || is_none || is_thing
}

/// `<wrn> net: x`, `W (12) wifi: x`, `[WARN] x`.
fn is_warning(line: &str) -> bool {
    const LEVELS: [&str; 9] =
        ["<wrn>", "W (", "W: ", "[W]", "[WARN", "[WRN", "WARN", "Warning: ", "<4>"];
    let line = line.trim_ascii_start();
    LEVELS.iter().any(|level| line.starts_with(level)) || line.contains("<wrn>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_from_ordinary_output() {
        let lines: toml::Table = include_str!("trouble_lines.toml").parse().unwrap();
        let list = |kind: &str| -> Vec<String> {
            let lines = lines[kind].as_array().unwrap().iter();
            lines.map(|line| line.as_str().unwrap().to_owned()).collect()
        };
        let suspicion: toml::Table = include_str!("suspicion_lines.toml").parse().unwrap();
        let harmless = suspicion["harmless"].as_array().unwrap().iter();
        let harmless = harmless.map(|line| line.as_str().unwrap().to_owned());
        let missed: Vec<_> =
            list("trouble").into_iter().filter(|line| !tells_trouble(line)).collect();
        let wrong: Vec<_> = list("ordinary")
            .into_iter()
            .chain(harmless)
            .filter(|line| tells_trouble(line))
            .collect();
        assert!(missed.is_empty() && wrong.is_empty(), "missed: {missed:#?}\nwrong: {wrong:#?}");
    }
}
