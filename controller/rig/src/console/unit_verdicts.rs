//! Tells whether a line is a failed verdict on a unit under test: of a production line, a soak test or
//! a test of memory. Pure.
//!
//! # Design
//! These lines name what failed and have no joint in front of the verdict, so each pattern is bound to
//! the whole message and to words that a log has rarely. Counts of `bad` blocks are no failure of a
//! flash, so a count of bad ones needs a word for repetitions or the name of a test. A line that goes
//! on in another way (`retrying`) is none.

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use super::result_rows::goes_on;
use super::scan::searched_once;

const PATTERNS: &[&str] = &[
    r"^[\w./+-]+(?: [\w./+-]+){0,3} ?(?::|=>|->|\.{2,}) ?(?i-u:did not pass)[.!]*$",
    // A unit and its test
    r"^(?:[\w#./-]+ ){1,4}FAILED (?:[A-Z]+ ){0,3}(?:TEST|TESTS|CHECK|INSPECTION)[.!]*$",
    r"(?i-u)^(?:unit|board|device|module|dut|uut)\b[ \w#./-]* failed (?:[\w-]+ ){0,3}(?:test|tests|inspection)[.!]*$",
    r"(?i-u)^\*{2,} ?(?:defective|faulty|rejected) (?:unit|board|device|module|part|dut|uut) ?\*{2,}$",
    r"(?i-u)^(?:unit|board|module|dut|uut)(?: [\w#-]+)?(?: is|:) (?:defective|faulty|rejected)[.!]*$",
    // In order and not in order, in German
    r"^[^:]{1,80}(?: +| ?(?:[:|]|=>|->|\.{2,}) ?)(?:[nN]\. ?[iI]\. ?O\.?|NIO)(?: ?[(\[].*)?[.!]*$",
    r"^\W*(?:[nN]\. ?[iI]\. ?O\.?|NIO)\W*$",
    // Memory
    r"^(?:[\w./+-]+ ){1,3}BAD (?:at|AT|@) ?(?:0x)?[0-9A-Fa-f]{3,}\b",
    r"(?i-u)\btest ?: mismatch at (?:0x)?[0-9a-f]+\b.*\b(?:read|got|expected|wrote)\b",
    r"\b(?:[AD]|DQ|bit|line|pin|data|addr\w*) ?\d+ (?:is |are )?(?i-u:stuck (?:at|low|high))\b",
    r"(?i-u)\b(?:compar|verif|check|read ?back|test)\w*\b.* 0*[1-9]\d* (?:bytes?|words?|bits?|samples?|blocks?|pixels?) differ(?:s|ed)?\b",
    r"(?i-u)\b(?:digest|hash|checksum|crc\d*|signature|sha-?\d+|md5) (?:does not|do not|did not|doesn't|don't) match[.!]*$",
    // What stands behind an arrow, and beside a limit
    r"(?i-u)<[-=]+ *(?:mismatch|error|wrong|fail(?:ed|ure)?|bad|bug)\b[.!]*$",
    r"\d.* EXCEEDED[.!]*$",
    r"(?i-u)[,;:] (?:self[ -]?)?tests? (?:was |were )?aborted[.!]*$",
    r"^\S+ \S+ differ: (?:char|byte) \d+, line \d+$",
    r"(?i-u)\bno more (?:attempts|retries|tries)(?: left)?[.!]*$",
    // Repetitions
    r"(?i-u)^(?:tally|totals?|results?|summary|tests?)\b.*\bgood[ =:]+\d+[,;/ ]+bad[ =:]+0*[1-9]\d*\b",
    r"(?i-u)^(?:[\w-]+(?: [\w-]+)?: ?)?\d+ (?:cycles|iterations|loops|rounds|runs|transfers|transactions|tests|units|boards)[,;] ?\d+ (?:good|ok|passed)[,;] ?0*[1-9]\d* bad[.!]*$",
    r"(?i-u)^(?:[\w-]+ )?(?:soak|stress|burn-?in|\w*test): ?\d+ (?:good|ok|passed)[,;] ?0*[1-9]\d* bad[.!]*$",
    r"(?i-u)^(?:soak|stress|burn-?in|endurance|ag(?:e)?ing)(?:[ _-]?test)?(?: (?:end|ended|done|finished|complete|completed|result|summary))?: ?(?:errors?|failures|mismatches) ?[=:] ?0*[1-9]\d*[.!]*$",
    // Lists and properties
    r"(?i-u)^(?:[\w-]+: ?)?all_(?:tests_)?(?:passed|pass|ok|good) ?[=:] ?(?:false|no|0)$",
    r#"(?i-u)^(?:[\w-]+: ?)?(?:failed|failing|failures)(?:[ _](?:tests?|cases|checks|suites))? ?[=:] ?[\[{] ?["']?[a-z_]"#,
    r"^FAIL [a-z][\w.-]*(?: [a-z][\w.-]*){1,2}$",
];

