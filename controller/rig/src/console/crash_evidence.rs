//! Tells whether a line between the results of a report is evidence of a crash, or looks like one. Pure.
//!
//! # Design
//! Between the results of a report the tests print, and tests of a fault handler name faults. So a line
//! is evidence there, and fails the run, only where it also holds
//! what a crash alone prints: an address beside the fault, the program counter with other registers,
//! a status register of faults that is not zero, a watchdog with an exclamation mark, or a phrase of
//! the end of a program. A line that has only the words of a crash, and announces or expects none, makes
//! the run inconclusive.
//! `suspicion_lines.toml` holds examples.

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use super::fatal_phrases::{hints, is_fatal};
use super::foreign_crash::{self, tells_foreign_crash};
use super::log_prefix::texts;
use super::scan::searched_once;
use super::suspicion::{is_suspicious, words_tell_crash};
use super::words::{Word, is_zero, listed, words};

/// Patterns of lines with evidence, of ASCII.
const PATTERNS: &[&str] = &[
    r"^\W*(?:\w+ )?(?:watchdog|wdt|iwdg|wwdg) (?:reset|timeout|expired|fired|triggered|bite)(?: on (?:core|cpu) ?\d+)? ?(?:!|\*\*)",
    r"\b(?:heap|stack|memory|pool|block|buffer|guard|canary|list|queue)\b.*\b(?:corrupt|overflow|overrun|underflow|smash)\w*\b.*\b(?:at|address|addr)[ :=]+0x[0-9a-f]{4}",
    r"\b(?:hard|bus|usage|mem|memory|memmanage|page|secure|double)[ _]?fault\b.*\b(?:pc|lr|epc|ip|at|addr|address)[ :=]+0x[0-9a-f]{4}",
    r"\b(?:panic|exception|abort|trap|crash)\b.*\b(?:pc|[ms]?epc|elr|eip|rip)[ :=]+(?:0x)?[0-9a-f]{8}",
    r"\b(?:faulted|segfault|segfaulted|sigsegv|undefinstr|illegal instruction)\b.*\b(?:at|addr|address|pc|[ms]?epc)[ :=]+(?:0x)?[0-9a-f]{8}",
    r"^exception number \d+: task: 0x",
    r"^thread 'main' panicked at ",
    r"\bdied at \S+ line \d+\.",
    r"^(?:kernel )?panic!*$",
    r"\b0x[0-9a-f]+ double free[.!]*$",
    r"^abort\(\)[.!]*$",
];

/// Text of which one stands in each line with evidence.
pub(super) const HINTS: &str = r"(?:watchdog|wdt|iwdg|wwdg) (?:reset|timeout|expired|fired|triggered|bite)|(?:corrupt|overflow|overrun|underflow|smash|(?:hard|bus|usage|mem|memory|memmanage|page|secure|double)[ _]?fault|\bfaulted|segfault|sigsegv|undefinstr|illegal ins|panic|exception|\btrap\b)[^\r\n]*(?:0x|pc)|\b(?:cfsr|hfsr|[bmu]fsr|mmfsr|bfar|mmfar|[ms]tval|excvaddr|exccause|epc1|esr_el[0-9]|far_el[0-9]|elr|e?pc|[er]ip|[ms]epc)\b[ :=(]+(?:0x)?[0-9a-f]{4}|exception number |'main' panicked at |double free|\bdied at |panic!*\s*(?m:$)|abort\(\)[.!]*\s*(?m:$)";

/// Stems of which one stands in each line that looks like a crash.
const STEMS: &str = r"<crit>|<emerg>|<alert>|<[012]>|\[c\] |crit|emerg|terminating|suspended|powering|dying|exiting|resetting|rebooting|restarting|memory.error|hardware.error|seriously|infinite|blown|fault|panic|assert|abort|exception|guru|oops|fatal|trap|crash|lockup|deadlock|smash|corrupt|trace|dump|unhandled|uncaught|sig(?:segv|abrt|bus|ill|fpe)|died|\bbug|error_handler|os_error|osrtxerror|unreach|unrecov|uncorrectable|nullpointer|mesh error|overflow|underflow|canary|guard|bad pointer|violation|illegal.ins|undefined.ins|invalid.opcode|bus.error|(?:divide|division).by|out.of.(?:memory|heap)|double.free|watchdog|wdt|internal.error|re(?:set|boot|start)(?:ting|ing)? (?:reason|cause|by|due|because)|runtime.error|stack error|pointer deref|(?:unexpected|spurious) int|machine.check|brown.?out|bit.flip|(?:checksum|crc).(?:error|mismatch)|halt|killed|fail|\$[ts][0-9a-f]{2}";

