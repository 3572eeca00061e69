//! defmt-test, on the console of a logger or of Jig's own decoder.
//!
//! A test has no line for its result: it passed when the next one begins or when all have passed, and one
//! that fails panics. What stands in front of a line, the time and the level of the logger, is taken off
//! like any log prefix; behind it Jig's decoder writes the place in the source.

use jig_model::result::{CaseStatus, ResultFormat};

use super::grammar::{FormatSpec, Grammar, NO_SIGNS};
use super::record::{CaseOutcome, ReportBuilder};
use super::scan::{leading_number, number};
use crate::console::lines::{ReportLine, Span};
use crate::console::log_prefix::without_prefix;

/// Reads the lines of defmt-test.
#[derive(Debug, Default)]
struct DefmtTest {
    /// The test that runs.
    running: Option<Running>,
    /// The number of the last test that began.
    last: u64,
}

#[derive(Debug)]
struct Running {
    name: String,
    ignored: bool,
    span: Span,
}

pub(super) const DEFMT_TEST: FormatSpec = FormatSpec {
    format: ResultFormat::DefmtTest,
    family: ResultFormat::DefmtTest,
    begins: b"(0123456789",
    holds: &[],
    opens: |line| begun(line.text).is_some(),
    tells_size: |_| true,
    grammar: |_| Box::new(DefmtTest::default()),
    failing: &NO_SIGNS,
};

impl Grammar for DefmtTest {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        if let Some(begun) = begun(line.text) {
            if begun.number == 1 && self.last > 0 {
                record.begins_again();
                self.running = None;
            } else if begun.number != self.last + 1 {
                record.remark(format!("test {} follows test {}", begun.number, self.last));
            }
            self.passed(record);
            record.plan(begun.count);
            record.begin(begun.name, begun.name, line.span);
            self.last = begun.number;
            let (name, ignored) = (begun.name.to_owned(), begun.ignored);
            self.running = Some(Running { name, ignored, span: line.span });
        } else if self.last > 0 && message(line.text) == ALL_PASSED {
            self.passed(record);
            record.end();
        } else {
            // Where the line above was printed, as `defmt-print` tells it.
            return self.last > 0 && line.text.starts_with("└─ ");
        }
        true
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        self.last > 0 && message(line.text) == ALL_PASSED
    }

    fn begins_more(&self, line: &ReportLine<'_>) -> bool {
        begun(line.text).is_some()
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        line.text.starts_with('(') && line.text.contains(") running `")
    }
}

impl DefmtTest {
    /// Notes that the test that ran is over.
    fn passed(&mut self, record: &mut ReportBuilder) {
        let Some(Running { name, ignored, span }) = self.running.take() else { return };
        let status = if ignored { CaseStatus::Skip } else { CaseStatus::Pass };
        record.decide(&name, &name, CaseOutcome::of(status), span);
    }
}

const ALL_PASSED: &str = "all tests passed!";

/// A test that begins.
struct Begun<'a> {
    number: u64,
    count: u64,
    name: &'a str,
    /// It is called all the same, but its result is not told.
    ignored: bool,
}

/// Reads ``(1/3) running `push`...`` and ``(2/3) ignoring `pop`...``.
fn begun(text: &str) -> Option<Begun<'_>> {
    let (numbers, rest) = message(text).strip_prefix('(')?.split_once(") ")?;
    let (first, count) = leading_number(numbers)?;
    let count = number(count.strip_prefix('/')?)?;
    let (ignored, rest) = match rest.strip_prefix("running `") {
        Some(rest) => (false, rest),
        None => (true, rest.strip_prefix("ignoring `")?),
    };
    let name = rest.strip_suffix("`...").filter(|name| !name.is_empty())?;
    Some(Begun { number: first, count, name, ignored })
}

/// Returns a message without its place and without a time stamp that is a mere count, which is no log prefix
/// elsewhere: `7 INFO  (1/3) running ...`.
fn message(text: &str) -> &str {
    let counted = || {
        let (_, rest) = leading_number(text)?;
        let rest = rest.strip_prefix(' ')?;
        Some(without_prefix(rest).unwrap_or(rest))
    };
    without_place(counted().unwrap_or(text))
}

/// Cuts off the place in the source, ` (tests/ring.rs:12)`, that stands behind a message.
fn without_place(text: &str) -> &str {
    let place = || {
        let (message, place) = text.strip_suffix(')')?.rsplit_once(" (")?;
        let (file, line) = place.rsplit_once(':')?;
        (!file.is_empty() && number(line).is_some()).then_some(message)
    };
    place().unwrap_or(text)
}
