//! GoogleTest, and the small frameworks that print like it: utest.h and Pigweed's `pw_unit_test`.

use jig_model::result::{CaseStatus, ResultFormat};

use super::grammar::{AssertionSigns, FormatSpec, Grammar, starts};
use super::record::{CaseOutcome, ReportBuilder};
use super::scan::{is_counted, leading_number, number};
use crate::console::lines::ReportLine;

/// Most lines of a failing assertion that are kept as its message.
const FAILURE_LINES: usize = 6;

/// Reads GoogleTest's lines.
#[derive(Debug, Default)]
struct Gtest {
    running: Option<String>,
    failure: Vec<String>,
    headed: bool,
    /// The line `N tests ran` was read: what follows repeats results.
    ran: bool,
}

/// gtest-spi lists what it caught as `Fatal failure:`, which is no such line.
static FAILING: AssertionSigns =
    AssertionSigns::new(r"(?::\d+|\(\d+\)|unknown file): (?:Failure|error: .*)$");

pub(super) const GTEST: FormatSpec = FormatSpec {
    format: ResultFormat::Gtest,
    family: ResultFormat::Gtest,
    begins: b"[",
    holds: &[],
    opens,
    tells_size: |first| first.text.starts_with("[==========]"),
    grammar: |_| Box::new(Gtest::default()),
    failing: &FAILING,
};

fn opens(line: &ReportLine<'_>) -> bool {
    match tag(line.text) {
        Some(("==========", rest)) => head(rest).is_some(),
        Some(("RUN", rest)) => is_name(rest),
        // With `--gtest_brief=1`, the first line of a report that has failed.
        Some(("FAILED", rest)) => timed(rest).is_some_and(|(name, _)| is_name(name)),
        _ => false,
    }
}

impl Grammar for Gtest {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        let text = line.text;
        if let Some(iteration) = iteration(text) {
            self.repeat(iteration, record);
            return true;
        }
        let Some((tag, rest)) = tag(text) else {
            return self.final_count(text, record);
        };
        match tag {
            "==========" => {
                if let Some(count) = head(rest) {
                    if self.headed {
                        record.begins_again();
                    } else if record.decided() == 0 {
                        // A log line that resembles the start of a test.
                        record.forget();
                        self.running = None;
                    }
                    (self.headed, self.ran) = (true, false);
                    count.into_iter().for_each(|count| record.plan(count));
                    return true;
                }
                let Some(count) = tail(rest) else { return false };
                count.into_iter().for_each(|count| record.plan(count));
                self.ran = true;
            }
            "----------" => {}
            "RUN" => {
                if !is_name(rest) {
                    return false;
                }
                let name = named(rest);
                record.begin(&name, &name, line.span);
                self.running = Some(name);
                self.failure.clear();
                self.ran = false;
            }
            "OK" => return self.result(CaseStatus::Pass, rest, line, record),
            "FAILED" | "SKIPPED" => {
                let status = if tag == "FAILED" { CaseStatus::Fail } else { CaseStatus::Skip };
                if !self.ran {
                    return self.result(status, rest, line, record);
                }
                if let Some(count) = listed(rest) {
                    if status == CaseStatus::Fail {
                        record.claim(count);
                    } else {
                        record.compare("skipped", count, record.count(status));
                    }
                    return true;
                }
                if status == CaseStatus::Fail && is_suite(rest) {
                    let outcome = CaseOutcome { status, message: None, duration_ms: None };
                    record.decide(rest, rest, outcome, line.span);
                    return true;
                }
                let name = rest.split_once(", where ").map_or(rest, |(name, _)| name);
                if !is_name(name) {
                    return false;
                }
                let name = named(name);
                record.restate(&name, &name, status, line.span);
            }
            "PASSED" => {
                let Some(count) = passed(rest).filter(|_| self.ran) else { return false };
                record.compare("passes", count, record.count(CaseStatus::Pass));
                record.end();
            }
            _ => return false,
        }
        true
    }

    /// Keeps the assertion that a running case prints.
    fn prose(&mut self, text: &str, _record: &mut ReportBuilder) {
        let begins = text.ends_with(": Failure") || text.ends_with(": Skipped");
        let wanted = !self.failure.is_empty() && self.failure.len() < FAILURE_LINES;
        if self.running.is_some() && (begins && self.failure.is_empty() || wanted) {
            self.failure.push(text.to_owned());
        }
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        self.ran
            && match tag(line.text) {
                Some(("PASSED", rest)) => passed(rest).is_some(),
                Some(_) => false,
                None => failed_count(line.text).is_some(),
            }
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        starts(line, &["[ RUN", "[       OK", "[  FAILED", "[  SKIPPED"])
    }
}

impl Gtest {
    /// What is repeated has an end of its own, and cases that are told apart.
    fn repeat(&mut self, iteration: u64, record: &mut ReportBuilder) {
        if iteration > 1 {
            if !record.ended() {
                record.remark(format!("iteration {iteration} begins before the end of the last"));
            }
            record.begin_run("iteration", iteration);
            *self = Self::default();
        } else if self.headed {
            record.begins_again();
        }
        record.goes_on();
    }

    fn result(
        &mut self,
        status: CaseStatus,
        rest: &str,
        line: &ReportLine<'_>,
        record: &mut ReportBuilder,
    ) -> bool {
        let (name, time) = timed(rest).map_or((rest, None), |(name, time)| (name, Some(time)));
        let name = name.split_once(", where ").map_or(name, |(name, _)| name).trim_ascii_end();
        if !is_name(name) {
            return false;
        }
        let duration_ms = match time {
            Some(time) => match duration(time) {
                Some(duration) => Some(duration),
                None => return false,
            },
            // Without a time the line only lists the name, unless that very test runs.
            None if self.running.as_deref() == Some(&named(name)) => None,
            None => return false,
        };
        let name = named(name);
        let message = self.failure.join("\n");
        self.failure.clear();
        self.running = None;
        let message = (status != CaseStatus::Pass).then_some(message.as_str());
        let outcome = CaseOutcome { status, message, duration_ms };
        record.decide(&name, &name, outcome, line.span);
        true
    }