pub(super) static STEM: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let ascii = syntax::Config::new().unicode(false).utf8(false).case_insensitive(true);
    Regex::builder()
        .configure(searched_once())
        .syntax(ascii)
        .build(&format!("{STEMS}|{}|{}", hints(), foreign_crash::hints()))
        .ok()
});

pub(super) static EVIDENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let ascii = syntax::Config::new().unicode(false).utf8(false).case_insensitive(true);
    Regex::builder().configure(searched_once()).syntax(ascii).build_many(PATTERNS).ok()
});

/// Registers that hold a cause or an address of a fault, and nothing else.
const FAULT_REGISTERS: &str = "\
    cfsr hfsr mmfsr bfsr ufsr mmfar bfar excvaddr exccause epc1 esr_el1 esr_el2 esr_el3 far_el1 \
    far_el2 mtval stval";

/// Registers with the place of a fault.
const COUNTERS: &str = "pc epc elr eip rip mepc sepc";

/// Registers beside it in a dump.
const BESIDE: &str = "\
    lr sp ra psr xpsr cpsr spsr gp tp r0 r1 r2 r3 r12 r13 r14 a0 a1 a2 ps eflags esp rsp mcause \
    scause mstatus sstatus exc_return msp psp";

/// Words of a crash that has happened, none of which is the name of a setting or of a part of the system.
const HAPPENED: &str = "\
    faulted hardfault hardfaulted busfault usagefault panic panicked panicking crashed aborted segfault segfaulted \
    smashing smashed deadlocked bugcheck assert assertion stackoverflow sigsegv sigabrt sigbus sigill sigfpe";

/// Words of what a start says of its handlers, and of an earlier start.
const OF_START: &str = "\
    handler handlers hook hooks action installed registered enabled level previous earlier last stored saved recovered \
    uploaded erased history old";

/// Words of a line that announces a fault, or expects it.
const WANTED: &str = "\
    test tests testing inject injects injecting injected simulate simulating simulated expect \
    expects expecting expected provoke provoking provoked trigger triggering force forcing caught \
    hook decode decodes decoding decoded";

/// Tells whether a line is evidence of a crash, wherever it stands in a report.
pub(crate) fn tells_crash(line: &str) -> bool {
    let evident = |text: &str| {
        let shown = || EVIDENCE.as_ref().is_some_and(|patterns| patterns.is_match(text));
        is_fatal(text) || shown() || dumps_fault(text)
    };
    texts(line, true).any(evident) && !is_wanted(line) && is_suspicious(line)
}

/// Tells whether a line has a phrase by which one system tells of its end.
pub(crate) fn tells_fatal_end(line: &str) -> bool {
    is_fatal(line) && !is_wanted(line)
}

/// Finds the first place in some output that a line that looks like a crash may have.
pub(crate) fn alarm_candidate(output: &[u8]) -> Option<usize> {
    match &*STEM {
        Some(stem) => stem.find(output).map(|found| found.start()),
        None => (!output.is_empty()).then_some(0),
    }
}

/// Tells whether a line between the results of a report looks like a crash.
pub(crate) fn tells_alarm(line: &str) -> bool {
    (is_fatal(line) || tells_foreign_crash(line) || words_tell_crash(line))
        && !is_wanted(line)
        && !announces(line)
}

/// Tells whether a line in front of an awaited text tells of a crash, though that is no verdict on tests: a start
/// prints many other words of a crash.
pub(crate) fn tells_crash_of_start(line: &str) -> bool {
    let words = words(line);
    let has = |list: &str| words.iter().any(|word| listed(list, &word.text));
    has(HAPPENED) && !has(OF_START) && tells_alarm(line)
}

