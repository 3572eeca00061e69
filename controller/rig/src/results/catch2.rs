//! Catch2's console reporter.
//!
//! Passing cases have no line at all: the totals count them. A failing assertion is named by its
//! place, since the case's name stands where nothing tells it from prose.

use std::collections::HashSet;

use jig_model::result::{CaseStatus, ResultFormat};

use super::choice::Credibility;
use super::grammar::{FormatSpec, Grammar};
use super::record::{CaseOutcome, ReportBuilder};
use super::scan::{is_counted, leading_number, number};
use super::tally::{add_unnamed, labelled};
use crate::console::lines::{ReportLine, Span};

/// Most lines of a failing assertion that are kept as its message.
const FAILURE_LINES: usize = 4;

/// Most failing assertions that are listed: a screenful is all that anybody reads.
const MAX_PLACES: usize = 100;

/// Reads Catch2's lines.
#[derive(Debug, Default)]
struct Catch2 {
    /// The failing assertion whose expression follows, and how many lines of it were kept.
    explaining: Option<(String, usize)>,
    /// Places of failing assertions; a case may hold several, and a loop repeats one.
    places: HashSet<String>,
    totals: Option<Totals>,
    /// More was read than the line about the random seed.
    sure: bool,
}

pub(super) const CATCH2: FormatSpec = FormatSpec {
    format: ResultFormat::Catch2,
    family: ResultFormat::Catch2,
    begins: b"AtR",
    holds: Some(b':'),
    opens,
    tells_size: |_| true,
    grammar: |_| Box::new(Catch2::default()),
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
        if let Some(total) = all_passed(text) {
            if record.count(CaseStatus::Fail) > 0 {
                record.remark("all tests passed, but an assertion failed".to_owned());
            }
            add_cases(&Totals { total, passed: total, ..Totals::default() }, line.span, record);
        } else if let Some(totals) = totals(text, "test cases:") {
            self.totals = Some(totals);
        } else if let Some(assertions) = totals(text, "assertions:") {
            let Some(totals) = self.totals.take() else { return false };
            if assertions.failed > 0 && totals.failed == 0 && totals.expected == 0 {
                record.remark("assertions failed, but no test case did".to_owned());
            }
            add_cases(&totals, line.span, record);
        } else if let Some(place) = failed(text) {
            if self.places.len() < MAX_PLACES && self.places.insert(place.to_owned()) {
                record.decide(place, place, CaseOutcome::of(CaseStatus::Fail), line.span);
                self.explaining = Some((place.to_owned(), 0));
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

    fn prose(&mut self, text: &str, record: &mut ReportBuilder) {
        if text.starts_with("-----") || text.starts_with("=====") {
            self.explaining = None;
        } else if let Some((place, lines)) = &mut self.explaining {
            *lines += 1;
            if *lines <= FAILURE_LINES {
                record.explain(place, text);
            }
        }
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        all_passed(line.text).is_some()
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        failed(line.text).is_some()
    }
}

/// Ends a report: cases without a line of their own are counted by the totals alone.
fn add_cases(totals: &Totals, span: Span, record: &mut ReportBuilder) {
    let Totals { total, passed, failed, expected, skipped } = *totals;
    if passed + failed + expected + skipped != total {
        record.remark(format!(
            "{total} test cases are not {passed} passed, {} failed and {skipped} skipped",
            failed + expected
        ));
    }
    // Each failing assertion is listed as a case: one test case may hold several.
    let listed = record.count(CaseStatus::Fail).max(failed);
    record.plan(total + listed - failed);
    record.claim(listed);
    add_unnamed(record, CaseStatus::Pass, passed, span);
    add_unnamed(record, CaseStatus::Skip, expected + skipped, span);
    record.end();
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

/// Reads `test cases: 4 | 2 passed | 1 failed | 1 skipped`; parts that are zero are left out.
fn totals(text: &str, label: &str) -> Option<Totals> {
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
