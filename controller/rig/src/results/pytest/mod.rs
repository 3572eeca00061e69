//! pytest's terminal report, verbose or not, also of xdist.
//!
//! A quiet session prints one character for each test: those tests have no name and are counted.
//! With `-q` there is neither head nor frame, and no report is opened.

use jig_model::result::{CaseStatus, ResultFormat};

use self::lines::{Counts, collected, collection_errors, framed, progress, summary, test_line};
use super::grammar::{AssertionSigns, FormatSpec, Grammar};
use super::record::{CaseOutcome, ReportBuilder};
use super::tally::add_unnamed;
use crate::console::lines::ReportLine;

mod lines;

/// Reads pytest's lines.
#[derive(Debug, Default)]
struct Pytest {
    headed: bool,
    collected: Option<u64>,
    /// Tests that only a character stands for.
    shown: Counts,
    /// Characters that may be a test's output.
    possible: Counts,
    /// A line with a name and an outcome was read: every test is named.
    verbose: bool,
    /// Below the head of the short summary, which repeats failures.
    repeating: bool,
    /// Below the head of a section that quotes failures or output.
    quoting: bool,
}

/// Heads of the sections that list failures and errors of tests; failures that are expected are
/// listed below `XFAILURES`.
static FAILING: AssertionSigns = AssertionSigns::new("^=+ (?:FAILURES|ERRORS) =+$");

pub(super) const PYTEST: FormatSpec = FormatSpec {
    format: ResultFormat::Pytest,
    family: ResultFormat::Pytest,
    begins: b"=",
    holds: &[],
    opens,
    tells_size: |_| true,
    grammar: |_| Box::new(Pytest::default()),
    failing: &FAILING,
};

const HEAD: &str = "test session starts";

fn opens(line: &ReportLine<'_>) -> bool {
    framed(line.text).is_some_and(|inside| inside == HEAD || summary(inside).is_some())
}

impl Grammar for Pytest {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        let text = line.text;
        if let Some(inside) = framed(text) {
            if inside == HEAD {
                if self.headed {
                    record.begins_again();
                }
                *self = Self { headed: true, ..Self::default() };
            } else if let Some(summary) = summary(inside) {
                self.end(&summary, line, record);
            } else {
                self.repeating = inside == "short test summary info";
                self.quoting = true;
            }
        } else if let Some(count) = collected(text).filter(|_| !self.quoting) {
            self.collected = Some(count);
            record.plan(count);
            if collection_errors(text).is_some() {
                record.claim_any();
            }
        } else if let Some(name) = self.repeated(text) {
            let (name, message) = name.split_once(" - ").unwrap_or((name, ""));
            if !self.verbose && !record.knows(name) {
                record.decide(name, name, CaseOutcome::of(CaseStatus::Fail), line.span);
            }
            record.explain(name, message);
        } else if let Some(test) = test_line(text).filter(|_| !self.repeating) {
            self.verbose = true;
            if !test.is_part {
                record.decide(test.name, test.name, CaseOutcome::of(test.status), line.span);
            } else if test.status == CaseStatus::Fail {
                let name = format!("{} (sub-test at {})", test.name, line.span.start);
                record.decide(&name, &name, CaseOutcome::of(test.status), line.span);
            }
        } else if let Some(line) = progress(text).filter(|_| self.headed && !self.quoting) {
            let sum = if line.sure { &mut self.shown } else { &mut self.possible };
            sum.add(&line.counts);
        } else {
            return false;
        }
        true
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        framed(line.text).is_some_and(|inside| summary(inside).is_some())
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        test_line(line.text).is_some() || line.text.starts_with("FAILED ")
    }
}

impl Pytest {
    /// Reads `FAILED test_x.py::test_y - assert 1 == 2` of the short summary.
    fn repeated<'a>(&self, text: &'a str) -> Option<&'a str> {
        let (word, name) = text.split_once(' ').filter(|_| self.repeating)?;
        let word = word.split(['(', '[']).next()?;
        let fails = matches!(word, "FAILED" | "ERROR" | "SUBFAIL" | "SUBFAILED");
        (fails && name.contains(".py")).then_some(name)
    }

    fn end(&mut self, summary: &Counts, line: &ReportLine<'_>, record: &mut ReportBuilder) {
        let total = summary.passed + summary.failed + summary.skipped;
        record.claim(summary.failed + summary.errors);
        let named = record.count(CaseStatus::Fail);
        if self.verbose {
            record.plan(self.collected.unwrap_or(total));
            record.compare("passes", summary.passed, record.count(CaseStatus::Pass));
            record.compare("skipped", summary.skipped, record.count(CaseStatus::Skip));
        } else {
            record.plan(self.collected.unwrap_or(total));
            self.check_characters(summary, record);
            let failed = summary.failed.saturating_sub(named);
            add_unnamed(record, CaseStatus::Fail, failed, line.span);
            add_unnamed(record, CaseStatus::Pass, summary.passed, line.span);
            add_unnamed(record, CaseStatus::Skip, summary.skipped, line.span);
        }
        record.end();
    }

    /// Compares the characters that were shown with the summary.
    fn check_characters(&self, summary: &Counts, record: &mut ReportBuilder) {
        let mut most = self.shown;
        most.add(&self.possible);
        if most.all() == 0 {
            return;
        }
        let kinds = ["passes", "failures", "skipped", "errors"];
        let counts = summary.kinds().into_iter().zip(self.shown.kinds()).zip(most.kinds());
        for (what, ((told, least), most)) in kinds.into_iter().zip(counts) {
            if !(least..=most).contains(&told) {
                record.compare(what, told, if told < least { least } else { most });
            }
        }
        // A failure that a character shows is no output of a test that the summary can pass over.
        if summary.failed + summary.errors == 0 && self.possible.failed + self.possible.errors > 0 {
            record.remark("a character shows a failure that the summary does not count".to_owned());
        }
    }
}
