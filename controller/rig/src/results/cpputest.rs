//! CppUTest, quiet and with `-v` or `-vv`.
//!
//! A quiet run prints a mark for each case and names only the failing ones: the summary then
//! gives the number of the others, and the marks must agree with it.

use jig_model::result::{CaseStatus, ResultFormat};

use super::choice::Credibility;
use super::grammar::{FormatSpec, Grammar, NO_SIGNS, starts};
use super::record::{CaseOutcome, ReportBuilder};
use super::scan::{TEAMCITY, is_ident, number};
use super::tally::{ProgressMarks, add_unnamed, is_marks, labelled};
use crate::console::lines::ReportLine;

/// Most lines of a failing check that are kept as its message.
const FAILURE_LINES: usize = 6;

/// Reads CppUTest's lines.
#[derive(Debug, Default)]
struct CppUTest {
    /// A test of a verbose run that has not printed its time.
    running: Option<String>,
    /// The test that failed last.
    failed: Option<String>,
    /// The failing test whose message follows, and how many lines of it were kept.
    explaining: Option<(String, usize)>,
    /// A line with a name and a time was read: every case is named.
    verbose: bool,
    /// A line was read that only CppUTest prints; marks alone are none.
    sure: bool,
    /// How many runs are announced that have not begun.
    runs_left: u64,
    /// The summary of this run was read.
    summed: bool,
    /// TeamCity's messages name the cases: they are the report.
    named_elsewhere: bool,
    marks: ProgressMarks,
}

/// Stands between the place of a failing check and the test.
const FAILURE: &str = ": error: Failure in ";

pub(super) const CPPUTEST: FormatSpec = FormatSpec {
    format: ResultFormat::Cpputest,
    family: ResultFormat::Cpputest,
    begins: b"TIOE.!",
    holds: &[FAILURE],
    opens,
    tells_size: |_| true,
    grammar: |_| Box::new(CppUTest::default()),
    failing: &NO_SIGNS,
};

fn opens(line: &ReportLine<'_>) -> bool {
    line.text.starts_with(['.', '!'])
        || failure(line.text).is_some()
        || summary(line.text).is_some()
        || test(line.text).is_some()
        || run_head(line.text).is_some()
}

impl Grammar for CppUTest {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        let text = line.text;
        if self.marks.line(text) {
            return true;
        }
        if let Some((run, of)) = run_head(text) {
            self.begin_run(run, of, record);
        } else if let Some(summary) = summary(text) {
            self.end(&summary, line, record);
        } else if let Some(name) = failure(text) {
            // A test that goes on behind a failed check fails once.
            if self.failed.as_ref() != Some(&name) {
                record.decide(&name, &name, CaseOutcome::of(CaseStatus::Fail), line.span);
                self.failed = Some(name.clone());
            }
            record.explain(&name, text);
            self.running = self.running.take().filter(|running| *running != name);
            self.explaining = Some((name, 0));
        } else if let Some((name, ignored, rest)) = test(text) {
            self.explaining = None;
            if let Some(duration) = time(rest) {
                self.verbose = true;
                self.running = None;
                let status = if ignored { CaseStatus::Skip } else { CaseStatus::Pass };
                decide(&name, status, duration, line, record);
            } else {
                // Unity's fixture prints this too, and a log may.
                if self.verbose {
                    record.begin(&name, &name, line.span);
                }
                self.running = Some(name);
                return true;
            }
        } else if let Some(duration) =
            time(text).filter(|_| self.running.is_some() || self.explaining.is_some())
        {
            self.verbose = true;
            self.explaining = None;
            if let Some(name) = self.running.take() {
                decide(&name, CaseStatus::Pass, duration, line, record);
            }
        } else {
            return false;
        }
        self.sure = true;
        true
    }

    /// Counts progress marks, and keeps the message of a failing check.
    fn prose(&mut self, text: &str, record: &mut ReportBuilder) {
        // In front of all of its own cases.
        let first = record.len() == 0 && self.marks.is_empty();
        self.named_elsewhere |= first && text.contains(TEAMCITY);
        self.marks.prose(text);
        if let Some((name, lines)) = &mut self.explaining {
            *lines += 1;
            if *lines <= FAILURE_LINES {
                record.explain(name, text);
            }
        }
    }

    fn credibility(&self) -> Credibility {
        let counts = self.sure && !self.named_elsewhere;
        if counts { Credibility::Report } else { Credibility::Guess }
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        summary(line.text).is_some()
    }

    fn begins_more(&self, line: &ReportLine<'_>) -> bool {
        is_marks(line.text)
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        starts(line, &["TEST(", "IGNORE_TEST("]) || line.text.contains(FAILURE)
    }
}

impl CppUTest {
    /// A run that has begun has an end of its own, and cases that are told apart.
    fn begin_run(&mut self, run: u64, of: u64, record: &mut ReportBuilder) {
        if run > 1 {
            if !self.summed {
                record.remark(format!("run {run} begins before the end of the last"));
            }
            record.begin_run("run", run);
            *self = Self { named_elsewhere: self.named_elsewhere, ..Self::default() };
        }
        self.runs_left = of.saturating_sub(run);
        record.goes_on();
    }

