//! AUnit and ArduinoUnit.
//!
//! AUnit announces its tests. ArduinoUnit prints no head and its lines resemble prose, so that they
//! count only with its summary. What a verbosity leaves out the summary counts.

use jig_model::result::{CaseStatus, ResultFormat};

use super::choice::Credibility;
use super::grammar::{AssertionSigns, FormatSpec, Grammar};
use super::record::{CaseOutcome, ReportBuilder};
use super::scan::leading_number;
use super::tally::{HeldCases, add_unnamed, labelled};
use crate::console::lines::ReportLine;

/// Reads the lines of AUnit and ArduinoUnit.
#[derive(Debug, Default)]
struct Aunit {
    headed: bool,
    summed: bool,
    /// Cases without a head.
    held: HeldCases,
    assertion: Option<String>,
}

const ASSERTION: &str = "Assertion failed: ";

static FAILING: AssertionSigns = AssertionSigns::new(ASSERTION);

pub(super) const AUNIT: FormatSpec = FormatSpec {
    format: ResultFormat::Aunit,
    family: ResultFormat::Aunit,
    begins: b"TA",
    holds: &[],
    opens,
    tells_size: |_| true,
    grammar: |_| Box::new(Aunit::default()),
    failing: &FAILING,
};

fn opens(line: &ReportLine<'_>) -> bool {
    // A failing assertion of ArduinoUnit may be the first line of all.
    let assertion = || line.text.starts_with(ASSERTION);
    head(line.text).is_some()
        || summary(line.text).is_some()
        || case(line.text).is_some()
        || assertion()
}

impl Grammar for Aunit {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        let text = line.text;
        if let Some(count) = head(text) {
            if self.headed {
                record.begins_again();
            }
            self.headed = true;
            record.plan(count);
        } else if let Some(summary) = summary(text) {
            self.end(&summary, line, record);
        } else if let Some((name, status)) = case(text) {
            let message = self.assertion.take().filter(|_| status == CaseStatus::Fail);
            let message = message.as_deref().unwrap_or_default();
            if self.headed {
                let outcome = CaseOutcome { message: Some(message), ..CaseOutcome::of(status) };
                record.decide(name, name, outcome, line.span);
            } else {
                self.held.push(name, status, message, line.span);
            }
        } else {
            return false;
        }
        true
    }

    fn prose(&mut self, text: &str, _record: &mut ReportBuilder) {
        if self.assertion.is_none() && text.contains(ASSERTION) {
            self.assertion = Some(text.to_owned());
        }
    }

    fn credibility(&self) -> Credibility {
        if self.headed || self.summed { Credibility::Report } else { Credibility::Guess }
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        summary(line.text).is_some()
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        line.text.starts_with("Test ")
    }
}

impl Aunit {
    fn end(&mut self, summary: &Summary, line: &ReportLine<'_>, record: &mut ReportBuilder) {
        let Summary { passed, failed, skipped, total } = *summary;
        if passed + failed + skipped != total {
            record.remark(format!(
                "{total} tests are not {passed} passed, {failed} failed and {skipped} skipped"
            ));
        }
        record.plan(total);
        record.claim(failed);
        self.summed = true;
        // Without a head, a case that the verbosity leaves out has no line.
        let held = [CaseStatus::Pass, CaseStatus::Fail, CaseStatus::Skip]
            .map(|status| self.held.count(status));
        self.held.release(record);
        let told = [
            ("passes", CaseStatus::Pass, passed, held[0]),
            ("failures", CaseStatus::Fail, failed, held[1]),
            ("skipped", CaseStatus::Skip, skipped, held[2]),
        ];
        for (what, status, told, held) in told {
            if self.headed || held > 0 {
                record.compare(what, told, record.count(status));
            } else {
                add_unnamed(record, status, told, line.span);
            }
        }
        record.end();
    }
}

/// Reads `TestRunner started on 4 test(s).`
fn head(text: &str) -> Option<u64> {
    let (count, rest) = leading_number(text.strip_prefix("TestRunner started on ")?)?;
    (rest == " test(s).").then_some(count)
}

/// Reads `Test foo passed.`
fn case(text: &str) -> Option<(&str, CaseStatus)> {
    let body = text.strip_prefix("Test ")?.strip_suffix('.')?;
    let ends = [
        (" passed", CaseStatus::Pass),
        (" failed", CaseStatus::Fail),
        (" timed out", CaseStatus::Fail),
        (" skipped", CaseStatus::Skip),
    ];
    let (name, status) =
        ends.into_iter().find_map(|(end, status)| Some((body.strip_suffix(end)?, status)))?;
    (!name.is_empty() && !name.contains(' ')).then_some((name, status))
}

struct Summary {
    passed: u64,
    failed: u64,
    skipped: u64,
    total: u64,
}

/// Reads `TestRunner summary: 1 passed, 1 failed, 0 skipped, 0 timed out, out of 2 test(s).` and
/// `Test summary: 1 passed, 1 failed, and 0 skipped, out of 2 test(s).`
fn summary(text: &str) -> Option<Summary> {
    let body = text
        .strip_prefix("TestRunner summary: ")
        .or_else(|| text.strip_prefix("Test summary: "))?;
    let mut parts = body.strip_suffix(" test(s).")?.split(", ");
    let passed = labelled(parts.next()?, "passed")?;
    let failed = labelled(parts.next()?, "failed")?;
    let skipped = parts.next()?;
    let skipped = labelled(skipped.strip_prefix("and ").unwrap_or(skipped), "skipped")?;
    let next = parts.next()?;
    let (expired, next) = match labelled(next, "timed out") {
        Some(expired) => (expired, parts.next()?),
        None => (0, next),
    };
    let total = super::scan::number(next.strip_prefix("out of ")?)?;
    parts.next().is_none().then_some(Summary { passed, failed: failed + expired, skipped, total })
}
