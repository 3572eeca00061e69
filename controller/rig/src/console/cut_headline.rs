//! Tells whether the last line of a log, which has no line end, was cut within the headline of a crash or
//! within a result. Pure.
//!
//! # Design
//! A target that dies while it prints leaves `*** HardF`, which no fault signature and no crash word
//! knows. Whether the beginning of a line goes on as a headline can only be guessed, so a few letters
//! are not enough, and neither is a first word that other lines begin with (`Stack`, `Bus`).
//!
//! A result that is cut (`flash: FAI`) fails as the whole one does, so its last word is completed and the
//! line is read. Of Unity's results the beginning is enough: each is another case than those of a report
//! that has ended.
//!
//! `cut_headline_lines.toml` holds lines that are cut and lines that are not.

use super::failed_result::tells_failure;
use super::log_prefix::{behind_bracketed_tag, texts, without_context};
use super::words::{names_test, words};

/// Most prefixes taken off one line: time, level, tag.
const MAX_PREFIXES: usize = 6;

/// Fewest letters that tell a headline from another line.
const LETTERS: usize = 4;

/// First words of headlines that begin many other lines.
const COMMON: &[&str] = &[
    "stack",
    "error",
    "core",
    "data",
    "load",
    "bus",
    "hard",
    "thread",
    "store",
    "kernel",
    "user",
    "internal",
    "watchdog",
    "heap",
    "task",
    "usage",
    "illegal",
    "undefined",
    "instruction",
    "interrupt",
    "synchronous",
    "unexpected",
    "double",
    "triple",
    "divide",
    "division",
    "secure",
    "unable",
    "fatal",
    "segmentation",
    "prefetch",
    "assert",
    "mem",
];

/// Marks in front of a headline that make its first word enough.
const MARKS: &[&str] = &["***", "!!!", "###", "+++", ">>>"];

/// Last words of failed results.
const VERDICTS: &[&str] = &["FAILURE", "FAILED", "failure", "failed", "Failure", "Failed"];

/// Fewest letters of a verdict, but behind the name of a test: `FA` is also a number.
const VERDICT_LETTERS: usize = 3;

/// Verdicts of Unity.
const UNITY: &[&str] = &["PASS", "FAIL", "IGNORE"];

/// Headlines of crashes, as far as their words tell them from other output.
const HEADLINES: &[&str] = &[
    "HardFault",
    "Hard Fault",
    "Hard_Fault",
    "BusFault",
    "Bus Fault",
    "Bus error",
    "UsageFault",
    "Usage Fault",
    "MemFault",
    "MemManage",
    "Mem Manage",
    "MPU Fault",
    "SecureFault",
    "Secure Fault",
    "ZEPHYR FATAL ERROR",
    "RIOT kernel panic",
    "Guru Meditation Error",
    "Unhandled exception",
    "Unhandled fault",
    "Unhandled interrupt",
    "Unexpected exception",
    "Fatal error",
    "Fatal exception",
    "FATAL:",
    "ASSERTION FAILED",
    "ASSERT FAILED",
    "Assert failed",
    "assertion \"",
    "Assertion '",
    "abort() was called",
    "Aborted",
    "Kernel panic",
    "panicked at",
    "panic:",
    "PANIC",
    "Exception",
    "Stack smashing",
    "Stack overflow",
    "stack smashing detected",
    "CORRUPT HEAP",
    "heap corruption",
    "Segmentation fault",
    "Illegal instruction",
    "Undefined instruction",
    "Instruction access fault",
    "Load access fault",
    "Store access fault",
    "Data abort",
    "Prefetch abort",
    "Synchronous exception",
    "Internal error: Oops",
    "Oops:",
    "Unable to handle kernel",
    "BUG: ",
    "Backtrace:",
    "Traceback (most recent call last)",
    "terminate called",
    "Brownout detector was triggered",
    "Brown-out",
    "Task watchdog got triggered",
    "Watchdog reset",
    "Watchdog timeout",
    "Interrupt wdt timeout",
    "core dumped",
    "Core dump",
    "Double fault",
    "Triple fault",
    "Divide by zero",
    "Division by zero",
    "Lockup",
    "Error_Handler",
    "thread 'main' panicked at",
    "up_assert:",
    "arm_hardfault",
    "lp_worker panic",
    "MbedOS Error Info ++",
    "E/TC: Core data-abort",
    "sys_reboot",
    "User exception",
];

/// Tells whether a line without a line end, colours removed, is the beginning of a headline or of a
/// result.
pub(crate) fn is_cut_headline(line: &str) -> bool {
    if is_cut_result(line) {
        return true;
    }
    let texts = std::iter::successors(Some(line), |text| without_context(text, false));
    let mut texts = texts.take(1 + MAX_PREFIXES);
    texts.any(|text| {
        let text = behind_tag(text).unwrap_or(text);
        let words = text.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
        let marked = MARKS.iter().any(|mark| text.trim_ascii_start().starts_with(mark));
        begins_headline(words) || marked && is_first_word(words)
    })
}

