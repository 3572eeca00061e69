//! pytest's terminal report, verbose or not.
//!
//! A quiet session prints one character for each test: those tests have no name and are counted.
//! With `-q` there is neither head nor frame, and no report is opened.

use std::collections::HashSet;

use jig_model::result::{CaseStatus, ResultFormat};

use super::grammar::{FormatSpec, Grammar};
use super::record::{CaseOutcome, ReportBuilder};
use super::scan::leading_number;
use super::tally::add_unnamed;
use crate::console::lines::ReportLine;

/// Reads pytest's lines.
#[derive(Debug, Default)]
struct Pytest {
    headed: bool,
    collected: Option<u64>,
    /// Tests that only a character stands for.
    characters: u64,
    /// A line with a name and an outcome was read: every test is named.
    verbose: bool,
    /// Failing tests that only the short summary names.
    failed: HashSet<String>,
    /// Below the head of the short summary, which repeats failures.
    repeating: bool,
}

pub(super) const PYTEST: FormatSpec = FormatSpec {
    format: ResultFormat::Pytest,
    family: ResultFormat::Pytest,
    begins: b"=",
    holds: None,
    opens,
    tells_size: |_| true,
    grammar: |_| Box::new(Pytest::default()),
};

fn opens(line: &ReportLine<'_>) -> bool {
    framed(line.text)
        .is_some_and(|inside| inside == "test session starts" || summary(inside).is_some())
}

impl Grammar for Pytest {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        let text = line.text;
        if let Some(inside) = framed(text) {
            if inside == "test session starts" {
                if self.headed {
                    record.begins_again();
                }
                *self = Self { headed: true, ..Self::default() };
            } else if let Some(summary) = summary(inside) {
                self.end(&summary, line, record);
            } else {
                self.repeating = inside == "short test summary info";
            }
        } else if let Some(count) = collected(text) {
            self.collected = Some(count);
            record.plan(count);
        } else if let Some((name, status)) = self.repeated(text) {
            let (name, message) = name.split_once(" - ").unwrap_or((name, ""));
            if !self.verbose && self.failed.insert(name.to_owned()) {
                record.decide(name, name, CaseOutcome::of(status), line.span);
            }
            record.explain(name, message);
        } else if let Some((name, status)) = case(text).filter(|_| !self.repeating) {
            self.verbose = true;
            record.decide(name, name, CaseOutcome::of(status), line.span);
        } else if let Some(count) = progress(text).filter(|_| self.collected.is_some()) {
            self.characters += count;
        } else {
            return false;
        }
        true
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        framed(line.text).is_some_and(|inside| summary(inside).is_some())
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        case(line.text).is_some() || line.text.starts_with("FAILED ")
    }
}

impl Pytest {
    /// Reads `FAILED test_x.py::test_y - assert 1 == 2` of the short summary.
    fn repeated<'a>(&self, text: &'a str) -> Option<(&'a str, CaseStatus)> {
        let (word, name) = text.split_once(' ').filter(|_| self.repeating)?;
        (matches!(word, "FAILED" | "ERROR") && name.contains(".py"))
            .then_some((name, CaseStatus::Fail))
    }

    fn end(&mut self, summary: &Summary, line: &ReportLine<'_>, record: &mut ReportBuilder) {
        let total = summary.passed + summary.failed + summary.skipped;
        record.plan(self.collected.unwrap_or(total));
        record.claim(summary.failed + summary.errors);
        if !self.verbose {
            let seen = self.characters;
            if seen > 0 && seen != total + summary.errors {
                record.remark(format!("the summary counts {total} tests, {seen} were shown"));
            }
            let named = record.count(CaseStatus::Fail);
            let failed = summary.failed.saturating_sub(named);
            add_unnamed(record, CaseStatus::Pass, summary.passed, line.span);
            add_unnamed(record, CaseStatus::Fail, failed, line.span);
            add_unnamed(record, CaseStatus::Skip, summary.skipped, line.span);
        } else if record.count(CaseStatus::Pass) != summary.passed {
            let (count, seen) = (summary.passed, record.count(CaseStatus::Pass));
            record.remark(format!("the summary claims {count} passes, {seen} were seen"));
        }
        self.repeating = false;
        record.end();
    }
}

/// Reads the text between two rows of `=`.
fn framed(text: &str) -> Option<&str> {
    let inside = text.trim_matches('=');
    let inside = inside.strip_prefix(' ')?.strip_suffix(' ')?;
    (text.starts_with('=') && text.ends_with('=')).then_some(inside)
}

#[derive(Debug, Default)]
struct Summary {
    passed: u64,
    failed: u64,
    skipped: u64,
    errors: u64,
}

/// Reads `3 passed, 1 failed, 2 warnings in 0.12s`.
fn summary(text: &str) -> Option<Summary> {
    let (counts, time) = text.rsplit_once(" in ")?;
    time.split(' ').next()?.strip_suffix('s')?.parse::<f64>().ok()?;
    let mut summary = Summary::default();
    if counts == "no tests ran" {
        return Some(summary);
    }
    for part in counts.split(", ") {
        let (count, label) = leading_number(part)?;
        match label.strip_prefix(' ')? {
            // An expected failure that passes fails only if strict, and is then called so.
            "passed" | "xpassed" => summary.passed += count,
            "failed" => summary.failed += count,
            "skipped" | "xfailed" => summary.skipped += count,
            "error" | "errors" => summary.errors += count,
            "warning" | "warnings" | "deselected" | "rerun" => {}
            _ => return None,
        }
    }
    Some(summary)
}

/// Reads `collected 4 items` and `collected 5 items / 1 deselected / 4 selected`.
fn collected(text: &str) -> Option<u64> {
    let (count, rest) = leading_number(text.strip_prefix("collected ")?)?;
    let mut parts = rest.split(" / ");
    matches!(parts.next()?, " item" | " items").then_some(())?;
    let selected = parts.filter_map(|part| part.strip_suffix(" selected")).next();
    selected.map_or(Some(count), super::scan::number)
}

/// Reads `test_x.py::test_y PASSED [ 33%]`.
fn case(text: &str) -> Option<(&str, CaseStatus)> {
    let words = [
        (" PASSED", CaseStatus::Pass),
        (" FAILED", CaseStatus::Fail),
        (" ERROR", CaseStatus::Fail),
        (" SKIPPED", CaseStatus::Skip),
        (" XFAIL", CaseStatus::Skip),
        (" XPASS", CaseStatus::Pass),
    ];
    let (name, _) = text.split_once(".py::")?;
    let (at, word, status) = words
        .into_iter()
        .filter_map(|(word, status)| Some((text.rfind(word)?, word, status)))
        .max_by_key(|(at, ..)| *at)?;
    let tail = text.get(at + word.len()..)?.trim_ascii();
    let tail_ok = tail.is_empty() || tail.starts_with(['(', '[']) && tail.ends_with([')', ']']);
    let whole = text.get(..at)?;
    (tail_ok && !name.is_empty() && !name.contains(' ')).then_some((whole, status))
}

/// Counts the characters in `test_x.py ..F.s    [ 50%]`, and in a line that goes on with them.
fn progress(text: &str) -> Option<u64> {
    let body = text.strip_suffix("%]")?.rsplit_once('[')?.0.trim_ascii_end();
    let marks = match body.rsplit_once(' ') {
        Some((file, marks)) if file.ends_with(".py") => marks,
        None => body,
        Some(_) => return None,
    };
    marks.bytes().all(|b| b".FEsxX".contains(&b)).then_some(marks.len() as u64)
}
