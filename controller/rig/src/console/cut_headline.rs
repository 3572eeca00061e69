//! Tells whether the last line of a log, which has no line end, was cut within the headline of a crash.
//! Pure.
//!
//! # Design
//! A target that dies while it prints leaves `*** HardF`, which no fault signature and no crash word
//! knows. Whether the beginning of a line goes on as a headline can only be guessed, so a few letters
//! are not enough, and neither is a first word that other lines begin with (`Stack`, `Bus`).
//! `cut_headline_lines.toml` holds lines that are cut and lines that are not.

use super::lines::without_context;

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

/// Tells whether a line without a line end, colours removed, is the beginning of a headline.
pub(crate) fn is_cut_headline(line: &str) -> bool {
    let texts = std::iter::successors(Some(line), |text| without_context(text, false));
    let mut texts = texts.take(1 + MAX_PREFIXES);
    texts.any(|text| begins_headline(text.trim_start_matches(|c: char| !c.is_ascii_alphabetic())))
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
        for line in lines("whole") {
            assert!(!is_cut_headline(&line), "{line:?}");
        }
    }
}