/// Text of which one stands in each such line, unless a word of results does.
pub(super) const HINTS: &str = r"\bdiffer: |no more (?:attempt|retr|tries)|\bstuck (?:at|low|high)|[0-9] (?:byte|word|bit|sample|block|pixel)s? differ|not match|n't match|<[-=]+ *(?:bad|bug)|EXCEEDED|\bgood[ =:]+[0-9]|\bn\. ?i\. ?o\b|\bnio\b|defective|faulty|rejected|\ball_(?:tests_)?(?:ok|good)|[0-9] bad\b";

pub(super) static VERDICTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let ascii = syntax::Config::new().unicode(false).utf8(false);
    Regex::builder().configure(searched_once()).syntax(ascii).build_many(PATTERNS).ok()
});

/// `FAIL to mount`, `FAIL safe mode`: no name stands behind the word.
fn is_sentence(text: &str) -> bool {
    const OTHERS: [&str; 14] = [
        "to", "in", "at", "on", "with", "after", "because", "while", "for", "by", "from", "of",
        "safe", "mode",
    ];
    text.strip_prefix("FAIL ")
        .and_then(|rest| rest.split(' ').next())
        .is_some_and(|word| OTHERS.contains(&word))
}

/// Tells whether a text is such a verdict.
pub(super) fn is_unit_verdict(text: &str) -> bool {
    let text = text.trim_ascii();
    VERDICTS.as_ref().is_some_and(|patterns| patterns.is_match(text))
        && (!goes_on(text) || text.contains("read"))
        && !is_sentence(text)
}

