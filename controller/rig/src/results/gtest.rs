//! GoogleTest.

use jig_model::result::{CaseStatus, ResultFormat};

use super::grammar::{FormatSpec, Grammar, starts};
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

pub(super) const GTEST: FormatSpec = FormatSpec {
    format: ResultFormat::Gtest,
    family: ResultFormat::Gtest,
    begins: b"[",
    holds: None,
    opens,
    tells_size: |first| first.text.starts_with("[==========]"),
    grammar: |_| Box::new(Gtest::default()),
};

fn opens(line: &ReportLine<'_>) -> bool {
    match tag(line.text) {
        Some(("==========", rest)) => head(rest).is_some(),
        Some(("RUN", rest)) => is_name(rest),
        _ => false,
    }
}

impl Grammar for Gtest {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        let text = line.text;
        let Some((tag, rest)) = tag(text) else {
            return self.final_count(text, record);
        };
        match tag {
            "==========" => {
                if let Some(count) = head(rest) {
                    if self.headed {
                        record.begins_again();
                    }
                    (self.headed, self.ran) = (true, false);
                    record.plan(count);
                    return true;
                }
                let Some(count) = tail(rest) else { return false };
                record.plan(count);
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
                    }
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
                let seen = record.count(CaseStatus::Pass);
                if count != seen {
                    record.remark(format!("the summary claims {count} passes, {seen} were seen"));
                }
                record.end();
            }
            _ => return false,
        }
        true
    }

    /// Keeps the assertion that a running case prints. One that no case prints belongs to the
    /// set-up or tear-down of a suite or of all tests, and no case tells of it.
    fn prose(&mut self, text: &str, record: &mut ReportBuilder) {
        if self.running.is_none() && text.ends_with(": Failure") {
            record.remark(format!("an assertion failed outside of the tests: {text}"));
        }
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
    fn result(
        &mut self,
        status: CaseStatus,
        rest: &str,
        line: &ReportLine<'_>,
        record: &mut ReportBuilder,
    ) -> bool {
        // The time is always there; a line without it only lists the name again.
        let Some((name, time)) = rest.strip_suffix(" ms)").and_then(|r| r.rsplit_once(" (")) else {
            return false;
        };
        let name = name.split_once(", where ").map_or(name, |(name, _)| name);
        let Some(duration) = number(time).filter(|_| is_name(name)) else { return false };
        let name = named(name);
        let message = self.failure.join("\n");
        self.failure.clear();
        self.running = None;
        let message = (status != CaseStatus::Pass).then_some(message.as_str());
        let outcome = CaseOutcome { status, message, duration_ms: Some(duration) };
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

fn tag(text: &str) -> Option<(&str, &str)> {
    let body = text.strip_prefix('[')?;
    // Ten columns between the brackets, always.
    let (tag, rest) = body.split_at_checked(10)?;
    let rest = rest.strip_prefix("] ").or_else(|| rest.strip_prefix(']'))?;
    Some((tag.trim_ascii(), rest))
}

/// Tells whether a text is `Suite.Test`, with the slashes of parameters.
fn is_name(text: &str) -> bool {
    let part = |p: &str| {
        !p.is_empty() && p.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'/')
    };
    text.split_once('.').is_some_and(|(suite, test)| part(suite) && part(test))
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

fn head(rest: &str) -> Option<u64> {
    let (count, rest) = counts(rest.strip_prefix("Running ")?)?;
    (rest == ".").then_some(count)
}

fn tail(rest: &str) -> Option<u64> {
    let (count, rest) = counts(rest)?;
    (rest == " ran." || (rest.starts_with(" ran. (") && rest.ends_with(" ms total)")))
        .then_some(count)
}

fn passed(rest: &str) -> Option<u64> {
    let (count, rest) = leading_number(rest)?;
    is_counted(count, rest, " test.", " tests.").then_some(count)
}

fn listed(rest: &str) -> Option<u64> {
    let (count, rest) = leading_number(rest)?;
    is_counted(count, rest.strip_suffix(", listed below:")?, " test", " tests").then_some(count)
}

fn failed_count(text: &str) -> Option<u64> {
    let (count, rest) = leading_number(text)?;
    is_counted(count, rest, " FAILED TEST", " FAILED TESTS").then_some(count)
}
