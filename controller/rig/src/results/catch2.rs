//! Catch2's console reporter.
//!
//! Passing cases have no line at all: the totals count them. A failing assertion is named by its
//! place, since the case's name stands where nothing tells it from prose. One in a case that is
//! declared to fail looks the same: only the totals tell how many were expected to. Such a case passes.
//!
//! A report that is only its last line or two proves as many passes without names as these count.

use jig_model::result::{CaseStatus, ResultFormat};

use super::choice::Credibility;
use super::grammar::{FormatSpec, Grammar, NO_SIGNS};
use super::record::ReportBuilder;
use super::scan::{is_counted, leading_number, number};
use super::tally::{HeldCases, add_unnamed, labelled};
use crate::console::lines::{ReportLine, Span};

/// Most lines of a failing assertion that are kept as its message.
const FAILURE_LINES: usize = 4;

/// Reads Catch2's lines.
#[derive(Debug, Default)]
struct Catch2 {
    /// Places of failing assertions; a case may hold several, and a loop repeats one.
    failing: HeldCases,
    /// Failing assertions, however often one place has failed.
    failures: u64,
    /// How many lines follow that are part of the last failing assertion's message.
    explaining: usize,
    totals: Option<Totals>,
    /// The line about the random seed was read.
    seeded: bool,
    /// More was read than the line about the random seed.
    sure: bool,
}

pub(super) const CATCH2: FormatSpec = FormatSpec {
    format: ResultFormat::Catch2,
    family: ResultFormat::Catch2,
    begins: b"AtR",
    holds: &[": FAILED:"],
    opens,
    tells_size: |_| true,
    grammar: |_| Box::new(Catch2::default()),
    failing: &NO_SIGNS,
};

const SEED: &str = "Randomness seeded to: ";

fn opens(line: &ReportLine<'_>) -> bool {
    line.text.starts_with(SEED)
        || all_passed(line.text).is_some()
        || failed(line.text).is_some()
        || totals(line.text, "test cases:").is_some()
}

impl Grammar for Catch2 {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        let text = line.text;
        if text.starts_with(SEED) && self.sure {
            // Another program begins, which has an end of its own.
            record.goes_on();
            return true;
        }
        if let Some(total) = all_passed(text) {
            if self.failures > 0 {
                record.remark("all tests passed, but an assertion failed".to_owned());
            }
            self.end(&Totals { total, passed: total, ..Totals::default() }, 0, line.span, record);
        } else if let Some(totals) = totals(text, "test cases:") {
            self.totals = Some(totals);
        } else if let Some(assertions) = totals(text, "assertions:") {
            let Some(totals) = self.totals.take() else { return false };
            assertions.check_sum("assertions", record);
            // Those of a case that may fail are expected, too.
            if assertions.failed > 0 && totals.failed == 0 {
                record.remark("assertions failed, but no test case did".to_owned());
            }
            let failures = assertions.failed + assertions.expected;
            if self.failures > 0 {
                record.compare("failing assertions", failures, self.failures);
            }
            let excused = if assertions.failed > 0 || totals.failed > 0 { 0 } else { failures };
            self.end(&totals, excused, line.span, record);
        } else if text == "No tests ran" && self.seeded {
            self.end(&Totals::default(), 0, line.span, record);
        } else if let Some(place) = failed(text) {
            self.failures += 1;
            if !self.failing.holds(place) {
                self.failing.push(place, CaseStatus::Fail, "", line.span);
                self.explaining = FAILURE_LINES;
            }
        } else {
            return false;
        }
        self.sure = true;
        true
    }

    fn credibility(&self) -> Credibility {
        if self.sure { Credibility::Report } else { Credibility::Guess }
    }

    fn prose(&mut self, text: &str, _record: &mut ReportBuilder) {
        self.seeded |= text.starts_with(SEED);
        if text.starts_with("-----") || text.starts_with("=====") {
            self.explaining = 0;
        } else if self.explaining > 0 {
            self.explaining -= 1;
            self.failing.explain(text);
        }
    }

    /// Without totals nothing says that a failure was expected.
    fn finish(&mut self, record: &mut ReportBuilder) {
        let ended = record.ended();
        record.goes_on();
        self.failing.release(record);
        if ended {
            record.end();
        }
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        let none = line.text == "assertions: - none -" && self.totals.is_some();
        none || all_passed(line.text).is_some()
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        failed(line.text).is_some()
    }
}

