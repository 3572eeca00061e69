//! Tells whether a line says by several counts or by a truth value that a test failed. Pure.
//!
//! # Design
//! `PASS/FAIL/SKIP: 11/1/0` names its counts in front of all of them, so it is read as a whole and
//! says nothing else. `passed 11, expected 12` holds two counts of one thing. A truth value is a
//! result where its key names a pass (`success: false`); a log has such keys, too, so it is the whole
//! line, or the key names a test (`selftest ok = false`), or other keys beside it are those of a
//! report. `structured_count_lines.toml` holds examples and near misses.

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use super::result_rows::goes_on;
use super::scan::searched_once;
use super::words::{listed, number, parsed_count, words};

/// Names of counts, by what they count.
const PASSES: &str = "pass passed passes passing ok good success successes succeeded";
const FAILURES: &str = "fail failed fails failing failure failures nok ng bad error errors err";
const OTHERS: &str = "total run ran tests skip skipped skips ignored ignore warn warnings disabled";

/// Names of how many have to pass.
const WANTED: &str = "expected planned wanted required total totals tests cases checks";

/// Lines that are, as a whole, a truth value.
const WHOLE: &[&str] = &[
    r#"^"?(?:success|passed|pass|succeeded)"? ?[:=] ?"?(?:false|no)"?[,.]?$"#,
    r#"^"?(?:success|ok)"? ?[:=] ?"?(?:0|false|no)"?[,.]?$"#,
    r#"^"?(?:result|verdict|outcome)"? ?[:=] ?"?(?:false|no)"?[,.]?$"#,
    r#"^\{ ?"(?:success|ok|passed|pass)" ?: ?(?:false|0) ?\}$"#,
];

/// Such texts, behind whatever a logger puts in front.
const ANYWHERE: &[&str] = &[
    r#"^(?:[\w.-]+[ _])?(?:all|overall|(?:self[ _-]?|mem|unit)?tests?|check|bist|post)(?:[ _.-][\w-]+)?[ _.]?(?:(?:ok|success|passed|pass|succeeded) ?[:=] ?0|(?:ok|success|passed|pass|succeeded|result|verdict) ?[:=] ?(?:false|no))[.!]?$"#,
    r#""(?:success|ok|passed|pass)" ?: ?false.*"(?:tests?|total|passed|failed|failures|skipped|results?|suites?|assertions)" ?:"#,
    r#""(?:tests?|total|passed|failed|failures|skipped|results?|suites?|assertions)" ?:.*"(?:success|ok|passed|pass)" ?: ?false"#,
    r"\b(?:passed|ok|good|succeeded) ?(?:!=|<) ?(?:total|expected|planned|run|all)\b",
    r"\b(?:failures|failed|fails) ?[:=] ?0x0*[1-9a-f][0-9a-f]*\b",
    r"^nok \d+ - \S",
    r"^(?:(?:overall|total|tests?|final)[ :]+)?(?:pass(?:ing)?[ -]rate|success[ -]rate|score)(?: ?[:=] ?| )(?:\d{1,2}(?:\.\d+)?) ?%[.!]?$",
    r#""(?:failures|failed|failing)" ?: ?\[ ?["{]"#,
    r#""event" ?: ?"(?:done|end|finished|summary|complete|result)".*"(?:errors|failures|failed|nok)" ?: ?[1-9]"#,
    r"^(?:[\w.-]+ )?(?:self[ _-]?|unit|mem)?tests?(?: run)?(?: (?:was|is))?:? (?:incomplete|inconclusive|aborted|interrupted)[.!]?$",
    r"\bresults? (?:is |was |are |were )?(?:incorrect|wrong)[.!]?$|: wrong results?[.!]?$",
    r"^(?:[^:,]{1,40}[:,] ?)?(?:but )?not all (?:tests |checks )?(?:passed|ok|succeeded)[.!]?$",
    r"^(?:tests?(?: run)? )?(?:finished|completed|ended) with (?:errors|failures)[.!]?$",
    r"^fail(?:ed|ing): [a-z_][\w]*(?:, [a-z_]\w*)+$",
];

/// Text of which one stands in each such line, unless a word of results does.
pub(super) const HINTS: &str = r#"\bok ?[:=] ?[0-9]|\b(?:ok|result|verdict|outcome)"? ?[:=] ?"?(?:0(?:[^-.x0-9a-z/]|$)|false|no\b)|_ok ?[:=] ?(?:0|false|no)|skip/|/skip|\b(?:planned|wanted) ?[:=]|[0-9] (?:planned|wanted)\b|\bscore\b|inconclusive|interrupted|incomplete"#;

pub(super) static WHOLE_LINES: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(WHOLE));
pub(super) static TEXTS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(ANYWHERE));

fn compiled(patterns: &[&str]) -> Option<Regex> {
    let ascii = syntax::Config::new().unicode(false).utf8(false).case_insensitive(true);
    Regex::builder().configure(searched_once()).syntax(ascii).build_many(patterns).ok()
}

