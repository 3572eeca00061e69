//! Check, the unit test framework for C.
//!
//! The totals come first. Which lines follow depends on the verbosity: failing cases, or all of
//! them. Cases without a line of their own are counted by the totals alone: a report that is only
//! a line of totals proves as many passes without names as that line counts, and no more.

use jig_model::result::{CaseStatus, ResultFormat};

use super::grammar::{FormatSpec, Grammar, NO_SIGNS};
use super::record::{CaseOutcome, ReportBuilder};
use super::scan::{leading_number, number};
use super::tally::{add_unnamed, after_label};
use crate::console::lines::{ReportLine, Span};

/// Reads Check's lines.
#[derive(Debug, Default)]
struct Check {
    headed: bool,
    totals: Option<(Totals, Span)>,
}

pub(super) const CHECK: FormatSpec = FormatSpec {
    format: ResultFormat::Check,
    family: ResultFormat::Check,
    begins: b"R0123456789",
    holds: &[":P:", ":F:", ":E:", ":S:"],
    opens,
    tells_size: |_| true,
    grammar: |_| Box::new(Check::default()),
    failing: &NO_SIGNS,
};

const HEAD: &str = "Running suite(s): ";

fn opens(line: &ReportLine<'_>) -> bool {
    line.text.starts_with(HEAD) || totals(line.text).is_some() || detail(line.text).is_some()
}

impl Grammar for Check {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        if line.text.starts_with(HEAD) {
            if self.headed || self.totals.is_some() {
                record.begins_again();
            }
            self.headed = true;
        } else if let Some(totals) = totals(line.text) {
            if self.totals.is_some() {
                record.begins_again();
            }
            let failures = totals.failures + totals.errors;
            if failures > totals.checks || (totals.percent == 100) != (failures == 0) {
                let Totals { percent, checks, .. } = totals;
                record.remark(format!("{percent}% contradicts {failures} of {checks} failing"));
            }
            record.plan(totals.checks);
            record.claim(failures);
            self.totals = Some((totals, line.span));
            record.end();
        } else if let Some((name, outcome)) = detail(line.text) {
            record.list(&name, &name, outcome, line.span);
        } else {
            return false;
        }
        true
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        // Behind a zero no further digit can follow.
        totals(line.text).is_some_and(|totals| totals.errors == 0)
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        detail(line.text).is_some()
    }

    /// Adds the cases that had no line. Where passing cases have lines, all of them must.
    fn finish(&mut self, record: &mut ReportBuilder) {
        let Some((totals, span)) = self.totals.take() else { return };
        if record.ended() && record.count(CaseStatus::Pass) == 0 {
            let failures = totals.failures + totals.errors;
            record.goes_on();
            add_unnamed(record, CaseStatus::Pass, totals.checks.saturating_sub(failures), span);
            record.end();
        }
    }
}

#[derive(Debug)]
struct Totals {
    percent: u64,
    checks: u64,
    failures: u64,
    errors: u64,
}

/// Reads `66%: Checks: 3, Failures: 1, Errors: 0`.
fn totals(text: &str) -> Option<Totals> {
    let (percent, rest) = leading_number(text)?;
    let mut parts = rest.strip_prefix("%: ")?.split(", ");
    let mut count = |label| after_label(parts.next()?, label);
    let (checks, failures, errors) = (count("Checks")?, count("Failures")?, count("Errors")?);
    parts.next().is_none().then_some(Totals { percent, checks, failures, errors })
}

/// Reads `file.c:12:F:core:test_x:0: message`: place, result, test case, function, iteration.
fn detail(text: &str) -> Option<(String, CaseOutcome<'_>)> {
    let at = [":P:", ":F:", ":E:", ":S:"].iter().filter_map(|mark| text.find(mark)).min()?;
    let (place, rest) = text.split_at_checked(at)?;
    number(place.rsplit_once(':')?.1)?;
    let (word, rest) = rest.get(1..)?.split_once(':')?;
    let (case, message) = rest.split_once(": ").unwrap_or((rest.trim_end_matches(':'), ""));
    let (name, iteration) = case.rsplit_once(':')?;
    let iteration = number(iteration)?;
    let (group, function) = name.split_once(':')?;
    let status = match word {
        "P" => CaseStatus::Pass,
        "S" => CaseStatus::Skip,
        _ => CaseStatus::Fail,
    };
    let message = (status != CaseStatus::Pass).then_some(message);
    let loops = if iteration > 0 { format!("[{iteration}]") } else { String::new() };
    let name = format!("{group}::{function}{loops}");
    Some((name, CaseOutcome { message, ..CaseOutcome::of(status) }))
}
