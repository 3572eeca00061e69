//! Rust's libtest in its pretty form, as embedded-test prints it too, and in its quiet form, which has
//! a mark for each case: the summary then gives the number of cases, and the marks must agree with it.
//!
//! `cargo test` runs several test binaries one after the other: a head behind a summary goes on with
//! the report, and summaries add up. Two binaries may hold tests of one name only where cargo
//! announces the second; else the firmware has started over.

use jig_model::result::{CaseStatus, ResultFormat};

use super::choice::Credibility;
use super::grammar::{AssertionSigns, FormatSpec, Grammar};
use super::record::{CaseOutcome, ReportBuilder};
use super::scan::{is_counted, leading_number, number, seconds};
use super::tally::add_unnamed;
use crate::console::lines::ReportLine;

/// Most lines kept of what a failing test printed.
const FAILURE_LINES: usize = 4;

/// Reads libtest's lines.
#[derive(Debug, Default)]
struct Libtest {
    headed: bool,
    /// Tests and failures of the binaries before this one.
    earlier: (u64, u64),
    /// Tests that the head of this binary announces, and failures that its summary counts.
    current: (u64, u64),
    /// How many cases the binaries before this one had.
    first: usize,
    /// How many binaries cargo has announced behind a summary.
    announced: u32,
    /// A test whose own output came between its name and its result.
    running: Option<RunningTest>,
    /// The test whose result stood alone on a line. A word of its output may have looked like it.
    bare: Option<String>,
    /// More was read than a head, which a log may hold, too.
    begun: bool,
    /// Below the last `failures:`, where names follow.
    listing: bool,
    /// The failing test whose output is being listed, and how many lines were kept.
    explaining: Option<(String, usize)>,
    /// Marks of a quiet run: passes, failures, ignored tests.
    marks: [u64; 3],
}

/// A test whose result is not known yet.
#[derive(Debug)]
struct RunningTest {
    name: String,
    /// It passes only if it panics.
    panics: bool,
}

/// The list of failures, and a result behind other output.
static FAILING: AssertionSigns = AssertionSigns::new(r"^failures:$|\bFAILED$");

pub(super) const LIBTEST: FormatSpec = FormatSpec {
    format: ResultFormat::Libtest,
    family: ResultFormat::Libtest,
    begins: b"r",
    holds: &[],
    opens,
    tells_size: |_| true,
    grammar: |_| Box::new(Libtest::default()),
    failing: &FAILING,
};

fn opens(line: &ReportLine<'_>) -> bool {
    head(line.text).is_some()
}

