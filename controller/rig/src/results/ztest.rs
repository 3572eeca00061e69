//! Zephyr's ztest, with and without the summary that newer versions add.
//!
//! A test that `ZTEST_EXPECT_FAIL` marks prints its failing assertion and passes, as a test does
//! that forgets a failure: one in another thread, in old versions. The two are told apart by the
//! function that the assertion names. ztest ends a test at an assertion in the test's own function,
//! `SUITE_TEST`, and makes it fail, so that only the mark can have let it pass. A pass below another
//! failing assertion is a remark.

use std::collections::HashMap;

use jig_model::result::{CaseStatus, ResultFormat};

use super::grammar::{AssertionSigns, FormatSpec, Grammar, starts};
use super::record::{CaseOutcome, ReportBuilder};
use super::scan::{is_ident, number, seconds};
use crate::console::lines::ReportLine;

/// Reads ztest's lines.
#[derive(Debug, Default)]
struct Ztest {
    suite: Option<String>,
    /// Key of the case that runs, and what it said went wrong.
    running: Option<String>,
    assertion: Option<String>,
    /// Where the assertions that failed in the case that runs stand.
    failed_in: Option<FailedIn>,
    /// An assumption that failed outside of the function of the case that runs.
    assumption: Option<String>,
    totals: Option<u64>,
    claimed: u64,
    /// What the summary says of each suite.
    summaries: Vec<SuiteSummary>,
}

/// Where assertions stand that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailedIn {
    /// All in the function of the test itself.
    Test,
    /// Not all, or it is not known.
    Elsewhere,
}

/// Longest name of a suite that is kept.
const MAX_NAME: usize = 256;

/// Most suites whose summaries are kept: some hundred are known to run on one board.
const MAX_SUITES: usize = 1000;

const DONE: &str = "PROJECT EXECUTION ";

static FAILING: AssertionSigns = AssertionSigns::new("(?:Assertion|Expectation) failed at ");

/// Not even a suite's head tells that no suite stood in front of it.
pub(super) const ZTEST: FormatSpec = FormatSpec {
    format: ResultFormat::Ztest,
    family: ResultFormat::Ztest,
    begins: b"RSPF",
    holds: &[],
    opens,
    tells_size: |_| false,
    grammar: |_| Box::new(Ztest::default()),
    failing: &FAILING,
};

fn opens(line: &ReportLine<'_>) -> bool {
    let text = line.text;
    suite_head(text).is_some()
        || started(text).is_some()
        || result(text).is_some_and(|(_, _, duration)| duration.is_some())
        || matches!(text.strip_prefix(DONE), Some("SUCCESSFUL" | "FAILED"))
}