/// Tells whether a text says that the list of what failed is empty: `failed tests: []`, `Failed: -`.
pub(super) fn lists_none(text: &str) -> bool {
    static EMPTY: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let ascii = syntax::Config::new().unicode(false).utf8(false);
        // `FAILED: -` is a verdict.
        let list = r"^(?:(?:names|list) of |all )?[Ff](?:ailed|ailing|ailures)(?:[ _](?:tests?|testcases|cases|checks|suites|units))?";
        let empty = r#" ?[:=] ?(?:\[ ?\]|\{ ?\}|\( ?\)|-+|""|''|n/a|(?i-u:none|nil|null))[.,]?$"#;
        Regex::builder()
            .configure(searched_once())
            .syntax(ascii)
            .build(&format!("{list}{empty}"))
            .ok()
    });
    EMPTY.as_ref().is_some_and(|empty| empty.is_match(text.trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::super::candidate_lines::candidate;
    use super::super::{counts_failure, tells_failure};

    #[test]
    fn verdicts_on_units_are_failures() {
        for line in [
            "adc: did not pass",
            "adc ..... did not pass.",
            "UNIT 0042 FAILED PRODUCTION TEST",
            "04 Bremsrelais ................ zieht nicht an   n.i.O.",
            "Data bus walk ................. D13 stuck at 0",
            "round 3: erase ok, compare: 2 bytes differ at 0x0001F0A0 (wrote 5A read 7A)",
            "dl: digest does not match!",
            "/dev/mtd2 fw.bin differ: char 131073, line 412",
            "ota: no more attempts",
            "pop expect 3 got 7  <-- MISMATCH",
            "144.00     45.3           43.5   -1.8   EXCEEDED",
            "accel: read failed, device not responding, test aborted",
            "tally: run 8, good 6, bad 2",
            "SN 17/0042 FAILED FINAL INSPECTION!",
            "board #42 failed the production test",
            "*** DEFECTIVE UNIT ***",
            "** Faulty board **",
            "DUT 7 is defective",
            "FLASH .......... n.i.O.",
            "FLASH: N.I.O.",
            "Flash   n. i. O.",
            "Sensor: NIO (3.1 V)",
            "n.i.O.",
            "RAM BAD at 0x20001000",
            "SRAM bank 2 BAD @ 20001000",
            "RAM test: mismatch at 0x20001000: wrote 0x55555555 read 0x55555554",
            "soak: 1000 cycles, 999 good, 1 bad",
            "1000 transfers, 999 ok, 1 bad",
            "flash soak: 999 good, 1 bad",
            "soak end: errors=1",
            "burn-in finished: failures: 3",
            "all_passed=false",
            "post: all_tests_ok: no",
            "failing: [adc, spi]",
            "failed: ['adc']",
            "FAIL ring done",
            "FAIL sensor self test",
            "INCORRECT RESULT: T{ 1 2 + -> 4 }T",
            "WRONG NUMBER OF RESULTS: T{ 1 2 + -> 4 3 }T",
            "WRONG NUMBER OF FLOATING POINT RESULTS: T{ 1e -> }T",
            "UVM_ERROR ring.sv(12) @ 120: sb [CMP] expected 1 got 2",
            "# UVM_ERROR ring.sv(12) @ 120: sb [CMP] expected 1, if it was 2",
            "UVM_FATAL @ 0: reporter [NOCLK] no clock",
            "UVM_ERROR :    1",
            "UVM_FATAL:1",
        ] {
            assert!(tells_failure(line), "{line}");
            assert!(candidate(line.as_bytes()).is_some(), "not searched: {line}");
        }
    }

    #[test]
    fn logs_and_good_units_are_none() {
        for line in [
            "the first frame did not pass the filter",
            "link: did not pass, retrying",
            "UNIT 0042 PASSED PRODUCTION TEST (0 retries)",
            "device 3 failed to enumerate",
            "unit 3 failed the self test, retry 2",
            "FLASH .......... i.O.",
            "i.O.",
            "nio: 3 frames",
            "RAM GOOD",
            "BAD block at 0x20000",
            "nand: BAD block at 0x20000",
            "RAM test 0x20000000..0x20010000: no mismatch",
            "nand: 1024 blocks, 1023 good, 1 bad",
            "soak: 1000 cycles, 1000 good, 0 bad",
            "soak end: errors=0",
            "uart end: errors=1",
            "all_passed=true",
            "failing: []",
            "failed tests: []",
            "failed tests: none",
            "failed_tests = {}",
            "Failed: -",
            "Failures: n/a",
            "failed: [ ]",
            "FAIL to mount sd",
            "FAIL safe mode on",
            "CORRECT RESULT: 3",
            "UVM_ERROR :    0",
            "UVM_FATAL :    0",
            "UVM_WARNING ring.sv(12) @ 120: sb [CMP] late",
        ] {
            assert!(!tells_failure(line) && !counts_failure(line), "{line}");
        }
        // A verdict is no list.
        for line in ["FAILED: -", "2 tests failed: []", "failed tests: [adc]"] {
            assert!(tells_failure(line), "{line}");
        }
    }
}
