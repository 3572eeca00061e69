//! doctest's console reporter.
//!
//! Only failing cases are named. Cases that a filter left out (`skipped`) are none of the report.
//! A case that is declared to fail prints its failures, and then that it is not marked as failed.

use jig_model::result::{CaseStatus, ResultFormat};

use super::grammar::{FormatSpec, Grammar, NO_SIGNS};
use super::record::ReportBuilder;
use super::tally::{HeldCases, add_unnamed, labelled};
use crate::console::lines::ReportLine;

/// Most lines of a failing assertion that are kept as its message.
const FAILURE_LINES: usize = 4;

/// Reads doctest's lines.
#[derive(Debug, Default)]
struct Doctest {
    headed: bool,
    /// The case that the next assertion belongs to.
    case: Option<String>,
    /// The case with a failed assertion: it may be expected to fail.
    failing: HeldCases,
    /// How many of its assertions failed.
    failures: u64,
    /// Assertions that failed as expected.
    excused: u64,
    /// How many lines follow that are part of the failing case's message.
    explaining: usize,
    cases: Option<Counts>,
    assertions: Option<Counts>,
}

pub(super) const DOCTEST: FormatSpec = FormatSpec {
    format: ResultFormat::Doctest,
    family: ResultFormat::Doctest,
    begins: b"[",
    holds: &[],
    opens,
    tells_size: |_| true,
    grammar: |_| Box::new(Doctest::default()),
    failing: &NO_SIGNS,
};

const TAG: &str = "[doctest] ";
const STATUS: &str = "[doctest] Status: ";

fn opens(line: &ReportLine<'_>) -> bool {
    let Some(text) = line.text.strip_prefix(TAG) else { return false };
    text.starts_with("doctest version is ") || counts(text, "test cases: ").is_some()
}

impl Grammar for Doctest {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        let text = line.text;
        if let Some(good) = status(text) {
            self.end(good, line, record);
        } else if let Some(text) = text.strip_prefix(TAG) {
            if text.starts_with("doctest version is ") {
                if self.headed {
                    record.begins_again();
                }
                self.headed = true;
            } else if let Some(cases) = counts(text, "test cases: ") {
                self.close_case(record);
                record.plan(cases.total);
                record.claim(cases.failed);
                self.cases = Some(cases);
            } else if let Some(assertions) = counts(text, "assertions: ") {
                self.assertions = Some(assertions);
            }
        } else if let Some(name) = text.strip_prefix("TEST CASE: ") {
            let name = name.trim_ascii();
            if !self.failing.last_is(name) {
                self.close_case(record);
            }
            self.case = Some(name.to_owned());
        } else if let Some((place, message)) = error(text) {
            let name = self.case.as_deref().unwrap_or(place);
            if !self.failing.last_is(name) {
                self.failing.release(record);
                self.failing.push(name, CaseStatus::Fail, "", line.span);
            }
            self.failing.explain(message);
            // An exception is none of the assertions that are counted.
            self.failures += u64::from(!message.starts_with("test case "));
            self.explaining = FAILURE_LINES;
        } else if text.contains(" so marking it as not failed") {
            self.failing = HeldCases::default();
            self.excused += std::mem::take(&mut self.failures);
            self.explaining = 0;
        } else {
            return false;
        }
        true
    }

    fn prose(&mut self, text: &str, _record: &mut ReportBuilder) {
        if text.starts_with("=====") {
            self.explaining = 0;
        } else if self.explaining > 0 {
            self.explaining -= 1;
            self.failing.explain(text);
        }
    }

    fn finish(&mut self, record: &mut ReportBuilder) {
        let ended = record.ended();
        record.goes_on();
        self.close_case(record);
        if ended {
            record.end();
        }
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        self.cases.is_some() && status(line.text).is_some()
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        line.text.starts_with(TAG) || error(line.text).is_some()
    }
}

impl Doctest {
    /// Nothing said that the case was expected to fail.
    fn close_case(&mut self, record: &mut ReportBuilder) {
        self.failing.release(record);
        (self.failures, self.explaining) = (0, 0);
    }

    fn end(&mut self, good: bool, line: &ReportLine<'_>, record: &mut ReportBuilder) {
        let Some(cases) = self.cases.take() else {
            record.remark("the status stands without a count of test cases".to_owned());
            return;
        };
        let assertions = self.assertions.take();
        if cases.passed + cases.failed != cases.total {
            let Counts { total, passed, failed } = cases;
            record.remark(format!("{total} cases are not {passed} passed and {failed} failed"));
        }
        if let Some(Counts { total, passed, failed }) = assertions
            && passed + failed != total
        {
            record
                .remark(format!("{total} assertions are not {passed} passed and {failed} failed"));
        }
        let excused = std::mem::take(&mut self.excused);
        let failed = assertions.as_ref().is_none_or(|assertions| assertions.failed != excused);
        if good && (failed || cases.failed > 0) {
            record.remark("the status is SUCCESS, but the counts tell of failures".to_owned());
        } else if !good {
            record.claim_any();
        }
        add_unnamed(record, CaseStatus::Pass, cases.passed, line.span);
        self.explaining = 0;
        record.end();
    }
}

#[derive(Debug, Clone, Copy)]
struct Counts {
    total: u64,
    passed: u64,
    failed: u64,
}

/// Reads `3 | 2 passed | 1 failed`, whatever else is counted behind it.
fn counts(text: &str, label: &str) -> Option<Counts> {
    let mut parts = text.strip_prefix(label)?.split('|');
    let total = super::scan::number(parts.next()?.trim_ascii())?;
    let passed = labelled(parts.next()?, "passed")?;
    let failed = labelled(parts.next()?, "failed")?;
    Some(Counts { total, passed, failed })
}

fn status(text: &str) -> Option<bool> {
    match text.strip_prefix(STATUS)? {
        "SUCCESS!" => Some(true),
        "FAILURE!" => Some(false),
        _ => None,
    }
}

/// Reads `file.cpp:12: ERROR: CHECK( a == b ) is NOT correct!`; a warning fails nothing.
fn error(text: &str) -> Option<(&str, &str)> {
    let (place, message) =
        text.split_once(": ERROR:").or_else(|| text.split_once(": FATAL ERROR:"))?;
    let message = message.trim_ascii_start();
    place.ends_with(|c: char| c.is_ascii_digit() || c == ')').then_some((place, message))
}
