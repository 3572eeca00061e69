//! NuttX's `ostest`.
//!
//! Its programs print what they do, in no form that tells a failure from prose: only the status
//! proves anything. `ostest_main` may not wait for `user_main`, so both must have ended. The whole
//! is one case; the name of the part that ran last is its message.

use jig_model::result::{CaseStatus, ResultFormat};

use super::grammar::{FormatSpec, Grammar};
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
    holds: None,
    opens,
    tells_size: |_| true,
    grammar: |_| Box::new(Nuttx::default()),
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
        } else if text.contains("ERROR") {
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
        if text.contains("ERROR") {
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