    /// Reads ` 2 FAILED TESTS`.
    fn final_count(&mut self, text: &str, record: &mut ReportBuilder) -> bool {
        let Some(count) = failed_count(text).filter(|_| self.ran) else { return false };
        record.claim(count);
        record.end();
        true
    }
}

/// Reads the number in the line with which each of several runs begins.
fn iteration(text: &str) -> Option<u64> {
    number(text.strip_prefix("Repeating all tests (iteration ")?.strip_suffix(") . . .")?)
}

fn tag(text: &str) -> Option<(&str, &str)> {
    let body = text.strip_prefix('[')?;
    // Ten columns between the brackets, always.
    let (tag, rest) = body.split_at_checked(10)?;
    let rest = rest.strip_prefix("] ").or_else(|| rest.strip_prefix(']'))?;
    Some((tag.trim_ascii(), rest))
}

/// Tells whether a text is `Suite.Test`, with the slashes of parameters. The name of a parameter
/// may be in any language.
fn is_name(text: &str) -> bool {
    let part =
        |p: &str| !p.is_empty() && p.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '/');
    text.split_once('.').is_some_and(|(suite, test)| part(suite) && part(test))
}

/// `Ring: SetUpTestSuite or TearDownTestSuite`: what the suite does around its cases has failed.
fn is_suite(text: &str) -> bool {
    let suite = text
        .strip_suffix(": SetUpTestSuite or TearDownTestSuite")
        .or_else(|| text.strip_suffix(": SetUpTestCase or TearDownTestCase"));
    suite.is_some_and(|suite| is_name(&format!("{suite}.x")))
}

fn named(text: &str) -> String {
    text.replacen('.', "::", 1)
}

/// Reads `N tests from M test suites` and returns N and what follows.
fn counts(text: &str) -> Option<(u64, &str)> {
    let (tests, rest) = leading_number(text)?;
    let (word, rest) = rest.strip_prefix(' ')?.split_once(" from ")?;
    let (suites, rest) = leading_number(rest)?;
    let rest = rest.strip_prefix(' ')?;
    let end = rest.find(['.', ' ']).and_then(|first| {
        let tail = rest.get(first + 1..)?;
        Some(first + 1 + tail.find(['.', ' ']).unwrap_or(tail.len()))
    })?;
    let (unit, rest) = rest.split_at_checked(end)?;
    let unit_ok = is_counted(suites, unit, "test suite", "test suites")
        || is_counted(suites, unit, "test case", "test cases");
    (is_counted(tests, word, "test", "tests") && unit_ok).then_some((tests, rest))
}

/// Reads a time as milliseconds: `12 m` of GoogleTest, `6310n` of utest.h; the `s` is cut off.
fn duration(text: &str) -> Option<u64> {
    if let Some(nanoseconds) = text.strip_suffix('n') {
        let digits = !nanoseconds.is_empty() && nanoseconds.bytes().all(|b| b.is_ascii_digit());
        return digits.then(|| nanoseconds.parse::<u64>().ok()).flatten().map(|ns| ns / 1_000_000);
    }
    number(text.strip_suffix(" m")?)
}

/// Cuts `Suite.Test (12 ms)` into the name and the time without its `s`.
fn timed(rest: &str) -> Option<(&str, &str)> {
    rest.strip_suffix("s)")?.rsplit_once(" (")
}

/// Reads the line in front of all tests, and their number where it is told.
fn head(rest: &str) -> Option<Option<u64>> {
    let rest = rest.strip_prefix("Running ")?;
    if rest == "all tests." {
        return Some(None);
    }
    if let Some(count) = test_cases(rest, ".") {
        return Some(Some(count));
    }
    let (count, rest) = counts(rest)?;
    (rest == ".").then_some(Some(count))
}

/// Reads the line behind all tests, and their number where it is told.
fn tail(rest: &str) -> Option<Option<u64>> {
    if rest == "Done running all tests." {
        return Some(None);
    }
    if let Some(count) = test_cases(rest, " ran.") {
        return Some(Some(count));
    }
    let (count, rest) = counts(rest)?;
    (rest == " ran." || (rest.starts_with(" ran. (") && rest.ends_with(" ms total)")))
        .then_some(Some(count))
}

/// Reads `3 test cases` of utest.h, in front of an end.
fn test_cases(text: &str, end: &str) -> Option<u64> {
    let (count, unit) = leading_number(text.strip_suffix(end)?)?;
    is_counted(count, unit, " test case", " test cases").then_some(count)
}

fn passed(rest: &str) -> Option<u64> {
    let (count, rest) = leading_number(rest)?;
    (rest == " test(s)." || is_counted(count, rest, " test.", " tests.")).then_some(count)
}

fn listed(rest: &str) -> Option<u64> {
    let (count, rest) = leading_number(rest)?;
    let listed = |rest: &str| is_counted(count, rest, " test", " tests");
    (rest == " test(s)."
        || rest == " tests."
        || rest.strip_suffix(", listed below:").is_some_and(listed))
    .then_some(count)
}

fn failed_count(text: &str) -> Option<u64> {
    let (count, rest) = leading_number(text)?;
    is_counted(count, rest, " FAILED TEST", " FAILED TESTS").then_some(count)
}