    fn end(&mut self, summary: &Summary, line: &ReportLine<'_>, record: &mut ReportBuilder) {
        if std::mem::replace(&mut self.summed, true) {
            record.begins_again();
        }
        let cases = summary.claim(record);
        if !self.verbose {
            self.marks.check(cases, summary.ignored, record);
            let failed = record.count(CaseStatus::Fail);
            add_unnamed(record, CaseStatus::Pass, summary.ran.saturating_sub(failed), line.span);
            add_unnamed(record, CaseStatus::Skip, summary.ignored, line.span);
        } else {
            record.compare("ignored", summary.ignored, record.count(CaseStatus::Skip));
            let ran = record.count(CaseStatus::Pass) + record.count(CaseStatus::Fail);
            record.compare("tests run", summary.ran, ran);
        }
        self.explaining = None;
        if self.runs_left == 0 {
            record.end();
        }
    }
}

fn decide(
    name: &str,
    status: CaseStatus,
    duration: u64,
    line: &ReportLine<'_>,
    record: &mut ReportBuilder,
) {
    let outcome = CaseOutcome { duration_ms: Some(duration), ..CaseOutcome::of(status) };
    record.decide(name, name, outcome, line.span);
}

/// Reads the numbers in `Test run 1 of 2`, with which each of several runs begins.
pub(super) fn run_head(text: &str) -> Option<(u64, u64)> {
    let (run, of) = text.strip_prefix("Test run ")?.split_once(" of ")?;
    Some((number(run)?, number(of)?))
}

/// Splits `TEST(group, name)` off the front; tells whether the test is ignored.
fn test(text: &str) -> Option<(String, bool, &str)> {
    let body = text.strip_prefix("IGNORE_").unwrap_or(text);
    let (inside, rest) = body.strip_prefix("TEST(")?.split_once(')')?;
    let (group, name) = inside.split_once(", ")?;
    (is_ident(group) && is_ident(name))
        .then(|| (format!("{group}::{name}"), body.len() < text.len(), rest))
}

/// Reads the time in ` - 3 ms`, also behind what the test printed.
fn time(text: &str) -> Option<u64> {
    let head = text.strip_suffix(" ms")?;
    let (_, time) = head.rsplit_once(" - ").or_else(|| Some(("", head.strip_prefix("- ")?)))?;
    number(time)
}

/// Reads `file.cpp:12: error: Failure in TEST(group, name)`, or `file.cpp(12): error: ...`.
///
/// What fails outside of the tests, as memory that leaks does, has no name that C would allow.
fn failure(text: &str) -> Option<String> {
    let (place, named) = text.split_once(FAILURE)?;
    let line = place.trim_end_matches(')').trim_end_matches(|c: char| c.is_ascii_digit());
    if !line.ends_with([':', '(']) || line.len() == place.len() {
        return None;
    }
    let inside = named.split_once('(').and_then(|(_, inside)| inside.strip_suffix(')'));
    Some(inside.unwrap_or(named).replacen(", ", "::", 1))
}

/// CppUTest's last line.
pub(super) struct Summary {
    bad: bool,
    failures: u64,
    tests: u64,
    pub(super) ran: u64,
    pub(super) ignored: u64,
    filtered: u64,
}

impl Summary {
    /// Adds what it says to the report, and returns the number of cases.
    pub(super) fn claim(&self, record: &mut ReportBuilder) -> u64 {
        let Self { tests, ran, ignored, filtered, .. } = self;
        let cases = ran + ignored;
        if *tests != cases + filtered {
            record.remark(format!(
                "{tests} tests are not {ran} ran, {ignored} ignored and {filtered} filtered out"
            ));
        }
        record.plan(cases);
        record.claim(self.failures);
        if self.bad {
            record.claim_any();
        }
        cases
    }
}

/// Reads `OK (3 tests, 2 ran, 5 checks, 1 ignored, 0 filtered out, 2 ms)`, or the same behind
/// `Errors (1 failures, ` or `Errors (ran nothing, `.
pub(super) fn summary(text: &str) -> Option<Summary> {
    let (bad, inside) = match text.strip_prefix("OK (") {
        Some(inside) => (false, inside),
        None => (true, text.strip_prefix("Errors (")?),
    };
    let mut parts = inside.strip_suffix(')')?.split(", ");
    let failures = match bad.then(|| parts.next()).flatten() {
        None | Some("ran nothing") => 0,
        Some(part) => labelled(part, "failures")?,
    };
    let mut count = |label| labelled(parts.next()?, label);
    let (tests, ran, _) = (count("tests")?, count("ran")?, count("checks")?);
    let (ignored, filtered, _) = (count("ignored")?, count("filtered out")?, count("ms")?);
    parts.next().is_none().then_some(Summary { bad, failures, tests, ran, ignored, filtered })
}
