//! Tells whether a line says that a test failed, in a format that no grammar knows. Pure.
//!
//! # Design
//! Crash words are searched for behind the end of a report only. A failed result counts wherever it
//! stands, so ordinary log lines (`retry failed, trying again`) must not look like one. Three
//! shapes are results:
//!
//! - **a count of failures** above zero: `3 failed`, `Failures: 1`, `FAILED 1 of 5`;
//! - **a share of passes** below the whole: `4 of 5 tests passed`;
//! - **a verdict word** in the place of a verdict: alone, in brackets, behind a colon, at the start
//!   or the end of its line, as the value of `result`.
//!
//! `failed_result_lines.toml` holds the lines that the words were chosen by.

use super::counted_failures::counts_only_failures;
use super::error_codes::is_failed_code;
use super::fallback_boot::tells_fallback;
use super::foreign_verdict::is_foreign_verdict;
use super::framework_lines::is_framework_failure;
use super::log_prefix::texts;
use super::measured_limits::misses_limit;
use super::odd_verdicts::is_odd_in_line;
use super::required_value::misses_requirement;
use super::result_rows::is_failed_row;
use super::runner_ends::ends_runner_badly;
use super::signatures::broken_off;
use super::structured_counts::{is_failed_count, labelled_failures};
use super::test_subject::finds_fault;
use super::unit_verdicts::{is_unit_verdict, lists_none};
use super::verdict_phrases::is_failed_phrase;
use super::words::{Word, listed, names_test, number, words};

/// Words that a test report has and a log has rarely.
const ABOUT: &str = "\
    test tests testing testcase testcases case cases suite suites check checks assertion \
    assertions assert asserts spec specs example examples scenario scenarios subtest subtests \
    pass passed passes passing succeeded successes result results summary tally verdict selftest \
    unittest unittests tested";

/// Words that name failures where they are counted.
pub(super) const FAILURES: &str = "\
    fail failed fails failure failures failing nok ko unsuccessful test_failed tests_failed \
    test_failures failed_tests failing_tests";

/// Words that name failures where they are counted beside words of a test report.
pub(super) const ERRORS: &str =
    "error errors mismatch mismatches crashed crashes crashing broken aborted hung timeouts timed";

/// Words between a count and what it counts: `2 unit tests have failed`.
pub(super) const COUNTED: &str = "\
    test tests testcase testcases case cases check checks assertion assertions assert asserts \
    suite suites unit subtest subtests spec specs example examples scenario scenarios of the in \
    total selected unexpected have has were was are is s";

/// Words of a log that tries again.
pub(super) const RETRIES: &str =
    "retry retries retrying again attempt attempts try reconnect reconnecting";

/// Words of a verdict.
const VERDICTS: &str = "fail failed fails failure failures nok";

/// Words that leave a line of a verdict one: `SOME TESTS FAILED`, `Test Run Failed.`.
const FRAME: &str = "\
    all some the a one run runs overall status self unit final end of total module has have was \
    is are at least done finished ended completed with";

/// Words in front of a verdict that make it a wish, a condition or a denial.
const UNREAL: &str = "\
    expected expect expects expecting known simulated simulate injected inject should if whether \
    would when on no not never without zero may can could will to must or any allow allowed";

/// Words behind a verdict, in brackets or behind `#`, that take it back.
const EXCUSES: &str = "todo skip skipped xfail expected ignored known allowed simulated wanted";

/// Words behind a verdict that make it the predicate of a sentence: `FAILED to open`.
const SENTENCE: &str = "\
    to in at on with after because while for by from of reading writing opening trying and but \
    as due";

/// Words in front of the object of an operation: `Connecting to AP`.
const OBJECTS: &str = "to with from of on at in for into";

/// Names of things that end as participles do.
const NOUNS: &str = "ring string timing wiring mapping paging ping routing scheduling";

/// Words that name a test in front of its verdict.
const SUBJECTS: &str = "\
    test tests testcase testcases case cases suite suites subtest check checks selftest unittest \
    bist spec scenario";

/// Words that are the subject of a verdict only at the start of a line.
const FIRST_SUBJECTS: &str = "verification verify validation post diagnostics calibration";

/// Words between a verdict and its details: `failed at 0x20001000`, `FAILED rc=-5`.
const DETAILS: &str = "\
    at with rc err error errno code line status ret retval reason result due because after in on";