/// `Running abort on double free...`, `Assertion passed: (2=2) == (2=2)` of AUnit, and what libtest passes on
/// of a test that panics, which it judges: the headline and the frames of a backtrace.
fn announces(line: &str) -> bool {
    let text = line.trim_ascii_start();
    let frame = text.trim_start_matches(|c: char| c.is_ascii_digit());
    // A thread without a name is none of libtest's.
    if text.starts_with("thread '<unnamed>' ") {
        return false;
    }
    ["Running ", "test_", "thread '", "stack backtrace:", "at /", "Assertion passed: "]
        .iter()
        .any(|head| text.starts_with(head))
        || frame.len() < text.len() && frame.starts_with(": ") && frame.contains("::")
}

fn is_wanted(line: &str) -> bool {
    let words = words(line);
    // `crashed, rolled back as required`
    let as_wanted = |pair: &[Word<'_>]| {
        pair[0].text == "as" && listed("required intended wanted planned", &pair[1].text)
            || pair[0].text == "on" && pair[1].text == "purpose"
    };
    if words.windows(2).any(as_wanted) {
        return true;
    }
    // `TypeError: Expected a function`
    let misses = |next: Option<&Word<'_>>| next.is_some_and(|next| listed("a an", &next.text));
    words.iter().enumerate().any(|(at, word)| {
        listed(WANTED, &word.text) && !(word.text == "expected" && misses(words.get(at + 1)))
    })
}

/// `pc=0x08001234 lr=0x0800111f`, `CFSR: 0x00008200`.
fn dumps_fault(text: &str) -> bool {
    let words = words(text);
    let (mut counter, mut beside) = (false, false);
    for (name, value) in words.iter().zip(words.iter().skip(1)) {
        let (name, gap) = (name.text.as_str(), value.before.trim());
        let digits = value.text.strip_prefix("0x").unwrap_or(&value.text);
        let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        let long = digits.len() >= 8 || value.text.starts_with("0x") && digits.len() >= 4;
        if !hex || !long || !matches!(gap, "" | ":" | "=" | "(" | "): " | "):" | "->") {
            continue;
        }
        if listed(FAULT_REGISTERS, name) && !is_zero(&value.text) {
            return true;
        }
        counter |= listed(COUNTERS, name);
        beside |= listed(BESIDE, name);
    }
    counter && beside
}

#[cfg(test)]
mod tests {
    use super::super::candidate_lines::candidate;
    use super::*;

    fn lines(kind: &str) -> Vec<String> {
        let table: toml::Table = include_str!("suspicion_lines.toml").parse().unwrap();
        let lines = table[kind].as_array().unwrap().iter();
        lines.map(|line| line.as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn evidence_of_a_crash_is_found() {
        let crash = lines("evidence");
        let missed: Vec<_> = crash.iter().filter(|line| !tells_crash(line)).collect();
        assert!(missed.is_empty(), "{missed:#?}");
        let skipped: Vec<_> = crash.iter().filter(|l| candidate(l.as_bytes()).is_none()).collect();
        assert!(skipped.is_empty(), "not searched: {skipped:#?}");
    }

    #[test]
    fn lines_that_look_like_a_crash_are_searched() {
        let all = [lines("crash"), lines("evidence"), lines("harmless")].concat();
        let skipped: Vec<_> = all
            .iter()
            .filter(|line| tells_alarm(line) && alarm_candidate(line.as_bytes()).is_none())
            .collect();
        assert!(skipped.is_empty(), "not searched: {skipped:#?}");
        let harmless = lines("harmless");
        let wrong: Vec<_> = harmless.iter().filter(|line| tells_alarm(line)).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(!tells_alarm("Assertion passed: (2=2) == (2=2), file AUnit.ino, line 12."));
    }

    #[test]
    fn what_tests_print_is_no_evidence() {
        let harmless = lines("no_evidence").into_iter().chain(lines("harmless"));
        let wrong: Vec<_> = harmless.filter(|line| tells_crash(line)).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
