//! What formats share that count cases without naming them.
//!
//! Owns the names of such cases and the count of progress marks. Refuses to guess: a count that
//! the marks contradict is a remark.

use jig_model::result::CaseStatus;

use super::record::{CaseOutcome, ReportBuilder};
use super::scan::leading_number;
use crate::console::lines::Span;

/// Most cases that one count may stand for; as many as a report keeps.
const MAX_UNNAMED: u64 = 100_000;

/// Adds cases that only a count tells of.
pub(super) fn add_unnamed(record: &mut ReportBuilder, status: CaseStatus, count: u64, span: Span) {
    if count > MAX_UNNAMED {
        record.remark(format!("the summary counts {count} cases: too many to be listed"));
        return;
    }
    for _ in 0..count {
        let name = format!("case {}", record.len() + 1);
        record.decide(&name, &name, CaseOutcome::of(status), span);
    }
}

/// Most cases that are held.
const MAX_HELD: usize = 1000;
/// Longest text of a held case.
const MAX_TEXT: usize = 1024;

#[derive(Debug)]
struct HeldCase {
    name: String,
    message: String,
    status: CaseStatus,
    span: Span,
}

/// Cases that count only with a later line: one that proves that the report is one, or that says
/// whether they were expected to fail. Beyond a limit they are counted only.
#[derive(Debug, Default)]
pub(super) struct HeldCases {
    cases: Vec<HeldCase>,
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl HeldCases {
    pub(super) fn push(&mut self, name: &str, status: CaseStatus, message: &str, span: Span) {
        match status {
            CaseStatus::Pass => self.passed += 1,
            CaseStatus::Skip => self.skipped += 1,
            CaseStatus::Fail | CaseStatus::Unfinished => self.failed += 1,
        }
        if self.cases.len() < MAX_HELD {
            let short = |text: &str| text.chars().take(MAX_TEXT).collect();
            let (name, message) = (short(name), short(message));
            self.cases.push(HeldCase { name, message, status, span });
        }
    }

    /// Tells whether the last held case has a name.
    pub(super) fn last_is(&self, name: &str) -> bool {
        self.cases.last().is_some_and(|case| case.name == name)
    }

    /// Tells whether a case with a name is held.
    pub(super) fn holds(&self, name: &str) -> bool {
        self.cases.iter().any(|case| case.name == name)
    }

    /// Adds a line to the last case's message.
    pub(super) fn explain(&mut self, line: &str) {
        if let Some(case) = self.cases.last_mut()
            && case.message.len() + line.len() < MAX_TEXT
        {
            if !case.message.is_empty() {
                case.message.push('\n');
            }
            case.message.push_str(line);
        }
    }

    pub(super) fn count(&self, status: CaseStatus) -> u64 {
        match status {
            CaseStatus::Pass => self.passed,
            CaseStatus::Skip => self.skipped,
            CaseStatus::Fail | CaseStatus::Unfinished => self.failed,
        }
    }

    /// Passes the cases on to the report.
    pub(super) fn release(&mut self, record: &mut ReportBuilder) {
        for case in std::mem::take(self).cases {
            let message = Some(case.message.as_str());
            let outcome = CaseOutcome { message, ..CaseOutcome::of(case.status) };
            record.decide(&case.name, &case.name, outcome, case.span);
        }
    }
}

/// Counts the marks that a quiet runner prints, one for each case: `.`, and `!` if ignored. Some print `F` behind
/// the mark of a case that has failed.
///
/// What a case prints stands on the same line, so that some dots are only possible marks.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct ProgressMarks {
    sure: u64,
    possible: u64,
    /// Sure marks of ignored cases.
    ignored: u64,
    /// Marks of failed cases.
    failed: u64,
}

impl ProgressMarks {
    /// Counts a line that holds nothing but marks; tells whether it is one.
    pub(super) fn line(&mut self, text: &str) -> bool {
        let known = is_marks(text);
        if known {
            self.sure += text.len() as u64;
            self.ignored += text.bytes().filter(|&byte| byte == b'!').count() as u64;
        }
        known
    }

    /// As [`Self::line`], of a runner that marks failed cases by `F`. A line of such marks alone is one behind
    /// other marks.
    pub(super) fn line_with_failures(&mut self, text: &str) -> bool {
        let failed = text.bytes().filter(|&byte| byte == b'F').count();
        let marks = text.len() - failed;
        let known = text.bytes().all(|byte| is_mark(byte) || byte == b'F')
            && (marks > 0 || !self.is_empty());
        if failed == 0 || !known {
            return self.line(text);
        }
        self.failed += failed as u64;
        self.sure += marks as u64;
        true
    }

    /// Remarks on marks of failed cases that the summary does not know of.
    pub(super) fn check_failures(&mut self, failures: u64, record: &mut ReportBuilder) {
        let marked = std::mem::take(&mut self.failed);
        if marked > failures {
            record.remark(format!(
                "the summary counts {failures} failed cases, {marked} marks of such (F) were seen"
            ));
        }
    }

    /// Tells whether no line of marks was counted.
    pub(super) fn is_empty(&self) -> bool {
        self.sure == 0
    }

    /// Counts what may be marks at both ends of a line of prose.
    pub(super) fn prose(&mut self, text: &str) {
        let ahead = text.bytes().take_while(|&byte| is_mark(byte)).count();
        let behind = text.bytes().rev().take_while(|&byte| is_mark(byte)).count();
        self.possible += (ahead + behind) as u64;
    }

    /// Remarks on counts of cases, and of ignored ones, that the marks contradict, and begins to
    /// count anew.
    pub(super) fn check(&mut self, count: u64, ignored: u64, record: &mut ReportBuilder) {
        let shown = self.ignored;
        if !(shown..=shown + self.possible).contains(&ignored) {
            record.compare("ignored", ignored, shown);
        }
        if !(self.sure..=self.sure + self.possible).contains(&count) {
            let seen = self.sure;
            record.remark(format!("the summary counts {count} cases, {seen} marks were seen"));
        }
        *self = Self::default();
    }
}

/// Tells whether a text holds nothing but marks.
pub(super) fn is_marks(text: &str) -> bool {
    text.bytes().all(is_mark)
}

fn is_mark(byte: u8) -> bool {
    matches!(byte, b'.' | b'!')
}

/// Reads ` 3 passed` as a count, whatever blanks stand around it.
pub(super) fn labelled(text: &str, label: &str) -> Option<u64> {
    let (count, rest) = leading_number(text.trim_ascii())?;
    (rest.strip_prefix(' ')?.trim_ascii() == label).then_some(count)
}

/// Reads the text in front of a label's count, `tests: 3`.
pub(super) fn after_label(text: &str, label: &str) -> Option<u64> {
    super::scan::number(text.trim_ascii().strip_prefix(label)?.strip_prefix(": ")?)
}