/// Words of an end that has come: `test run stopped at first failure`.
const ENDED: &str = "stopped halted ended terminated aborted failed";

/// Words behind a verdict that point to its details: `FAIL; see log`.
const POINTERS: &str = "see check read look log logs details detail refer cf";

/// Words of a log that goes on in another way: `check failed, using defaults`.
const RECOVERY: &str = "\
    using use default defaults restoring restored formatting continuing fallback falling skipping \
    ignoring expected";

/// Words that a verdict word qualifies: `FAILURE MODE: open-drain`.
const QUALIFIED: &str = "\
    mode modes path paths rate rates ratio injection handler handlers handling limit limits \
    threshold led counter counters pin output safe over back soft open action policy";

/// Words that end a failed test when they are written in capitals: `test_pop: TIMEOUT`.
const STOPS: &str = "error timeout crash crashed abort aborted ng ko bad xpass hang hung";

/// Words at the start of a line that announce a test.
const STARTS: &str = "run running start starting starts begin beginning entering enter executing";

/// Words of which a pass consists.
pub(super) const PASSES: &str = "pass passed passes passing succeeded successful successfully";

/// Keys whose value is a verdict.
const KEYS: &str = "result verdict outcome conclusion";

/// Keys whose value is a verdict in a line about tests.
const STATES: &str = "status state";

/// Marks of a failed test, at the start of a line.
const MARKS: [char; 5] = ['\u{2717}', '\u{2718}', '\u{2715}', '\u{2716}', '\u{274c}'];

/// Most words of a line that ends with a verdict in capitals and has no word about tests.
const SHORT: usize = 5;

/// Text of which one stands in each line with a failed result that is neither of a framework nor a row.
pub(super) const HINTS: &str = r"fail|not ok|not pass|error|mismatch|wrong|incorrect|\bn?ko\b|\bnok\b|unsucc|crash|broken|pass|succe|time(?:d )?out|abort|tbrok|score|\d ok\b|\berrs? ?[:=]|\{\{|(?-i:\bNG\b|\bBAD\b|\b[FEZ]:[^ :]*:|asserts {3}|tests {3}|suites {3})|hang|hung|xpass|\xe2\x9c[\x95-\x98]|\xe2\x9d\x8c|\x00|\x08|\xef[\xbc\xbd]|\xc2\xa0";

/// Tells whether a readable line says that a test failed.
pub(crate) fn tells_failure(line: &str) -> bool {
    if is_log_of_go(line) || texts(line, true).any(|text| lists_none(text) || is_hex_dump(text)) {
        return false;
    }
    if let Some(failures) = texts(line, true).find_map(labelled_failures) {
        return failures > 0;
    }
    texts(line, true).chain(broken_off(line, "FAIL")).any(|text| {
        let report = Report::of(text);
        is_framework_failure(report.text)
            || is_failed_row(report.text)
            || is_failed_phrase(report.text, is_whole(text, line))
            || is_unit_verdict(report.text)
            || is_failed_code(report.text)
            || is_failed_count(report.text, is_whole(text, line))
            || ends_runner_badly(report.text)
            || finds_fault(report.text)
            || is_foreign_verdict(report.text)
            || is_odd_in_line(report.text)
            || misses_requirement(report.text)
            || misses_limit(report.text)
            || tells_fallback(report.text)
            || counts_only_failures(&report.words, is_whole(text, line))
            || report.counts()
            || report.says_not_ok()
            || report.rules_failed()
            || report.fails_one_of_several()
            || report.lists_failed()
    })
}

/// Tells whether a readable line says by a count that a test failed.
pub(crate) fn counts_failure(line: &str) -> bool {
    let counts = |text| {
        let report = Report::of(text);
        report.counts() || counts_only_failures(&report.words, is_whole(text, line))
    };
    if let Some(failures) = texts(line, true).find_map(labelled_failures) {
        return failures > 0;
    }
    !is_log_of_go(line) && texts(line, true).any(counts)
}

/// Tells whether nothing stands in front of a text in its line.
fn is_whole(text: &str, line: &str) -> bool {
    text.trim_ascii().len() == line.trim_ascii().len()
}

