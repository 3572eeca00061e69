//! Go's `testing`, run with `-v`.
//!
//! Nothing announces how many tests there are. Of a run without `-v` only failures are seen: its
//! `PASS` or `ok` alone opens no report.

use std::collections::HashSet;

use jig_model::result::{CaseStatus, ResultFormat};

use super::choice::Credibility;
use super::grammar::{AssertionSigns, FormatSpec, Grammar, starts};
use super::record::{CaseOutcome, ReportBuilder};
use super::scan::seconds;
use crate::console::lines::ReportLine;

/// Reads Go's lines.
#[derive(Debug, Default)]
struct Golang {
    running: Option<String>,
    /// What the running test logged first.
    log: Option<String>,
    /// Packages that are over; the next one's tests may have the same names.
    packages: HashSet<String>,
    package_is_over: bool,
}

/// What `t.Error` prints looks like what `t.Log` does. Those of testify and of the runtime do not.
static FAILING: AssertionSigns =
    AssertionSigns::new(r"^Error Trace:|^panic: |race detected during execution of test");

/// Nothing tells whether another test stood in front of the first line.
pub(super) const GOLANG: FormatSpec = FormatSpec {
    format: ResultFormat::Go,
    family: ResultFormat::Go,
    begins: b"=-F",
    holds: &[],
    opens,
    tells_size: |_| false,
    grammar: |_| Box::new(Golang::default()),
    failing: &FAILING,
};

const RUN: &str = "=== RUN   ";

fn opens(line: &ReportLine<'_>) -> bool {
    let text = line.text;
    text.strip_prefix(RUN).is_some_and(is_name) || result(text).is_some() || is_failed_package(text)
}

impl Grammar for Golang {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        let text = line.text;
        if let Some(name) = text.strip_prefix(RUN).filter(|name| is_name(name)) {
            self.next_package(record);
            let key = self.key(name);
            record.begin(&key, name, line.span);
            self.running = Some(name.to_owned());
            self.log = None;
        } else if let Some((status, name, duration_ms)) = self.result(text) {
            self.next_package(record);
            let log = self.log.take().filter(|_| self.running.as_deref() == Some(name));
            let message = log.filter(|_| status != CaseStatus::Pass);
            let outcome = CaseOutcome { status, message: message.as_deref(), duration_ms };
            let key = self.key(name);
            record.decide(&key, name, outcome, line.span);
        } else if matches!(text, "PASS" | "FAIL") {
            if text == "FAIL" {
                record.claim_any();
            } else if record.count(CaseStatus::Fail) > 0 {
                record.remark("the verdict is PASS, but a test failed".to_owned());
            }
            record.end();
        } else if let Some((good, package)) = package(text) {
            if !good {
                record.claim_any();
            }
            if !self.packages.insert(package.to_owned()) {
                record.begins_again();
            }
            self.package_is_over = true;
            record.end();
        } else {
            return ["=== PAUSE ", "=== CONT ", "=== NAME "].iter().any(|h| text.starts_with(h));
        }
        true
    }

    fn credibility(&self) -> Credibility {
        if self.running.is_some() { Credibility::Certain } else { Credibility::Report }
    }

    /// Keeps the first line that the running test logs.
    fn prose(&mut self, text: &str, _record: &mut ReportBuilder) {
        if self.running.is_some() && self.log.is_none() && text.contains("_test.go:") {
            self.log = Some(text.to_owned());
        }
    }

    fn end_is_open(&self) -> bool {
        true
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        line.text == "PASS"
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        starts(line, &["--- PASS: ", "--- FAIL: ", "--- SKIP: ", RUN])
    }
}

impl Golang {
    /// Reads a result. What a test prints without a line end stands in front of its own.
    fn result<'a>(&self, text: &'a str) -> Option<(CaseStatus, &'a str, Option<u64>)> {
        result(text).or_else(|| {
            let at = text.find("--- ")?;
            let found = result(text.get(at..)?)?;
            (self.running.as_deref() == Some(found.1)).then_some(found)
        })
    }

    /// Goes on with the next package's tests where one is over.
    fn next_package(&mut self, record: &mut ReportBuilder) {
        if self.package_is_over {
            self.package_is_over = false;
            record.goes_on();
        }
    }

    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.packages.len())
    }
}

/// Reads `--- PASS: TestPush (0.01s)`.
fn result(text: &str) -> Option<(CaseStatus, &str, Option<u64>)> {
    let (word, rest) = text.strip_prefix("--- ")?.split_once(": ")?;
    let status = match word {
        "PASS" => CaseStatus::Pass,
        "FAIL" => CaseStatus::Fail,
        "SKIP" => CaseStatus::Skip,
        _ => return None,
    };
    let (name, time) = rest.strip_suffix("s)")?.rsplit_once(" (")?;
    let duration = seconds(time)?;
    is_name(name).then_some((status, name, Some(duration)))
}

/// Reads `ok  \tpackage\t0.005s` and `FAIL\tpackage\t0.005s`, also of a package that is cached or
/// was not built.
fn package(text: &str) -> Option<(bool, &str)> {
    let (word, rest) = text.split_once('\t')?;
    let good = match word.trim_ascii_end() {
        "ok" => true,
        "FAIL" => false,
        _ => return None,
    };
    let name = rest.split(['\t', ' ']).next()?;
    (!name.is_empty()).then_some((good, name))
}

/// Tells whether a line says that a package has failed, in a form that no log has: `FAIL\tpackage\t0.005s`,
/// `FAIL\tpackage [build failed]`.
fn is_failed_package(text: &str) -> bool {
    let Some((false, name)) = package(text) else { return false };
    let behind = text.split_once('\t').and_then(|(_, rest)| rest.strip_prefix(name));
    let rest = behind.unwrap_or_default();
    let timed = rest.strip_prefix('\t').and_then(|time| seconds(time.strip_suffix('s')?));
    timed.is_some() || rest.starts_with(" [") && rest.ends_with(" failed]")
}

/// Tells whether a text names a test, an example, a fuzz target, or a sub-test of one.
fn is_name(text: &str) -> bool {
    let kinds = ["Test", "Example", "Fuzz", "Benchmark"];
    kinds.iter().any(|kind| text.starts_with(kind)) && !text.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_package_is_told_from_a_log() {
        for (text, failed) in [
            ("FAIL\tapp/ring [build failed]", true),
            ("FAIL\tapp/ring [setup failed]", true),
            ("FAIL\tapp/ring\t0.002s", true),
            ("FAIL  \tapp/ring\t0.002s", true),
            ("ok  \tapp/ring\t0.002s", false),
            ("FAIL\tspi flash", false),
            ("FAIL\t", false),
            // Letters of several bytes behind blanks.
            ("FAIL \t\u{e9}", false),
            ("FAIL \t\u{e9} [build failed]", true),
        ] {
            assert_eq!(is_failed_package(text), failed, "{text:?}");
        }
    }
}
