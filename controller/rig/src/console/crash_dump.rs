//! Tells which crash headlines belong to one dump. Pure.
//!
//! # Design
//! A system prints several headlines for one crash: the exception, the error, the panic, and registers
//! between them. A plan that expects one of these expects the crash, so the others are no second one.
//! A dump goes on as long as nothing but lines of a dump stands between two headlines: any other line
//! was printed by a firmware that went on. A signature that comes again begins another crash.

use std::ops::Range;
use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::log_prefix::texts;
use super::readable::readable;
use super::scan::searched_once;
use super::suspicion::is_suspicious;

/// Most bytes between two headlines of a dump: registers, a stack and a list of threads.
pub(crate) const DUMP_REACH: u64 = 4096;

/// Most bytes in front of a headline on its line: a time, a level and a tag.
const MOST_IN_FRONT: usize = 256;

/// Words of lines in a dump that hold no number and name no fault.
const WORDS: &[&str] = &[
    "backtrace",
    "trace",
    "registers",
    "register",
    "thread",
    "task",
    "isr",
    "cpu",
    "code",
    "context",
    "privileged",
    "psp",
    "msp",
    "modules",
    "hardware",
    "reconstruct",
    "gdb",
    "halting",
    "rebooting",
    "misc",
];

/// The headlines of one dump.
#[derive(Debug, Clone)]
pub(crate) struct CrashDump {
    /// Where the last headline ends.
    end: u64,
    /// Where the first one begins.
    start: u64,
    /// The signatures of the headlines.
    by: Vec<String>,
}

impl CrashDump {
    /// Begins with a headline of a signature.
    pub(crate) fn new(by: &str, headline: Range<u64>) -> Self {
        Self { end: headline.end, start: headline.start, by: vec![by.to_owned()] }
    }

    /// Returns where the first headline begins.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Returns what stands between the dump and a headline that may belong to it; nothing if it cannot.
    pub(crate) fn between(&self, by: &str, start: u64) -> Option<Range<u64>> {
        let near = start.saturating_sub(self.end) <= DUMP_REACH;
        (near && !self.by.iter().any(|known| known == by)).then_some(self.end..start.max(self.end))
    }

    /// Adds a headline if nothing else than lines of a dump stands in front of it; tells whether it
    /// was added.
    pub(crate) fn goes_on(&mut self, by: &str, headline: Range<u64>, between: &[u8]) -> bool {
        // The rest of the last headline's line, and what stands in front of this one on its line.
        let lines = between.split(|byte| matches!(byte, b'\n' | b'\r'));
        let lines: Vec<&[u8]> = lines.skip(1).collect();
        let front = lines.last().is_some_and(|front| front.len() > MOST_IN_FRONT);
        let whole = &lines[..lines.len().saturating_sub(1)];
        let foreign = whole.iter().any(|line| !is_dump_line(&readable(line)));
        if foreign || front {
            return false;
        }
        self.end = self.end.max(headline.end);
        self.by.push(by.to_owned());
        true
    }
}

