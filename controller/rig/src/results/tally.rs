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

/// Counts the marks that a quiet runner prints, one for each case: `.`, and `!` if ignored.
///
/// What a case prints stands on the same line, so that some dots are only possible marks.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct ProgressMarks {
    sure: u64,
    possible: u64,
}

impl ProgressMarks {
    /// Counts a line that holds nothing but marks; tells whether it is one.
    pub(super) fn line(&mut self, text: &str) -> bool {
        let known = text.bytes().all(is_mark);
        self.sure += if known { text.len() as u64 } else { 0 };
        known
    }

    /// Counts what may be marks at both ends of a line of prose.
    pub(super) fn prose(&mut self, text: &str) {
        let ahead = text.bytes().take_while(|&byte| is_mark(byte)).count();
        let behind = text.bytes().rev().take_while(|&byte| is_mark(byte)).count();
        self.possible += (ahead + behind) as u64;
    }

    /// Remarks on a count of cases that the marks contradict, and begins to count anew.
    pub(super) fn check(&mut self, count: u64, record: &mut ReportBuilder) {
        if !(self.sure..=self.sure + self.possible).contains(&count) {
            let seen = self.sure;
            record.remark(format!("the summary counts {count} cases, {seen} marks were seen"));
        }
        *self = Self::default();
    }
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
