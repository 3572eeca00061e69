//! embUnit's text runner, as RIOT prints it.
//!
//! Passing cases are dots without names: the summary gives their number, and the dots must agree
//! with it. RIOT's `[SUCCESS]` is not read: drivers print it after their set-up and `[FAILED]`
//! later, so that it ends nothing.

use jig_model::result::{CaseStatus, ResultFormat};

use super::choice::Credibility;
use super::grammar::{FormatSpec, Grammar};
use super::record::{CaseOutcome, ReportBuilder};
use super::scan::{is_ident, leading_number, number};
use super::tally::{ProgressMarks, add_unnamed};
use crate::console::lines::{ReportLine, Span};

/// Most failing cases kept until the summary; the summary counts the others.
const MAX_FAILURES: usize = 1000;

/// Reads embUnit's lines.
#[derive(Debug, Default)]
struct Embunit {
    dots: ProgressMarks,
    /// Failing cases: key, message, place. A log line may look like one, so that they count
    /// only with the summary.
    failures: Vec<(String, String, Span)>,
    /// The summary was read.
    summed: bool,
}

pub(super) const EMBUNIT: FormatSpec = FormatSpec {
    format: ResultFormat::Embunit,
    family: ResultFormat::Embunit,
    begins: b"Or.",
    holds: Some(b'('),
    opens,
    tells_size: |_| true,
    grammar: |_| Box::new(Embunit::default()),
};

fn opens(line: &ReportLine<'_>) -> bool {
    line.text.starts_with('.') || summary(line.text).is_some() || failure(line.text).is_some()
}

impl Grammar for Embunit {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        if self.dots.line(line.text) {
            return true;
        }
        if let Some((count, failures)) = summary(line.text) {
            record.plan(count);
            record.claim(failures);
            self.dots.check(count, record);
            let named = self.failures.len() as u64;
            for (name, message, span) in self.failures.drain(..) {
                let message = Some(message.as_str());
                let outcome = CaseOutcome { message, ..CaseOutcome::of(CaseStatus::Fail) };
                record.decide(&name, &name, outcome, span);
            }
            add_unnamed(record, CaseStatus::Pass, count.saturating_sub(failures), line.span);
            add_unnamed(record, CaseStatus::Fail, failures.saturating_sub(named), line.span);
            self.summed = true;
            record.end();
        } else if let Some((suite, case, message)) = failure(line.text) {
            if self.failures.len() < MAX_FAILURES {
                let name = format!("{suite}::{case}");
                self.failures.push((name, message.to_owned(), line.span));
            }
        } else {
            return false;
        }
        true
    }

    fn prose(&mut self, text: &str, _record: &mut ReportBuilder) {
        self.dots.prose(text);
    }

    fn credibility(&self) -> Credibility {
        if self.summed { Credibility::Report } else { Credibility::Guess }
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        summary(line.text).is_some() && line.text.ends_with(')')
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        failure(line.text).is_some()
    }
}

/// Reads `OK (3 tests)` and `run 3 failures 1` as tests and failures.
fn summary(text: &str) -> Option<(u64, u64)> {
    if let Some(inside) = text.strip_prefix("OK (") {
        return Some((number(inside.strip_suffix(" tests)")?)?, 0));
    }
    let (count, rest) = leading_number(text.strip_prefix("run ")?)?;
    let failures = number(rest.strip_prefix(" failures ")?)?;
    Some((count, failures))
}

/// Reads `suite.case (file.c 12) message`.
fn failure(text: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = text.split_once(" (")?;
    let (place, message) = rest.split_once(") ")?;
    let (file, line) = place.rsplit_once([' ', ':'])?;
    number(line)?;
    let source = [".c", ".h", ".cc", ".cpp", ".inc"].iter().any(|end| file.ends_with(end));
    let (suite, case) = name.rsplit_once('.')?;
    let named = !suite.is_empty() && suite.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    (source && named && is_ident(case) && !message.is_empty()).then_some((suite, case, message))
}