/// `00000010  46 41 49 4c 00 01 02 03  |FAIL....|`: a row of a dump of memory.
pub(super) fn is_hex_dump(text: &str) -> bool {
    let is_hex = |word: &str| word.bytes().all(|b| b.is_ascii_hexdigit());
    let Some((front, shown)) = text.trim_ascii().strip_suffix('|').and_then(|t| t.split_once('|'))
    else {
        return false;
    };
    let mut words = front.split_ascii_whitespace();
    let address = words.next().unwrap_or_default().trim_end_matches(':');
    let address = address.strip_prefix("0x").unwrap_or(address);
    let words: Vec<&str> = words.collect();
    let digits = words.concat();
    let printed = shown.chars().zip(digits.as_bytes().chunks(2)).all(|(c, byte)| {
        let byte = std::str::from_utf8(byte).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok());
        c == '.' || byte.is_some_and(|byte| char::from(byte) == c)
    });
    (4..=16).contains(&address.len())
        && is_hex(address)
        && words.iter().all(|word| word.len() == 2 && is_hex(word))
        && !words.is_empty()
        && shown.chars().count() == words.len()
        && printed
}

/// `    ring_test.go:12: text`: what a test of Go logs. Whether it failed says its result.
fn is_log_of_go(line: &str) -> bool {
    let file = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'/' | b'-');
    line.split_once("_test.go:").is_some_and(|(name, place)| {
        let text = place.split_once(": ").map_or("", |(_, text)| text);
        name.trim_ascii_start().bytes().all(file) && !text.starts_with("FAIL")
    })
}

/// Tells whether a text names a failure, in whatever place: who spells it out knows of it.
pub(crate) fn names_failure(text: &str) -> bool {
    let word = |word: &Word<'_>| {
        let lists = [FAILURES, ERRORS, VERDICTS, STOPS];
        let plain = matches!(word.text.as_str(), "not" | "assert" | "assertion");
        plain || lists.iter().any(|list| listed(list, &word.text))
    };
    tells_failure(text) || words(text).iter().any(word)
}