/// Counts the failures of a text that names its counts in front of all of them, or behind them:
/// `PASS/FAIL/SKIP: 11/1/0`, `11/1/0 (pass/fail/skip)`.
pub(super) fn labelled_failures(text: &str) -> Option<u64> {
    let text = text.trim_ascii();
    let split = text.find([':', '=', '(']).filter(|&at| text[..at].contains('/'))?;
    let (front, back) = text.split_at(split);
    let back = back.trim_matches([':', '=', '(', ')', ' ', '[', ']', '.']);
    let lettered = |text: &str| text.bytes().any(|b| b.is_ascii_alphabetic());
    let (labels, counts) = if lettered(front) { (front, back) } else { (back, front) };
    // `Tests PASS/FAIL: 11/1`
    let labels = labels.trim_ascii();
    let labels = labels.rsplit_once([' ', ':']).map_or(labels, |(_, labels)| labels);
    let labels: Vec<String> = labels.split('/').map(str::to_ascii_lowercase).collect();
    let counts = counts.split('/').map(|count| parsed_count(count.trim_ascii()));
    let counts: Vec<u64> = counts.collect::<Option<_>>()?;
    let known = |label: &String| [PASSES, FAILURES, OTHERS].iter().any(|list| listed(list, label));
    if labels.len() < 2 || labels.len() != counts.len() || !labels.iter().all(known) {
        return None;
    }
    let failed = labels.iter().zip(counts).filter(|(label, _)| listed(FAILURES, label));
    Some(failed.map(|(_, count)| count).sum())
}

/// Tells whether a text says by counts or by a truth value that a test failed. It may be the `whole`
/// line.
pub(super) fn is_failed_count(text: &str, whole: bool) -> bool {
    let text = text.trim_ascii();
    let matches =
        |set: &LazyLock<Option<Regex>>| set.as_ref().is_some_and(|set| set.is_match(text));
    (matches(&TEXTS) || whole && matches(&WHOLE_LINES) || passes_fewer(text)) && !goes_on_so(text)
}

/// Tells whether a line goes on in another way. `expected 12` is a count.
fn goes_on_so(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    goes_on(&lower.replace("expected", ""))
}

/// `passed 11, expected 12`, `expected 12 tests, 11 passed`: two counts, and the one of passes is less
/// than the one that was wanted.
fn passes_fewer(text: &str) -> bool {
    let words = words(text);
    let numbers: Vec<usize> = (0..words.len()).filter(|&at| number(&words[at]).is_some()).collect();
    let &[first, second] = numbers.as_slice() else { return false };
    // The word that a number belongs to: the one behind a joint, else the one beside it.
    let owner = |at: usize| {
        let near = |index: usize| {
            let gap = words[index.max(at)].before.trim_ascii();
            matches!(gap, "" | ":" | "=").then(|| words[index].text.as_str())
        };
        let counted = |word: &&str| listed(PASSES, word) || listed(WANTED, word);
        let before = at.checked_sub(1).and_then(near).filter(counted);
        let behind = Some(at + 1).filter(|&next| next < words.len()).and_then(near);
        before.or(behind.filter(counted)).unwrap_or_default()
    };
    let known = |at: usize| {
        let word = &words[at].text;
        [PASSES, WANTED].iter().any(|list| listed(list, word))
            || listed("but only tests test cases checks were are of results result summary", word)
    };
    let plain = (0..words.len()).all(|at| known(at) || numbers.contains(&at));
    let (one, other) = (number(&words[first]), number(&words[second]));
    let fewer = |passed: usize, wanted: usize| {
        listed(PASSES, owner(passed)) && listed(WANTED, owner(wanted))
    };
    plain && (fewer(first, second) && one < other || fewer(second, first) && other < one)
}

#[cfg(test)]
mod tests {
    use super::super::candidate_lines::candidate;
    use super::super::tells_failure;
    use super::*;

    #[derive(serde::Deserialize)]
    struct Lines {
        failed: Vec<String>,
        failed_alone: Vec<String>,
        near_misses: Vec<String>,
    }

    #[test]
    fn counts_and_truth_values_are_results_in_their_forms() {
        assert!(WHOLE_LINES.is_some() && TEXTS.is_some());
        let lines: Lines = toml::from_str(include_str!("structured_count_lines.toml")).unwrap();
        let failed = || lines.failed.iter().chain(&lines.failed_alone);
        let missed: Vec<_> = failed().filter(|line| !tells_failure(line)).collect();
        assert!(missed.is_empty(), "{missed:#?}");
        let skipped: Vec<_> = failed().filter(|l| candidate(l.as_bytes()).is_none()).collect();
        assert!(skipped.is_empty(), "not searched: {skipped:#?}");
        let stamped = |line: &&String| !tells_failure(&format!("[    1.204331] {line}"));
        let missed: Vec<_> = lines.failed.iter().filter(stamped).collect();
        assert!(missed.is_empty(), "behind a time stamp: {missed:#?}");
        let logged = |line: &&String| tells_failure(&format!("I (12) mqtt: {line}"));
        let wrong: Vec<_> = lines.failed_alone.iter().filter(logged).collect();
        assert!(wrong.is_empty(), "in a log: {wrong:#?}");
        let wrong: Vec<_> = lines.near_misses.iter().filter(|line| tells_failure(line)).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