impl Grammar for Libtest {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        let text = line.text;
        if let Some(count) = head(text) {
            self.begin_binary(count, record);
            return true;
        } else if let Some(summary) = summary(text) {
            (self.explaining, self.bare, self.listing) = (None, None, false);
            record.plan(self.earlier.0.saturating_add(summary.total()));
            self.current.1 = summary.failed;
            record.claim(self.earlier.1.saturating_add(summary.failed));
            if record.failing_from(self.first) {
                // The list of failures repeats them.
                record.excuse_assertion();
            }
            let passed = summary.passed + summary.measured;
            let marked = std::mem::take(&mut self.marks);
            if record.len() == self.first && marked == [passed, summary.failed, summary.ignored] {
                add_unnamed(record, CaseStatus::Pass, passed, line.span);
                add_unnamed(record, CaseStatus::Skip, summary.ignored, line.span);
            }
            let seen = |status| record.count_from(self.first, status);
            let (passes, skips) = (seen(CaseStatus::Pass), seen(CaseStatus::Skip));
            record.compare("passes", passed, passes);
            record.compare("ignored", summary.ignored, skips);
            if !summary.good && summary.failed == 0 {
                record.remark("the summary counts no failure, but says FAILED".to_owned());
                record.claim_any();
            } else if summary.good && summary.failed > 0 {
                record.remark("the summary counts failures, but says ok".to_owned());
            }
            record.end();
        } else if let Some(TestLine { name, panics, result }) = test(text) {
            (self.bare, self.listing) = (None, false);
            match outcome(result) {
                Some(outcome) => {
                    self.running = None;
                    record.decide(&self.key(name), name, outcome, line.span);
                }
                None => {
                    record.begin(&self.key(name), name, line.span);
                    self.running = Some(RunningTest { name: name.to_owned(), panics });
                }
            }
        } else if let Some((name, outcome)) = self.bare_result(text) {
            record.decide(&self.key(&name), &name, outcome, line.span);
            self.bare = Some(name);
        } else if let Some(name) = text.strip_prefix("---- ").and_then(|t| t.strip_suffix(" ----"))
        {
            let name = name.strip_suffix(" stdout").unwrap_or(name);
            self.explaining = Some((name.to_owned(), 0));
            self.listing = false;
        } else if let Some(marks) = marks(text).filter(|_| record.len() == self.first) {
            for (sum, count) in self.marks.iter_mut().zip(marks) {
                *sum = sum.saturating_add(count);
            }
        } else if self.listing && line.indent >= 4 && record.knows(&self.key(text)) {
            record.restate(&self.key(text), text, CaseStatus::Fail, line.span);
        } else {
            return false;
        }
        self.begun = true;
        true
    }

    /// Keeps the first lines of what a failing test printed.
    fn prose(&mut self, text: &str, record: &mut ReportBuilder) {
        if record.ended() && is_announcement(text) {
            self.announced = self.announced.saturating_add(1);
        } else if text == "failures:" {
            (self.explaining, self.listing) = (None, true);
        } else if let Some((name, lines)) = &mut self.explaining
            && *lines < FAILURE_LINES
        {
            *lines += 1;
            let key = key(self.announced, name);
            record.explain(&key, text);
        }
    }

    fn credibility(&self) -> Credibility {
        if self.begun { Credibility::Report } else { Credibility::Weak }
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        let counted = line.text.ends_with(" filtered out");
        summary(line.text).is_some_and(|s| s.timed || counted)
    }

    fn awaits_crash(&self, line: &str) -> bool {
        self.running.as_ref().is_some_and(|test| test.panics) && line.contains("panicked at ")
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        line.text.starts_with("test ") && line.text.contains(" ...")
    }
}

impl Libtest {
    /// Reads a head. Behind the summary of a binary it is that of the next one.
    fn begin_binary(&mut self, count: u64, record: &mut ReportBuilder) {
        if self.headed && record.ended() {
            let (tests, failures) = (self.current.0, self.current.1);
            self.earlier.0 = self.earlier.0.saturating_add(tests);
            self.earlier.1 = self.earlier.1.saturating_add(failures);
            self.first = record.len();
            (self.running, self.bare, self.explaining) = (None, None, None);
            (self.listing, self.marks) = (false, [0; 3]);
            record.goes_on();
            record.replan(self.earlier.0.saturating_add(count));
        } else {
            if self.headed {
                record.begins_again();
            }
            record.plan(self.earlier.0.saturating_add(count));
        }
        self.headed = true;
        self.current = (count, 0);
    }

    fn key(&self, name: &str) -> String {
        key(self.announced, name)
    }

    /// Reads a result that stands alone, because the test printed something in front of it. What
    /// the test printed may be the same word, so a worse one that follows counts.
    fn bare_result(&mut self, text: &str) -> Option<(String, CaseOutcome<'static>)> {
        let status = match text {
            "ok" => CaseStatus::Pass,
            "FAILED" => CaseStatus::Fail,
            _ => return None,
        };
        let failed_after = self.bare.take_if(|_| status == CaseStatus::Fail);
        let running = self.running.take().map(|test| test.name);
        let name = running.or(failed_after)?;
        Some((name, CaseOutcome::of(status)))
    }
}

/// Tells the tests of one name in several binaries apart.
fn key(binary: u32, name: &str) -> String {
    format!("{binary}\0{name}")
}

/// Tells whether cargo announces a binary: `Running unittests src/lib.rs (target/...)`.
fn is_announcement(text: &str) -> bool {
    text.starts_with("Doc-tests ")
        || (text.starts_with("Running ") && text.contains(".rs (") && text.ends_with(')'))
}