/// Tells whether a line belongs to the dump of a crash: it is empty or indented, holds an address,
/// looks like a crash, or has a word of dumps.
fn is_dump_line(line: &str) -> bool {
    let text = line.trim_ascii();
    // An address in a function, as `foo+0x10/0x20`, too.
    let address = text.contains("+0x");
    if text.is_empty() || address || line.starts_with([' ', '\t']) || is_suspicious(text) {
        return true;
    }
    let mut words =
        text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.any(|word| is_address(word) || WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// Tells of a word whether it is an address, or the content of a register.
fn is_address(word: &str) -> bool {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let hex = digits.len() >= 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    hex && (digits.len() < word.len() || digits.len() >= 8)
}

/// Names of registers, and the values that they hold in a dump: `r0/a1:  0x00000003`, `s[ 0]: 0x00000001`.
const REGISTERS: &str = concat!(
    r"(?i)^(?:Faulting instruction address \(r15/pc\): 0x[0-9a-f]{8}",
    r"|(?:(?:[a-z]{1,2}\[? ?\d{1,2}\]?(?:/[a-z]{1,2}\d{0,2})?|x?psr|[cs]psr|sp|lr|pc|ra|gp|tp|fp|ip|r?cfsr|hfsr",
    r"|m(?:epc|cause|tval|status)|exc_return|fpscr|basepri|control)[:=] *(?:0x)?[0-9a-f]{8}[, ]*)+)$",
);

static DUMPED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::builder().configure(searched_once()).build(REGISTERS).ok());

/// Returns how many bytes at the end of a text, which stands in front of a headline, are lines with nothing
/// but registers: some systems print them first. What stands in front of the headline on its line
/// belongs to them.
pub(crate) fn registers_in_front(text: &[u8]) -> usize {
    let mut lines = text.rsplit(|byte| *byte == b'\n');
    let Some(front) = lines.next().filter(|front| front.len() <= MOST_IN_FRONT) else { return 0 };
    let is_dump = |line: &&[u8]| {
        let line = readable(line);
        let dumped =
            |text: &str| DUMPED.as_ref().is_some_and(|dump| dump.is_match(text.trim_ascii()));
        texts(&line, true).any(dumped)
    };
    lines.take_while(is_dump).fold(front.len(), |len, line| len + line.len() + 1)
}

/// Tells whether a headline says that the test did not expect the crash.
pub(crate) fn tells_unexpected(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["unexpected", "not expecting", ", expecting"].iter().any(|words| line.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goes_on(by: &str, between: &str) -> bool {
        let mut dump = CrashDump::new("a", 0..10);
        let start = 10 + between.len() as u64;
        let between_at = dump.between(by, start);
        let known = between_at.is_some_and(|range| range == (10..start));
        known && dump.goes_on(by, start..start + 5, between.as_bytes())
    }

    #[test]
    fn a_dump_goes_on_until_the_firmware_prints_another_line() {
        for (by, between, wanted) in [
            ("b", "\n", true),
            ("b", ": of its line\r\n", true),
            ("b", "\nr0/a1:  0x00000003  r1/a2:  0x00000000\n\n", true),
            ("b", "\n[    1.0] Call trace:\n  foo+0x10\n[    1.0] Code: d503\n[    1.0] ", true),
            ("b", "\nActive thread: 1 \"main\"\n", true),
            ("b", "\n[ 1.0] pc : foo+0x0/0x10\n[ 1.0]  bar+0x4/0x8\n[ 1.0] ", true),
            (
                "b",
                "\n\nFaultType: HardFault\n\nContext:\nR0   : 00000000\nMode     : Thread\nPriv     : Privileged\nStack    : PSP\n\n-- MbedOS Fault Handler --\n\n",
                true,
            ),
            ("a", "\n", false),
            ("b", "\nready\n", false),
            ("b", "\nr0: 0x00000003\nstarting test 2\n", false),
        ] {
            assert_eq!(goes_on(by, between), wanted, "{between:?}");
        }
        assert!(!goes_on("b", &format!("\n{}", " \n".repeat(2048))));
    }

    #[test]
    fn registers_may_stand_in_front_of_a_headline() {
        for (text, registers) in [
            (
                "START - t\r\nE: r0/a1:  0x00000003\r\nE: Faulting instruction address (r15/pc): 0x10000c3a\r\nE: ",
                80,
            ),
            (
                "t\n[00:00:00.010,000] <err> os:  xpsr:  0x61000000\n<err> os: s[ 0]: 0x00000001 s[ 1]: 0x00000002\n",
                94,
            ),
            ("fault\nE: ", 3),
            ("ring buffer at 0x20000100 corrupt: FAIL\n", 0),
            ("stored: 0x5a3c9911 computed: 0x5a3c9912\n", 0),
            ("Oops: bad heap chunk at 0x20001234\n", 0),
            ("[00001234] test flash: FAILED\n", 0),
            ("pc: 0x10000c3a in foo\n", 0),
            ("", 0),
            ("\n", 0),
        ] {
            assert_eq!(registers_in_front(text.as_bytes()), registers, "{text:?}");
        }
        assert_eq!(registers_in_front(&[b'x'; MOST_IN_FRONT + 1]), 0);
    }
}