/// Tells whether a line is torn within the headline of a crash by the line of another core or task, whose tag
/// stands within a word: `*** stack smash[c1] tick 44`.
pub(super) fn is_torn_headline(line: &str) -> bool {
    line.match_indices(['[', '<']).any(|(at, _)| {
        let front = &line[..at];
        let text = front.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
        front.ends_with(|c: char| c.is_ascii_lowercase()) && begins_headline(text)
    })
}

/// Returns the marked headline behind the tag of a core or a task: `[core1] *** HardF`.
fn behind_tag(text: &str) -> Option<&str> {
    let rest = behind_bracketed_tag(text)?;
    MARKS.iter().any(|mark| rest.starts_with(mark)).then_some(rest)
}

/// Tells whether a text is the first word of a headline, which other lines begin with, too.
fn is_first_word(text: &str) -> bool {
    COMMON.contains(&text.trim_ascii_end().to_ascii_lowercase().as_str())
}

fn is_cut_result(line: &str) -> bool {
    let fails = |verdict: &&str| {
        // The whole word may also be shorter: `FAIL`.
        let begun = (1..verdict.len()).filter_map(|len| {
            let front = line.strip_suffix(&verdict[..len])?;
            (len >= VERDICT_LETTERS || awaits_verdict(front)).then_some(front)
        });
        begun.into_iter().any(|front| {
            let word = front.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            let whole = [&verdict[.."fail".len()], verdict];
            !word && whole.iter().any(|verdict| tells_failure(&format!("{front}{verdict}")))
        })
    };
    texts(line, false)
        .any(|text| text == "not o" || begins_unity_result(text) || is_begun_test(text))
        || VERDICTS.iter().any(fails)
}

/// `test_pop: `, `test pop ... `, `[test_pop] [`: the next word is the verdict of a test.
fn awaits_verdict(front: &str) -> bool {
    let tests =
        |word: &str| word.starts_with("test") || names_test(word) || word.ends_with("_test");
    front.trim_ascii_end().ends_with([':', '.', '[', '-', '=', '|'])
        && words(front).iter().any(|word| tests(&word.text))
}

/// `test_pop: `: the name of a function without its result.
fn is_begun_test(text: &str) -> bool {
    // CppUTest's, whose result stands on the same line.
    let cpputest = text.strip_prefix("IGNORE_").unwrap_or(text).strip_prefix("TEST(");
    if cpputest
        .and_then(|rest| rest.trim_ascii_end().strip_suffix(')'))
        .is_some_and(|names| names.contains(", "))
    {
        return true;
    }
    let named = words(text);
    let function = |word: &str| word.starts_with("test_") || word.ends_with("_test");
    let text = text.trim_ascii_end();
    named.len() == 1 && function(&named[0].text) && text.ends_with([':', '.', '='])
}

/// `b.c:2:test_pop:FA`
fn begins_unity_result(text: &str) -> bool {
    let mut parts = text.rsplitn(4, ':');
    let (Some(verdict), Some(name), Some(line), Some(file)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let named = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let numbered = !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit());
    let source = file.rsplit_once('.').is_some_and(|(_, kind)| {
        !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_alphanumeric())
    });
    let begins = UNITY.iter().any(|whole| whole.starts_with(verdict));
    begins && named && numbered && source
}

fn begins_headline(text: &str) -> bool {
    let letters = text.bytes().filter(u8::is_ascii_alphabetic).count();
    let word = text.trim_ascii_end();
    if letters < LETTERS || COMMON.iter().any(|common| word.eq_ignore_ascii_case(common)) {
        return false;
    }
    HEADLINES.iter().any(|headline| {
        let head = headline.get(..text.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_ends_within_a_headline_is_cut() {
        let table: toml::Table = include_str!("cut_headline_lines.toml").parse().unwrap();
        let lines = |key: &str| {
            let lines = table[key].as_array().unwrap().clone();
            lines.into_iter().map(|line| line.as_str().unwrap().to_owned())
        };
        for line in lines("cut") {
            let line = super::super::readable(line.as_bytes()).into_owned();
            assert!(is_cut_headline(&line) || super::super::is_suspicious(&line), "{line:?}");
        }
        for line in lines("cut_results") {
            let line = super::super::readable(line.as_bytes()).into_owned();
            assert!(is_cut_headline(&line) || super::super::is_suspicious(&line), "{line:?}");
        }
        for line in lines("whole") {
            assert!(!is_cut_headline(&line), "{line:?}");
        }
    }
}