impl Grammar for Ztest {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        let text = line.text;
        if let Some(suite) = suite_head(text) {
            record.reopen();
            if record.decided() == 0 && self.suite.is_none() {
                // A log line that resembles the start of a case: a suite's head comes first.
                record.forget();
            }
            self.remark_on_open_suite(record);
            self.suite = Some(suite.to_owned());
            self.running = None;
        } else if let Some(name) = started(text) {
            let key = self.key(name);
            record.begin(&key, &key, line.span);
            self.running = Some(key);
            self.assertion = None;
            self.failed_in = None;
            self.assumption = None;
        } else if let Some((status, name, duration_ms)) = result(text) {
            let key = self.key(name);
            // Without a time the line is prose unless that very case runs.
            if duration_ms.is_none() && self.running.as_ref() != Some(&key) {
                return false;
            }
            let mut message = self.assertion.take();
            let failed_in = self.failed_in.take();
            let assumption = self.assumption.take();
            if let Some(assumption) = assumption.filter(|_| status == CaseStatus::Pass) {
                record.assertion_failed(&assumption);
            }
            if status == CaseStatus::Pass {
                message = message.filter(|_| failed_in == Some(FailedIn::Test));
                message = message.map(|failed| format!("expected to fail: {failed}"));
            }
            if status == CaseStatus::Pass && failed_in == Some(FailedIn::Test) {
                record.excuse_assertion();
            }
            let outcome = CaseOutcome { status, message: message.as_deref(), duration_ms };
            record.decide(&key, &key, outcome, line.span);
            self.running = None;
        } else if let Some((suite, good)) = suite_end(text) {
            if !good && record.count(CaseStatus::Fail) == 0 {
                record.remark(format!("suite {suite} failed without a failing case"));
                record.claim_any();
            }
            self.suite = None;
            self.running = None;
        } else if let Some(suite) = suite_summary(text) {
            let total = self.totals.unwrap_or(0) + suite.total;
            self.totals = Some(total);
            record.replan(total);
            self.claimed += suite.failed.max(u64::from(!suite.good));
            record.claim(self.claimed);
            if self.summaries.len() < MAX_SUITES {
                self.summaries.push(suite);
            }
        } else if let Some((status, name)) = case_summary(text) {
            let key = name.replacen('.', "::", 1);
            if status == CaseStatus::Skip && !record.knows(&key) {
                // Only the summary knows of suites and cases that were not run.
                record.decide(&key, &key, CaseOutcome::of(status), line.span);
            } else {
                record.restate(&key, &key, status, line.span);
            }
        } else if let Some(word) = text.strip_prefix(DONE) {
            match word {
                "SUCCESSFUL" => {}
                "FAILED" => record.claim_any(),
                _ => return false,
            }
            self.remark_on_open_suite(record);
            self.check_summaries(record);
            record.end();
        } else if let Some(name) = misses_mocks(text) {
            // ztest makes that very test fail, so a pass behind it is a failure that is expected.
            return self.running.as_ref() == Some(&self.key(name));
        } else {
            return self.keeps_own_assertion(text);
        }
        true
    }

    /// Keeps what a running case prints before its result: an assumption, or an assertion of a helper.
    fn prose(&mut self, text: &str, _record: &mut ReportBuilder) {
        let Some(running) = &self.running else { return };
        if let Some(at) = text.find("Assumption failed at ") {
            // It skips a test, which passes only if that was expected and the assumption is its own.
            if !is_own(&text[at..], running) {
                self.assumption.get_or_insert_with(|| text[at..].to_owned());
            }
            return;
        }
        let Some(failed) = failed_assertion(text) else { return };
        if !is_own(failed, running) {
            self.failed_in = Some(FailedIn::Elsewhere);
        }
        self.failed_in.get_or_insert(FailedIn::Test);
        self.assertion.get_or_insert_with(|| failed.to_owned());
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        matches!(line.text.strip_prefix(DONE), Some("SUCCESSFUL" | "FAILED"))
    }

    fn holds_failure(&self, text: &str) -> bool {
        const ERRORS: [&str; 2] = ["ERROR: Test suite ", "ERROR: cannot fail in test phase"];
        let fails = || text.split_once("FAIL - ").is_some_and(|(_, case)| case.contains(" in "));
        fails() || ERRORS.iter().any(|error| text.contains(error))
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        starts(line, &["PASS - ", "FAIL - ", "SKIP - ", "START - "])
    }
}

impl Ztest {
    /// A suite says how it ended before another one begins.
    fn remark_on_open_suite(&mut self, record: &mut ReportBuilder) {
        if let Some(suite) = self.suite.take() {
            record.remark(format!("suite {suite} began and did not end"));
        }
    }

    /// Compares what the summary says of each suite with its cases.
    fn check_summaries(&mut self, record: &mut ReportBuilder) {
        let mut seen: HashMap<String, [u64; 3]> = HashMap::new();
        if !self.summaries.is_empty() {
            for (name, status) in record.results() {
                let suite = name.split_once("::").map_or("", |(suite, _)| suite);
                let counts = seen.entry(suite.to_owned()).or_default();
                let slot = match status {
                    CaseStatus::Pass => 0,
                    CaseStatus::Skip => 2,
                    CaseStatus::Fail | CaseStatus::Unfinished => 1,
                };
                counts[slot] += 1;
            }
        }
        for summary in self.summaries.drain(..) {
            let SuiteSummary { name, passed, failed, skipped, total, .. } = summary;
            let [pass, fail, skip] = seen.get(&name).copied().unwrap_or_default();
            record.compare(&format!("passes of {name}"), passed, pass);
            record.compare(&format!("failures of {name}"), failed, fail);
            record.compare(&format!("skipped of {name}"), skipped, skip);
            record.compare(&format!("cases of {name}"), total, pass + fail + skip);
        }
    }

    /// Keeps an assertion that failed in the very function of the case that runs.
    fn keeps_own_assertion(&mut self, text: &str) -> bool {
        let (Some(failed), Some(running)) = (failed_assertion(text), &self.running) else {
            return false;
        };
        let own = failed.starts_with("Assertion") && is_own(failed, running);
        if own {
            self.failed_in.get_or_insert(FailedIn::Test);
            self.assertion.get_or_insert_with(|| failed.to_owned());
        }
        own
    }

    fn key(&self, name: &str) -> String {
        match &self.suite {
            Some(suite) => format!("{suite}::{name}"),
            None => name.to_owned(),
        }
    }
}

/// Finds `Assertion failed at FILE:LINE: FUNCTION: CONDITION`, from there to the end of the line.
fn failed_assertion(text: &str) -> Option<&str> {
    let at = ["Assertion failed at ", "Expectation failed at "]
        .iter()
        .find_map(|head| text.find(head))?;
    text.get(at..)
}