/// Tells whether the word at an index is said of none: `No unit tests have failed.`
pub(super) fn is_of_none(words: &[Word<'_>], at: usize) -> bool {
    let counted = |word: &&Word<'_>| listed(COUNTED, &word.text) || number(word).is_some();
    let whole = words[..at].iter().rev().find(|word| !counted(word));
    whole.is_some_and(|word| matches!(word.text.as_str(), "no" | "none"))
}

/// Tells whether a word belongs to test reports: one of them, or the name of a test.
pub(super) fn is_about(word: &Word<'_>) -> bool {
    listed(ABOUT, &word.text) || word.text.starts_with("test_") || names_test(&word.text)
}

fn is_hex(text: &str) -> bool {
    text.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// A line, behind what loggers put in front, that may report a result.
pub(super) struct Report<'a> {
    text: &'a str,
    pub(super) words: Vec<Word<'a>>,
    /// Whether it has a word about tests.
    pub(super) about: bool,
}

impl<'a> Report<'a> {
    fn of(text: &'a str) -> Self {
        let text = text.trim_ascii();
        let words = words(text);
        Self { text, about: words.iter().any(is_about), words }
    }

    pub(super) fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| word.text.as_str())
    }

    /// Tells whether words stand in one part of a sentence, from an index to another one.
    pub(super) fn flows(&self, from: usize, to: usize) -> bool {
        self.words[from + 1..=to].iter().all(|word| {
            !word.before.contains(['.', ',', ';', ':', '!', '=']) && !word.before.contains(" -")
        })
    }

    /// Tells whether a word about tests stands in the line, other than the counted one itself.
    pub(super) fn is_about_beside(&self, at: usize) -> bool {
        self.about && self.words.iter().enumerate().any(|(index, w)| index != at && is_about(w))
    }

    /// `not ok 3 - name`, `tp2: not ok`, `3 tests did not pass`.
    fn says_not_ok(&self) -> bool {
        (0..self.words.len()).any(|at| {
            if self.word(at) != "not" || self.is_excused(at) {
                return false;
            }
            let next = self.words.get(at + 1).filter(|next| next.before.trim().is_empty());
            let Some(next) = next else { return false };
            // `1 of 12 not ok`
            let counted = at > 0
                && number(&self.words[at - 1]).is_some()
                && number(&self.words[self.part(at - 1)]) != Some(0)
                && self.words[at].before.trim().is_empty()
                && at + 2 == self.words.len()
                && self.about;
            // `tp2: not ok`, `tp2 [NOT OK]`
            let joint = self.words[at].before.trim_ascii_end();
            let judged = (1..=2).contains(&at)
                && at + 2 == self.words.len()
                && matches!(next.after.trim_ascii(), "" | "]" | "!" | ".")
                && (joint.ends_with([':', '['])
                    || joint.ends_with("..")
                    || joint.ends_with(']') && next.capital);
            let point = next.text == "ok"
                && (counted
                    || judged
                    || at == 0 && next.after.trim_start().is_empty() && at + 2 == self.words.len()
                    || at == 0 && next.after.trim_start().starts_with(['-', ':'])
                    || self
                        .words
                        .get(at + 2)
                        .is_some_and(|w| number(w).is_some() && next.after.trim().is_empty()));
            let real =
                !(1..=2.min(at)).any(|back| listed("should must may if", self.word(at - back)));
            point || listed(PASSES, &next.text) && self.is_about_beside(at + 1) && real
        })
    }

    /// A verdict word in the place of a verdict.
    fn rules_failed(&self) -> bool {
        let marked = self.text.starts_with(MARKS) || self.text.ends_with(MARKS);
        let heading = self.text.ends_with(':');
        if marked && !heading && !self.words.is_empty() {
            return !self.is_excused(0);
        }
        let starts = self.words.first().is_some_and(|first| listed(STARTS, &first.text));
        !starts
            && !self.ends_well()
            && (self.is_stopped()
                || self.ends_badly()
                || (0..self.words.len()).any(|at| self.is_verdict(at)))
    }

    /// `tp2 [NG]`, `tp2 : NG`, `tp2 [TIMEOUT]`, `tp2: ERROR`.
    fn ends_badly(&self) -> bool {
        let Some((last, names)) = self.words.split_last() else { return false };
        let tag = last.before.trim_ascii_end().ends_with('[') && last.after.trim_ascii() == "]";
        let value = last.before.trim_ascii() == ":" && last.after.is_empty();
        let alone = names.len() == 1 && last.text == "error";
        let named = value && (alone || listed("ng ko bad", &last.text));
        let judged = tag && listed(STOPS, &last.text) || named;
        !names.is_empty() && last.capital && judged
    }

    /// `RAM pass, FLASH fail, EEPROM pass`, `RAM:PASS FLASH:FAIL`: a failed verdict beside a passed
    /// one of the same form.
    fn fails_one_of_several(&self) -> bool {
        const PAIRS: [(&str, &str); 4] =
            [("pass", "fail"), ("passed", "failed"), ("ok", "fail"), ("ok", "failed")];
        let verdict = |at: usize| {
            let word = &self.words[at];
            let beside = [at - 1, at + 1];
            let counted = beside
                .iter()
                .any(|&near| self.words.get(near).is_some_and(|w| number(w).is_some()));
            let ends = word.after.is_empty() || word.after.starts_with([' ', ',', ';', '|', '/']);
            ends && !counted
        };
        let alike = |failed: usize, passed: usize| {
            let (fail, pass) = (&self.words[failed], &self.words[passed]);
            PAIRS.contains(&(pass.text.as_str(), fail.text.as_str()))
                && failed.abs_diff(passed) > 1
                && fail.capital == pass.capital
                && (fail.capital || pass.text != "ok")
                && fail.before == pass.before
        };
        (1..self.words.len()).any(|failed| {
            let passed = || (1..self.words.len()).any(|p| alike(failed, p) && verdict(p));
            listed("fail failed", &self.words[failed].text)
                && verdict(failed)
                && !self.is_part_of_name(failed)
                && !self.is_unreal(failed)
                && passed()
        })
    }

    /// The line ends with the verdict of a pass: `test_fail_path ... ok`.
    fn ends_well(&self) -> bool {
        self.words.last().is_some_and(|last| {
            listed("ok okay pass passed xfail skip skipped", &last.text)
                && !last.before.contains(['=', '<', '(', '/', '|'])
        })
    }

    fn is_verdict(&self, at: usize) -> bool {
        let word = &self.words[at];
        if matches!(word.text.as_str(), "testfailed" | "tfail" | "tbrok") {
            return true;
        }
        if !listed(VERDICTS, &word.text) || self.is_part_of_name(at) || self.is_unreal(at) {
            return false;
        }
        let before = word.before.trim_ascii_end();
        let element = word.text == "failure" && before.ends_with('<');
        let valued = at > 0 && before.ends_with([':', '=', '"', '\'']) && {
            let key = self.word(at - 1);
            let quoted = self.words[at - 1].after.starts_with('"');
            listed(KEYS, key) || listed(STATES, key) && (self.about || quoted)
        };
        element
            || valued
            || self.is_alone(at)
            || at == 1 && before.ends_with('[') && is_tag(word.before, word.after)
            || word.capital
                && (is_tag(word.before, word.after)
                    || self.is_behind_place(at)
                        && (word.after.is_empty() || word.after.starts_with(':'))
                    || self.is_head(at)
                    || self.is_tail(at))
            || self.is_tail_of_test(at)
            || self.has_details(at)
            || self.has_measure(at)
            || before.ends_with("....") && at > 0 && at + 1 == self.words.len()
    }

    /// `tp2: FAIL (1.20 V)`, `tp2 .... FAIL 1.20 V`, `[2/2] tp2 FAILED (1.20 V)`: a verdict between
    /// what was tested and what was measured.
    fn has_measure(&self, at: usize) -> bool {
        let word = &self.words[at];
        let goes_on = |w: &Word<'_>| listed(RETRIES, &w.text) || listed(RECOVERY, &w.text);
        let Some(next) = self.words.get(at + 1).filter(|_| at > 0 && word.capital) else {
            return false;
        };
        let behind = self.words[at + 1..].iter().filter(|w| w.text != "expected");
        if behind.chain(&self.words[..at]).any(goes_on) {
            return false;
        }
        let name = self.words[at - 1].raw;
        let numbered = name.contains(|c: char| c == '_' || c.is_ascii_digit());
        let numbered = numbered && name.contains(|c: char| c.is_ascii_alphabetic());
        let before = word.before.trim_ascii();
        let named = before.is_empty() && numbered && at < SHORT;
        let joined = before.ends_with([':', '-', '.', '|', '*']);
        let measure = match word.after.trim_ascii().chars().next() {
            None => {
                let value = listed("at expected exp want got rc err code bin", &next.text);
                // `FAIL in 12 ms`
                let time = next.text == "in"
                    && self.words.get(at + 2).is_some_and(|w| number(w).is_some());
                value || time || number(next).is_some() || is_hex(&next.text)
            }
            Some(first) => matches!(first, '(' | '[' | ',' | '-' | '*' | ';'),
        };
        measure && (named || joined)
    }

    /// `FAIL`, `*** FAILED ***`, `Some tests failed.`, `Test 3 failed`.
    fn is_alone(&self, at: usize) -> bool {
        let others = || self.words.iter().enumerate().filter(|(index, _)| *index != at);
        let frame =
            |w: &Word<'_>| listed(FRAME, &w.text) || listed(ABOUT, &w.text) || number(w).is_some();
        let alone = others().all(|(_, w)| frame(w) && !listed(PASSES, &w.text));
        alone && (self.words.len() == 1 || self.words[at].capital || self.about)
    }

    /// `FAIL: name`, `FAIL name`, `FAILED! (1 of 2)`.
    fn is_head(&self, at: usize) -> bool {
        let Some(next) = self.words.get(at + 1).filter(|_| at == 0) else { return at == 0 };
        if listed(QUALIFIED, &next.text) {
            return false;
        }
        if listed(SENTENCE, &next.text) {
            return self.about;
        }
        let after = self.words[at].after;
        let name = next.raw.contains('_')
            || next.raw.bytes().any(|b| b.is_ascii_digit())
            || is_about(next)
            || self.words.len() == 2
            || next.after.trim_ascii_start().starts_with([':', '('])
            || next.after.contains("::");
        let tries = self.words.iter().any(|word| listed(RETRIES, &word.text));
        match after.trim_ascii().chars().next() {
            None => name,
            Some(',' | '.' | ';') => {
                !tries
                    && (self.about || listed(DETAILS, &next.text) || listed(POINTERS, &next.text))
            }
            Some(_) => true,
        }
    }

    /// `name: FAIL`, `name ... FAILED`, `test_name FAILED`.
    fn is_tail(&self, at: usize) -> bool {
        let before = self.words[at].before.trim_ascii_end();
        let named = || {
            let name = self.words[at - 1].raw;
            let short = self.words.len() <= SHORT && !self.says_what_is_done(at);
            short || self.about || name.contains('_')
        };
        at > 0 && at + 1 == self.words.len() && (!before.is_empty() || named())
    }

    /// `Connecting to AP FAILED`, `Upload to server FAILED`: an operation, with its participle or its
    /// object. A name of a test has neither.
    fn says_what_is_done(&self, at: usize) -> bool {
        let participle = self.word(0).len() > "ing".len() && self.word(0).ends_with("ing");
        let participle = participle && !listed(NOUNS, self.word(0)) && at > 1;
        participle || self.words[1..at].iter().any(|word| listed(OBJECTS, &word.text))
    }

    /// `test pop ... failed`, `testPop() failed`.
    fn is_tail_of_test(&self, at: usize) -> bool {
        let test =
            |w: &Word<'_>| is_about(w) && !listed(PASSES, &w.text) || w.text.starts_with("test");
        let end = at + 1 == self.words.len() || self.words[at].after.starts_with(':');
        at > 0 && end && self.words[..at].iter().any(test)
    }

    /// `test pop failed, rc -5`, `RAM check FAILED at 0x20001000`, `self test failed (rc=5)`.
    fn has_details(&self, at: usize) -> bool {
        let Some(next) = self.words.get(at + 1) else { return false };
        let goes_on = |w: &Word<'_>| listed(RETRIES, &w.text) || listed(RECOVERY, &w.text);
        let counted = at > 0 && number(&self.words[at - 1]).is_some() && number(next).is_some();
        if at == 0 || counted || self.words.iter().any(goes_on) {
            return false;
        }
        let subject = (0..at).rev().find(|&index| {
            let word = &self.words[index];
            let function = word.text.starts_with("test_") || word.text.ends_with("_test");
            function
                || listed(SUBJECTS, &word.text)
                || index == 0 && listed(FIRST_SUBJECTS, &word.text)
        });
        // `selftest: spi failed (-5)`
        let one_of =
            |subject: usize| subject == 0 && at == 2 && self.words[1].before.trim_ascii() == ":";
        let direct =
            |subject: usize| subject + 1 == at || self.flows(subject, at - 1) || one_of(subject);
        let whole =
            self.words[at].before.trim_matches([' ', '\t', ')', ']', '(', ':', '"', '\'', '.']);
        let detail = || listed(DETAILS, &next.text) || number(next).is_some() || is_hex(&next.text);
        let behind = match self.words[at].after.trim_ascii().chars().next() {
            None => detail(),
            Some(first) => matches!(first, ',' | '(' | ':' | ';' | '!' | '[' | '#' | '<' | '|'),
        };
        behind && whole.is_empty() && subject.is_some_and(direct)
    }

    /// `test_pop: ERROR`, `test pop ... TIMEOUT`, `TEST ABORTED`, `[ERROR] test_pop`,
    /// `Sleep Test ..... ERROR #5`, `test 3 timed out`.
    fn is_stopped(&self) -> bool {
        let last = self.words.len().saturating_sub(1);
        let named = |word: &Word<'_>| {
            is_about(word) && !listed(PASSES, &word.text) || word.raw.contains("test_")
        };
        (0..self.words.len()).any(|at| {
            let word = &self.words[at];
            let before = word.before.trim_ascii();
            let timed = word.text == "timed" && self.word(at + 1) == "out";
            let dots = before.contains("..");
            let stop = listed(STOPS, &word.text) && (word.capital || dots) || timed;
            let none = matches!(self.count_before(at), Some((0, _)));
            if !stop || none || self.is_part_of_name(at) || self.is_unreal(at) {
                return false;
            }
            let after = word.after.trim_ascii();
            // A level of a log, unless nothing but a test stands behind it.
            if at == 0 {
                let tag = before.ends_with('[') && after.starts_with(']');
                return tag && last == 1 && named(&self.words[1]);
            }
            let numbered = after == "#" && at + 1 == last;
            let place = at + 1 < self.words.len()
                && matches!(self.word(at + 1), "at" | "after" | "code" | "rc")
                && after.is_empty();
            let ends = at == last || timed && at + 1 == last;
            if !(ends || numbered || place) {
                return false;
            }
            // What a call returned, and a value.
            let value = before.ends_with(['=', '<']) && !dots;
            let near = self.words[at.saturating_sub(2)..at].iter().any(named);
            let joint = dots || before.ends_with([':', '-', '>', '|', '[', '(']);
            !value && (near || joint && self.words[..at].iter().any(named))
        })
    }

    /// `Failed tests: pop`, `Failures: pop`.
    fn lists_failed(&self) -> bool {
        let tests = listed("tests test testcases cases checks suites", self.word(1));
        let key = usize::from(tests);
        let named = listed("failed failing failures", self.word(0))
            && (tests || self.word(0) == "failures");
        named
            && self.words.get(key + 1).is_some_and(|next| {
                let empty = listed("none no nil null n nothing", &next.text);
                next.before.trim() == ":" && !empty && number(next).is_none()
            })
    }

    /// `Parser.FAIL`, `status::FAIL`, `PASS/FAIL`, `FAIL=0`, `Passed Failed Skipped`.
    fn is_part_of_name(&self, at: usize) -> bool {
        let word = &self.words[at];
        let dotted = word.before.ends_with('.') && !word.before.ends_with("..");
        let scoped = word.before.ends_with("::") && !self.is_behind_place(at);
        let before = dotted || scoped || word.before.ends_with(['/', '\\']);
        let after = word.after.starts_with("::")
            || word.after.starts_with(['/', '\\'])
            || word.after == "." && at + 1 < self.words.len()
            || word.after == "-" && (!word.capital || listed(QUALIFIED, self.word(at + 1)));
        let pass = |index: usize| {
            let other = self.words.get(index);
            other.is_some_and(|w| listed(PASSES, &w.text) && w.capital == word.capital)
        };
        let tests =
            usize::from(listed("tests cases checks suites assertions asserts", self.word(at + 1)));
        let value = self.words.get(at + 1 + tests).is_some_and(|next| {
            next.before.contains([':', '=']) && listed("0 none no false nil null", &next.text)
        });
        before || after || value || pass(at + 1) || at > 0 && pass(at - 1)
    }

    /// `file.c:12::FAIL`: an assertion outside of a test, whose name is missing.
    fn is_behind_place(&self, at: usize) -> bool {
        at > 0 && self.words[at].before == "::" && number(&self.words[at - 1]).is_some()
    }

    /// `expected to fail`, `if the test FAILED`, `no test failed`, `not ok 3 # TODO`.
    fn is_unreal(&self, at: usize) -> bool {
        let before = self.words[..at].iter().enumerate().rev().take(3);
        let unreal = before
            .take_while(|(index, _)| self.flows(*index, at))
            .any(|(_, word)| listed(UNREAL, &word.text));
        let none = at > 0 && number(&self.words[at - 1]) == Some(0)
            || matches!(self.count_before(at), Some((0, _)))
            || is_of_none(&self.words, at);
        // A service manager: `[FAILED] Failed to start Network Name Resolution.`
        let service = listed(VERDICTS, self.word(at + 1)) && self.word(at + 2) == "to";
        // `in case of failure: reboot`.
        let supposed = at > 0 && listed("of upon", self.word(at - 1)) && !self.words[at].capital;
        // `memory test, stops at first failure`.
        let first = at > 1
            && self.word(at - 1) == "first"
            && listed("at on after until", self.word(at - 2))
            && !self.words[at].capital
            && !self.words[..at].iter().any(|word| listed(ENDED, &word.text));
        unreal || none || service || supposed || first || self.is_excused(at)
    }

    /// `FAILED (expected)`, `not ok 3 - name # TODO later`, but not `FAILED (skipped=1, errors=1)`.
    fn is_excused(&self, at: usize) -> bool {
        (at + 1..self.words.len()).any(|index| {
            let word = &self.words[index];
            let opened = word.before.trim_ascii_end().ends_with(['(', '#', '[']);
            let noun = usize::from(listed(FAILURES, self.word(index + 1)));
            let counts = self.words.get(index + 1 + noun).is_some_and(|next| {
                next.before.trim_ascii().starts_with(['=', ':']) && number(next).is_some()
            });
            opened && listed(EXCUSES, &word.text) && !counts
        })
    }
}

/// `[FAIL]`, `( FAILED )`, `| FAIL |`, `file.c:12:name:FAIL`.
fn is_tag(raw_before: &str, raw_after: &str) -> bool {
    let (before, after) = (raw_before.trim_ascii_end(), raw_after.trim_ascii_start());
    let closed = [('[', ']'), ('(', ')'), ('<', '>'), ('|', '|'), ('{', '}')];
    closed.iter().any(|(open, close)| before.ends_with(*open) && after.starts_with(*close))
        || before == ":" && (raw_after.is_empty() || after.starts_with(':'))
}

#[cfg(test)]
#[path = "failed_result_tests.rs"]
mod tests;