/// Counts the marks of a quiet run in a line that holds nothing else: `..i.F`, `.... 88/100`.
fn marks(text: &str) -> Option<[u64; 3]> {
    let (marks, total) = text.split_once(' ').unwrap_or((text, ""));
    let counted = total
        .split_once('/')
        .is_some_and(|(some, all)| number(some.trim_ascii()).is_some() && number(all).is_some());
    let count = |mark: u8| marks.bytes().filter(|&byte| byte == mark).count();
    let counts = [b'.', b'F', b'i'].map(count);
    let whole = counts.iter().sum::<usize>() == marks.len() && !marks.is_empty();
    (whole && (total.is_empty() || counted)).then(|| counts.map(|count| count as u64))
}

/// Reads `running 3 tests`.
fn head(text: &str) -> Option<u64> {
    let (count, rest) = leading_number(text.strip_prefix("running ")?)?;
    is_counted(count, rest, " test", " tests").then_some(count)
}

/// The line of a test.
struct TestLine<'a> {
    name: &'a str,
    /// It passes only if it panics.
    panics: bool,
    /// Empty while the test runs.
    result: &'a str,
}

/// Splits `test name ... result`.
fn test(text: &str) -> Option<TestLine<'_>> {
    let body = text.strip_prefix("test ")?;
    let (name, result) =
        body.split_once(" ... ").or_else(|| Some((body.strip_suffix(" ...")?, "")))?;
    // libtest-mimic pads names to one width.
    let name = name.trim_ascii_end();
    let panicking = name.strip_suffix(" - should panic");
    let (panics, name) = (panicking.is_some(), panicking.unwrap_or(name));
    // Paths hold no blanks, except doc tests: `src/lib.rs - item (line 3)`.
    let doc = name.contains(" - ") && name.ends_with(')');
    (!name.is_empty() && (doc || !name.contains(' '))).then_some(TestLine { name, panics, result })
}

fn outcome(result: &str) -> Option<CaseOutcome<'_>> {
    let (word, rest) = result.split_once([' ', ',']).unwrap_or((result, ""));
    // `ok <0.001s>` where times are asked for.
    let timed = rest.strip_prefix('<').and_then(|t| t.strip_suffix("s>")).and_then(seconds);
    let status = match word {
        "ok" => CaseStatus::Pass,
        "FAILED" => CaseStatus::Fail,
        "ignored" if rest.is_empty() || result.starts_with("ignored, ") => {
            return Some(CaseOutcome { message: Some(rest), ..CaseOutcome::of(CaseStatus::Skip) });
        }
        "bench:" if rest.contains(" ns/iter ") => return Some(CaseOutcome::of(CaseStatus::Pass)),
        _ => return None,
    };
    (rest.is_empty() || timed.is_some())
        .then_some(CaseOutcome { duration_ms: timed, ..CaseOutcome::of(status) })
}

struct Summary {
    good: bool,
    passed: u64,
    failed: u64,
    ignored: u64,
    measured: u64,
    timed: bool,
}

impl Summary {
    fn total(&self) -> u64 {
        self.passed + self.failed + self.ignored + self.measured
    }
}

/// Reads `test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; ...`.
fn summary(text: &str) -> Option<Summary> {
    let (word, rest) = text.strip_prefix("test result: ")?.split_once(". ")?;
    let good = match word {
        "ok" => true,
        "FAILED" => false,
        _ => return None,
    };
    let mut parts = rest.split("; ");
    let mut count = |label: &str| {
        let (count, rest) = leading_number(parts.next()?)?;
        (rest.trim_ascii_start() == label).then_some(count)
    };
    let (passed, failed, ignored) = (count("passed")?, count("failed")?, count("ignored")?);
    let measured = count("measured").unwrap_or(0);
    let timed = rest.rsplit_once("; finished in ").and_then(|(_, t)| seconds(t.strip_suffix('s')?));
    Some(Summary { good, passed, failed, ignored, measured, timed: timed.is_some() })
}
