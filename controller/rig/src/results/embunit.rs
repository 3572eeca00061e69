//! embUnit's text runner, as RIOT prints it.
//!
//! Cases are dots without names, with an `F` behind that of a failed one, or lines `1) OK name` of the text
//! outputter: the summary gives their number, and dots or lines must agree with it. RIOT's `[SUCCESS]` is not
//! read: drivers print it after their set-up and `[FAILED]` later, so that it ends nothing.

use jig_model::result::{CaseStatus, ResultFormat};

use super::choice::Credibility;
use super::grammar::{FormatSpec, Grammar, NO_SIGNS};
use super::record::ReportBuilder;
use super::scan::{is_ident, leading_number, number};
use super::tally::{HeldCases, ProgressMarks, add_unnamed, is_marks};
use crate::console::lines::ReportLine;

/// Reads embUnit's lines.
#[derive(Debug, Default)]
struct Embunit {
    dots: ProgressMarks,
    /// A log line may look like a case, so that they count only with the summary.
    held: HeldCases,
    /// The suite that the text outputter named last.
    suite: Option<String>,
    /// Lines of the text outputter.
    lines: u64,
    /// The summary was read.
    summed: bool,
}

pub(super) const EMBUNIT: FormatSpec = FormatSpec {
    format: ResultFormat::Embunit,
    family: ResultFormat::Embunit,
    begins: b"Or.F0123456789",
    holds: &[".c ", ".c:", ".h ", ".h:", ".cc ", ".cc:", ".cpp ", ".cpp:", ".inc ", ".inc:"],
    opens,
    tells_size: |_| true,
    grammar: |_| Box::new(Embunit::default()),
    failing: &NO_SIGNS,
};

fn opens(line: &ReportLine<'_>) -> bool {
    let text = line.text;
    text.starts_with('.')
        || summary(text).is_some()
        || numbered(text).is_some()
        || failure(text).is_some()
}

impl Grammar for Embunit {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        if self.dots.line_with_failures(line.text) {
            return true;
        }
        if let Some((count, failures)) = summary(line.text) {
            record.plan(count);
            record.claim(failures);
            self.dots.check_failures(failures, record);
            if self.lines > 0 {
                record.compare("cases", count, self.lines);
            } else {
                self.dots.check(count, 0, record);
            }
            let passed = self.held.count(CaseStatus::Pass);
            let failed = self.held.count(CaseStatus::Fail);
            self.held.release(record);
            self.lines = 0;
            let passes = count.saturating_sub(failures).saturating_sub(passed);
            add_unnamed(record, CaseStatus::Pass, passes, line.span);
            add_unnamed(record, CaseStatus::Fail, failures.saturating_sub(failed), line.span);
            self.summed = true;
            record.end();
        } else if let Some((good, body)) = numbered(line.text) {
            let (name, message) = match body.split_once(" (").filter(|_| !good) {
                Some((name, rest)) => (name, rest.split_once(") ").map_or(rest, |(_, m)| m)),
                None => (body, ""),
            };
            let status = if good { CaseStatus::Pass } else { CaseStatus::Fail };
            let suite = self.suite.as_deref().map(|suite| format!("{suite}::"));
            let name = format!("{}{name}", suite.unwrap_or_default());
            self.held.push(&name, status, message, line.span);
            self.lines += 1;
        } else if let Some(suite) = line.text.strip_prefix("- ").filter(|_| !self.summed) {
            // A list in a log may look like it; it only names cases.
            self.suite = is_suite(suite).then(|| suite.to_owned());
            return false;
        } else if let Some((suite, case, message)) = failure(line.text) {
            let name = format!("{suite}::{case}");
            self.held.push(&name, CaseStatus::Fail, message, line.span);
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

    fn begins_more(&self, line: &ReportLine<'_>) -> bool {
        is_marks(line.text)
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        failure(line.text).is_some() || numbered(line.text).is_some()
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

/// Reads `1) OK test_push` and `2) NG test_pop (file.c 12) message`.
fn numbered(text: &str) -> Option<(bool, &str)> {
    let (_, rest) = leading_number(text)?;
    let rest = rest.strip_prefix(") ")?;
    let (good, name) = match rest.strip_prefix("OK ") {
        Some(name) => (true, name),
        None => (false, rest.strip_prefix("NG ")?),
    };
    (!name.is_empty()).then_some((good, name))
}

fn is_suite(text: &str) -> bool {
    (1..=256).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
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