/// Returns the function that a failed assertion names; it names none with little verbosity.
fn function(failed: &str) -> Option<&str> {
    let mut parts = failed.split(": ");
    let (_, line) = parts.next()?.rsplit_once(':')?;
    number(line)?;
    parts.next().filter(|function| is_ident(function))
}

/// Tells whether a failed assertion stands in the function of the case that runs, `SUITE_TEST`.
fn is_own(failed: &str, running: &str) -> bool {
    function(failed).is_some_and(|function| {
        running.split_once("::").is_some_and(|(suite, case)| {
            let rest = function.strip_prefix(suite).and_then(|rest| rest.strip_prefix('_'));
            rest == Some(case)
        })
    })
}

/// Reads `Test NAME failed: Unused mock parameter values`.
fn misses_mocks(text: &str) -> Option<&str> {
    let (name, why) = text.strip_prefix("Test ")?.split_once(" failed: Unused mock ")?;
    matches!(why, "parameter values" | "return values").then_some(name)
}

fn suite_head(text: &str) -> Option<&str> {
    let suite = text.strip_prefix("Running TESTSUITE ").or_else(|| {
        // Before Zephyr 3: `Running test suite NAME`.
        text.strip_prefix("Running test suite ")
    })?;
    is_name(suite).then_some(suite)
}

fn started(text: &str) -> Option<&str> {
    text.strip_prefix("START - ").filter(|name| is_ident(name))
}

/// Reads `PASS - name in 0.001 seconds`, or without the time as old versions print it.
fn result(text: &str) -> Option<(CaseStatus, &str, Option<u64>)> {
    let (status, rest) = status_word(text)?;
    let rest = rest.strip_prefix(" - ")?;
    let Some((name, time)) = rest.split_once(' ') else {
        return is_ident(rest).then_some((status, rest, None));
    };
    let time = seconds(time.strip_prefix("in ")?.strip_suffix(" seconds")?)?;
    is_ident(name).then_some((status, name, Some(time)))
}

fn status_word(text: &str) -> Option<(CaseStatus, &str)> {
    let words = [
        ("PASS", CaseStatus::Pass),
        ("FAIL", CaseStatus::Fail),
        ("SKIP", CaseStatus::Skip),
        // Failed first and passed when tried again: a failure was seen.
        ("FLAKY", CaseStatus::Fail),
    ];
    words.into_iter().find_map(|(word, status)| Some((status, text.strip_prefix(word)?)))
}

/// Reads `TESTSUITE name succeeded`, and `Test suite name succeeded` of Zephyr before 3.
fn suite_end(text: &str) -> Option<(&str, bool)> {
    let rest = text.strip_prefix("TESTSUITE ").or_else(|| text.strip_prefix("Test suite "))?;
    let (suite, how) = rest.split_once(' ')?;
    let good = match how.trim_end_matches('.') {
        "succeeded" => true,
        "failed" => false,
        _ => return None,
    };
    is_name(suite).then_some((suite, good))
}

#[derive(Debug)]
struct SuiteSummary {
    name: String,
    good: bool,
    passed: u64,
    failed: u64,
    skipped: u64,
    total: u64,
}

/// Reads `SUITE PASS - 100.00% [name]: pass = 1, fail = 0, skip = 0, total = 1 duration = ...`.
fn suite_summary(text: &str) -> Option<SuiteSummary> {
    let (status, rest) = status_word(text.strip_prefix("SUITE ")?)?;
    let (head, counts) = rest.strip_prefix(" - ")?.split_once("]: ")?;
    let (_, name) = head.split_once('[')?;
    let (counts, _) = counts.split_once(" duration = ")?;
    let mut parts = counts.split(", ");
    let mut count = |label| number(parts.next()?.strip_prefix(label)?.strip_prefix(" = ")?);
    let (passed, failed) = (count("pass")?, count("fail")?);
    let (skipped, total) = (count("skip")?, count("total")?);
    let good = status != CaseStatus::Fail;
    let name = name.chars().take(MAX_NAME).collect();
    Some(SuiteSummary { name, good, passed, failed, skipped, total })
}

/// Reads `- PASS - [suite.name] duration = 0.001 seconds`.
fn case_summary(text: &str) -> Option<(CaseStatus, &str)> {
    let (status, rest) = status_word(text.strip_prefix("- ")?)?;
    let (name, rest) = rest.strip_prefix(" - [")?.split_once(']')?;
    let (suite, case) = name.split_once('.')?;
    (is_name(suite) && is_name(case) && rest.contains(" duration = ")).then_some((status, name))
}

/// Suites of a shell or C++ may hold `-`, `.` and `:` beside what C allows.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.:/".contains(&b))
}
