//! NuttX's `ostest`.
//!
//! Its programs print what they do, in no form that tells a failure from prose: only the status
//! proves anything. `ostest_main` may not wait for `user_main`, so both must have ended. The whole
//! is one case; the name of the part that ran last is its message.

use jig_model::result::{CaseStatus, ResultFormat};

use super::grammar::{FormatSpec, Grammar, NO_SIGNS};
use super::record::{CaseOutcome, ReportBuilder};
use crate::console::lines::ReportLine;

/// Name of the only case.
const CASE: &str = "ostest";
const STATUS: &str = "ostest_main: Exiting with status ";

/// Reads the lines of `ostest`.
#[derive(Debug, Default)]
struct Nuttx {
    begun: bool,
    part: Option<String>,
    error: Option<String>,
    user_main_ended: bool,
    status: Option<bool>,
}

pub(super) const NUTTX: FormatSpec = FormatSpec {
    format: ResultFormat::Nuttx,
    family: ResultFormat::Nuttx,
    begins: b"ou",
    holds: &[],
    opens,
    tells_size: |_| true,
    grammar: |_| Box::new(Nuttx::default()),
    failing: &NO_SIGNS,
};

fn opens(line: &ReportLine<'_>) -> bool {
    line.text.starts_with("ostest_main: ") || line.text.starts_with("user_main: ")
}

impl Grammar for Nuttx {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        let text = line.text;
        if !opens(line) {
            return false;
        }
        if !self.begun || text.starts_with("ostest_main: Start") && self.status.is_some() {
            record.begin(CASE, CASE, line.span);
            self.begun = true;
        }
        if let Some(status) = text.strip_prefix(STATUS) {
            self.status = Some(status == "0");
            if status != "0" {
                let part = self.error.as_ref().or(self.part.as_ref());
                let outcome = CaseOutcome {
                    message: part.map(String::as_str),
                    ..CaseOutcome::of(CaseStatus::Fail)
                };
                record.decide(CASE, CASE, outcome, line.span);
                record.end();
            }
        } else if text == "user_main: Exiting" {
            self.user_main_ended = true;
        } else if tells_error(text) {
            self.error(text, record);
        } else if text.starts_with("user_main: ") {
            self.part = Some(text.to_owned());
        }
        if self.status == Some(true) && self.user_main_ended && !record.ended() {
            record.decide(CASE, CASE, CaseOutcome::of(CaseStatus::Pass), line.span);
            record.end();
        }
        true
    }

    fn prose(&mut self, text: &str, record: &mut ReportBuilder) {
        if tells_error(text) {
            self.error(text, record);
        }
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        // A status never begins with a zero that is not all of it.
        self.user_main_ended && line.text.strip_prefix(STATUS) == Some("0")
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        opens(line)
    }
}

impl Nuttx {
    /// An error that the status does not tell of makes the report doubtful.
    fn error(&mut self, text: &str, record: &mut ReportBuilder) {
        if self.error.is_none() {
            record.remark(format!("ostest printed an error: {text}"));
            self.error = Some(text.to_owned());
        }
    }
}

/// Tells whether a line says that something went wrong, in whatever case: `ERROR thread 1: ...`,
/// `sem_init failed`. `Errors 0 0` of the table below a test says the opposite.
fn tells_error(text: &str) -> bool {
    // `waitpid_last: PASS: PID 7 waitpid failed with ECHILD.`
    if text.contains(": PASS: ") {
        return false;
    }
    let text = text.to_ascii_lowercase();
    let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let mut last = "";
    while let Some(word) = words.next() {
        let counts = || words.clone().filter(|word| !word.is_empty());
        match word {
            "error" | "failed" | "failure" => {
                return !is_wanted(&text) && !matches!(last, "no" | "nothing" | "0");
            }
            "errors" | "nerrors"
                if counts().next().is_some_and(|w| super::scan::number(w).is_some()) =>
            {
                return counts().any(|word| super::scan::number(word).is_some_and(|n| n > 0));
            }
            _ => {}
        }
        last = word;
    }
    false
}

/// Tells whether an error was wanted. The value of `expected 0` and `expected argc=5` was not seen.
fn is_wanted(text: &str) -> bool {
    let wanted = ["as expected", "expected error", "expected fail", "is expected", "was expected"];
    wanted.iter().any(|phrase| text.contains(phrase)) || text.ends_with("(expected)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_in_any_case_and_zero_errors_are_none() {
        for (text, is_error) in [
            ("thread 1: ERROR pthread_mutex_lock failed", true),
            ("cond_test: error: waiter woke up", true),
            ("waitpid_last: PASS: PID 7 waitpid failed with ECHILD.  That may be", false),
            ("sem_test: sem_init failed: 22", true),
            ("Errors\t0\t0", false),
            ("cond_test: Errors  0   3", true),
            ("user_main: setvbuf test", false),
            ("sigprocmask_test: errno 0", false),
            ("nothing failed here", false),
            ("robust_test: lock failed as expected", false),
            ("signest_test: error (expected)", false),
            ("sem_test: ERROR thread 3 semaphore count is -1, expected 0", true),
            ("user_main: Error expected argc=5 got argc=4", true),
            ("sender_thread: returning nerrors=2", true),
            ("receiver_thread: returning nerrors=0", false),
        ] {
            assert_eq!(tells_error(text), is_error, "{text}");
        }
    }
}
