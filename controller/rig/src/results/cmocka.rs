//! cmocka's standard output.
//!
//! It resembles GoogleTest and always counts in `test(s)`. A program runs several groups one after
//! the other, each with a head, its cases and a summary.

use std::collections::BTreeMap;

use jig_model::result::{CaseStatus, ResultFormat};

use super::grammar::{AssertionSigns, FormatSpec, Grammar, starts};
use super::record::{CaseOutcome, ReportBuilder};
use super::scan::leading_number;
use crate::console::lines::ReportLine;

/// Most lines of a failing assertion that are kept as its message.
const FAILURE_LINES: usize = 6;

/// Most names of a group that are told apart from others.
const MAX_NAMES: usize = 10_000;

/// The results of a group.
#[derive(Debug, Default)]
struct GroupResults {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// How often each name was run: a group may hold a function more than once.
    runs: BTreeMap<String, u32>,
}

/// Reads cmocka's lines.
#[derive(Debug, Default)]
struct Cmocka {
    /// Groups whose head was read.
    groups: Vec<String>,
    running: bool,
    /// What the running case's errors said.
    errors: Vec<String>,
    planned: u64,
    group: GroupResults,
    /// Failed cases of the groups that are over.
    failed_before: u64,
    /// The line `N test(s) run` was read: what follows repeats results.
    ran: bool,
}

static FAILING: AssertionSigns = AssertionSigns::new(r"\[  ERROR   \]|: error: Failure!$");

/// A group's head does not tell whether another group stood in front of it.
pub(super) const CMOCKA: FormatSpec = FormatSpec {
    format: ResultFormat::Cmocka,
    family: ResultFormat::Cmocka,
    begins: b"[",
    holds: &[],
    opens,
    tells_size: |_| false,
    grammar: |_| Box::new(Cmocka::default()),
    failing: &FAILING,
};

fn opens(line: &ReportLine<'_>) -> bool {
    matches!(tag(line.text), Some(("==========", rest)) if head(rest).is_some())
}

impl Grammar for Cmocka {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        let Some((tag, rest)) = tag(line.text) else { return false };
        match tag {
            "==========" => {
                if let Some((group, count)) = head(rest) {
                    self.begin_group(group, count, record);
                } else if let Some(count) = tail(rest) {
                    self.ran = true;
                    let GroupResults { passed, failed, skipped, .. } = self.group;
                    record.compare("tests run", count, passed + failed + skipped);
                } else {
                    return false;
                }
            }
            "RUN" => {
                let runs = &mut self.group.runs;
                if runs.len() < MAX_NAMES || runs.contains_key(rest) {
                    *runs.entry(rest.to_owned()).or_default() += 1;
                }
                let key = self.key(rest);
                record.begin(&key, &key, line.span);
                (self.running, self.ran) = (true, false);
                self.errors.clear();
            }
            "OK" => self.result(CaseStatus::Pass, rest, line, record),
            "ERROR" | "LINE" if rest.starts_with("--- ") => {
                if self.errors.len() < FAILURE_LINES {
                    self.errors.push(rest.trim_start_matches("--- ").to_owned());
                }
            }
            "FAILED" | "SKIPPED" | "ERROR" => {
                let status = if tag == "SKIPPED" { CaseStatus::Skip } else { CaseStatus::Fail };
                if let Some(count) = listed(rest) {
                    if status == CaseStatus::Skip {
                        record.compare("skipped", count, self.group.skipped);
                    } else if count != self.group.failed {
                        record.claim(self.failed_before.saturating_add(count));
                    }
                } else if self.ran {
                    // Of a name that was run twice, the list does not say which.
                    if self.group.runs.get(rest).is_none_or(|&runs| runs < 2) {
                        let key = self.key(rest);
                        record.restate(&key, &key, status, line.span);
                    }
                } else {
                    self.result(status, rest, line, record);
                }
            }
            "PASSED" => {
                let Some(count) = counted(rest, ".").filter(|_| self.ran) else { return false };
                record.compare("passes", count, self.group.passed);
                record.end();
            }
            _ => return false,
        }
        true
    }

    /// Keeps what a failing assertion prints below its first line.
    fn prose(&mut self, text: &str, _record: &mut ReportBuilder) {
        if self.running && text.contains(": error: ") && self.errors.len() < FAILURE_LINES {
            self.errors.push(text.to_owned());
        }
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        self.ran && matches!(tag(line.text), Some(("PASSED", rest)) if counted(rest, ".").is_some())
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        starts(line, &["[ RUN", "[       OK", "[  FAILED", "[  ERROR", "[  SKIPPED"])
    }
}

impl Cmocka {
    fn begin_group(&mut self, group: &str, count: u64, record: &mut ReportBuilder) {
        if self.groups.iter().any(|known| known == group) {
            record.begins_again();
        } else if !self.groups.is_empty() {
            if !record.ended() {
                record.remark(format!("group {group} begins before the last one ended"));
            }
            record.goes_on();
        }
        self.groups.push(group.to_owned());
        self.ran = false;
        let over = std::mem::take(&mut self.group);
        self.failed_before += over.failed;
        self.planned = self.planned.saturating_add(count);
        record.replan(self.planned);
    }

    fn result(
        &mut self,
        status: CaseStatus,
        name: &str,
        line: &ReportLine<'_>,
        record: &mut ReportBuilder,
    ) {
        let message = self.errors.join("\n");
        self.errors.clear();
        self.running = false;
        let key = self.key(name);
        let counted = match status {
            CaseStatus::Pass => &mut self.group.passed,
            CaseStatus::Skip => &mut self.group.skipped,
            _ => &mut self.group.failed,
        };
        *counted += 1;
        let message = (status != CaseStatus::Pass).then_some(message.as_str());
        let outcome = CaseOutcome { message, ..CaseOutcome::of(status) };
        record.decide(&key, &key, outcome, line.span);
    }

    fn key(&self, name: &str) -> String {
        let group = self.groups.last().filter(|group| !group.is_empty());
        let group = group.map(|group| format!("{group}::")).unwrap_or_default();
        match self.group.runs.get(name) {
            Some(&nth) if nth > 1 => format!("{group}{name} ({nth})"),
            _ => format!("{group}{name}"),
        }
    }
}

/// Splits `[  FAILED  ] rest`; ten columns stand between the brackets.
fn tag(text: &str) -> Option<(&str, &str)> {
    let (tag, rest) = text.strip_prefix('[')?.split_at_checked(10)?;
    let rest = rest.strip_prefix("] ")?;
    (!rest.is_empty()).then_some((tag.trim_ascii(), rest))
}

/// Reads `3 test(s)` and what must follow it.
fn counted(text: &str, tail: &str) -> Option<u64> {
    let (count, rest) = leading_number(text)?;
    (rest.strip_prefix(" test(s)")? == tail).then_some(count)
}

/// Takes the name of a group off the front: versions before 1.1.6 print none.
fn grouped(text: &str) -> (&str, &str) {
    text.rsplit_once(": ").unwrap_or(("", text))
}

fn head(rest: &str) -> Option<(&str, u64)> {
    let (group, rest) = grouped(rest);
    Some((group, counted(rest.strip_prefix("Running ")?, ".")?))
}

fn tail(rest: &str) -> Option<u64> {
    counted(grouped(rest).1, " run.")
}

fn listed(rest: &str) -> Option<u64> {
    counted(grouped(rest).1, ", listed below:")
}