impl Catch2 {
    /// Ends a report: cases without a line of their own are counted by the totals alone. As many
    /// failing assertions are excused as were expected, if no other is listed.
    fn end(&mut self, totals: &Totals, excused: u64, span: Span, record: &mut ReportBuilder) {
        totals.check_sum("test cases", record);
        let Totals { total, passed, failed, expected, skipped } = *totals;
        if self.failures > excused {
            self.failing.release(record);
        }
        (self.failing, self.failures, self.explaining) = (HeldCases::default(), 0, 0);
        // Each failing assertion is listed as a case: one test case may hold several.
        let listed = record.count(CaseStatus::Fail).max(failed);
        record.plan(total + listed - failed);
        record.claim(listed);
        // A case that fails as it declares does what it is to do.
        add_unnamed(record, CaseStatus::Pass, passed + expected, span);
        add_unnamed(record, CaseStatus::Skip, skipped, span);
        record.end();
    }
}

#[derive(Debug, Default)]
struct Totals {
    total: u64,
    passed: u64,
    failed: u64,
    /// Failed as the test case declares.
    expected: u64,
    skipped: u64,
}

impl Totals {
    /// Remarks on a total that its parts do not add up to.
    fn check_sum(&self, what: &str, record: &mut ReportBuilder) {
        let Self { total, passed, failed, expected, skipped } = *self;
        if passed + failed + expected + skipped != total {
            let failed = failed + expected;
            record.remark(format!(
                "{total} {what} are not {passed} passed, {failed} failed and {skipped} skipped"
            ));
        }
    }
}

/// Reads `test cases: 4 | 2 passed | 1 failed | 1 skipped`; parts that are zero are left out.
/// `assertions: - none -` counts none.
fn totals(text: &str, label: &str) -> Option<Totals> {
    if text.strip_prefix(label)?.trim_ascii() == "- none -" {
        return Some(Totals::default());
    }
    let mut parts = text.strip_prefix(label)?.split('|');
    let mut totals = Totals { total: number(parts.next()?.trim_ascii())?, ..Totals::default() };
    let mut known = false;
    for part in parts {
        let (slot, label) = match part.trim_ascii().split_once(' ')?.1.trim_ascii() {
            "passed" => (&mut totals.passed, "passed"),
            "failed" => (&mut totals.failed, "failed"),
            "failed as expected" => (&mut totals.expected, "failed as expected"),
            "skipped" => (&mut totals.skipped, "skipped"),
            _ => return None,
        };
        *slot = labelled(part, label)?;
        known = true;
    }
    known.then_some(totals)
}

/// Reads `All tests passed (4 assertions in 2 test cases)`.
fn all_passed(text: &str) -> Option<u64> {
    let inside = text.strip_prefix("All tests passed (")?.strip_suffix(')')?;
    let (assertions, cases) = inside.split_once(" in ")?;
    let (count, unit) = leading_number(assertions)?;
    let (cases, cases_unit) = leading_number(cases)?;
    (is_counted(count, unit, " assertion", " assertions")
        && is_counted(cases, cases_unit, " test case", " test cases"))
    .then_some(cases)
}

/// Reads the place in `file.cpp:14: FAILED:`.
fn failed(text: &str) -> Option<&str> {
    let place = text.strip_suffix(": FAILED:")?;
    let (file, line) = match place.strip_suffix(')') {
        Some(place) => place.rsplit_once('(')?,
        None => place.rsplit_once(':')?,
    };
    (number(line).is_some() && file.contains('.')).then_some(place)
}
