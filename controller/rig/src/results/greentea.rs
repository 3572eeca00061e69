//! Mbed's Greentea: key-value pairs in double braces, `{{key;value;value}}`.
//!
//! A pair may stand anywhere in a line that no format knows: behind the mark of a core or a channel.
//!
//! A Greentea target first waits for `{{__sync;...}}` from its host: a plan sends it.

use std::collections::HashMap;

use jig_model::result::{CaseStatus, ResultFormat};

use super::grammar::{AssertionSigns, FormatSpec, Grammar, starts};
use super::record::{CaseOutcome, ReportBuilder};
use super::scan::number;
use crate::console::lines::ReportLine;

/// Reads Greentea's pairs.
#[derive(Debug, Default)]
struct Greentea {
    running: Option<String>,
    failure: Option<String>,
    /// How often each case has passed: a repeating case reports growing counts.
    passes: HashMap<String, u64>,
    listed: u64,
    headed: bool,
}

/// A reason that is ignored is called so.
static FAILING: AssertionSigns =
    AssertionSigns::new(r":\d+:[^:]*:FAIL\b|>>> failure with reason '(?:[^I]|I[^g])");

pub(super) const GREENTEA: FormatSpec = FormatSpec {
    format: ResultFormat::Greentea,
    family: ResultFormat::Greentea,
    begins: b"{",
    holds: &[],
    opens,
    tells_size: |_| true,
    grammar: |_| Box::new(Greentea::default()),
    failing: &FAILING,
};

fn opens(line: &ReportLine<'_>) -> bool {
    pair(line.text).is_some_and(|(key, value)| match key {
        "__version" | "__testcase_count" | "__testcase_name" | "__testcase_start"
        | "__testcase_finish" | "__testcase_summary" => true,
        "end" => value == "failure",
        _ => false,
    })
}

impl Grammar for Greentea {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        let Some((key, value)) = pair(line.text) else { return is_name_of_case(line.text) };
        match key {
            "__version" => {
                if self.headed {
                    record.begins_again();
                }
                self.headed = true;
            }
            "__testcase_count" => match number(value) {
                Some(count) => record.plan(count),
                None => return false,
            },
            "__testcase_name" => {
                self.listed += 1;
            }
            "__testcase_start" => {
                self.failure = None;
                // A case that repeats starts again; its counts then go on.
                if record.ended() || !self.passes.contains_key(value) {
                    record.begin(value, value, line.span);
                }
                self.running = Some(value.to_owned());
            }
            "__testcase_finish" => {
                let Some((name, passed, failed)) = finish(value) else { return false };
                self.finish_case(name, passed, failed, line, record);
            }
            "__testcase_summary" => {
                let Some((passed, failed)) = counts(value) else { return false };
                record.plan(passed + failed);
                record.claim(failed);
                record.compare("passes", passed, record.count(CaseStatus::Pass));
                if self.listed > 0 && self.listed != passed + failed {
                    let listed = self.listed;
                    record.remark(format!(
                        "{listed} cases were listed, {passed} passed and {failed} failed"
                    ));
                }
            }
            "end" => {
                if value != "success" {
                    record.claim_any();
                }
                record.end();
            }
            "__exit" => {
                if value != "0" {
                    record.claim_any();
                }
            }
            _ => return false,
        }
        true
    }

    /// Keeps the assertion that a running case prints: `:12::FAIL: Expected 1 Was 2`.
    fn prose(&mut self, text: &str, _record: &mut ReportBuilder) {
        if self.running.is_some() && self.failure.is_none() && text.contains("FAIL") {
            self.failure = Some(text.to_owned());
        }
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        pair(line.text).is_some_and(|(key, _)| key == "end")
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        starts(line, &["{{__testcase_", "{{end;"])
    }
}

impl Greentea {
    fn finish_case(
        &mut self,
        name: &str,
        passed: u64,
        failed: u64,
        line: &ReportLine<'_>,
        record: &mut ReportBuilder,
    ) {
        self.running = None;
        let failure = self.failure.take();
        let known = self.passes.get(name).copied().unwrap_or(0);
        if failed == 0 && known > 0 && passed > known && !record.ended() {
            self.passes.insert(name.to_owned(), passed);
            return;
        }
        let status = if failed == 0 && passed > 0 { CaseStatus::Pass } else { CaseStatus::Fail };
        if status == CaseStatus::Pass {
            self.passes.insert(name.to_owned(), passed);
        }
        let message = failure.as_deref().filter(|_| status == CaseStatus::Fail);
        record.decide(name, name, CaseOutcome { message, ..CaseOutcome::of(status) }, line.span);
    }
}

fn pair(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix("{{")?.strip_suffix("}}")?;
    inside.split_once(';').filter(|_| !inside.contains("}}"))
}

/// Tells whether a line names a case for a reader of the console: `>>> Running case #1: 'push'...`,
/// `>>> 'push': 1 passed, 0 failed`. The name may hold words of a crash.
fn is_name_of_case(text: &str) -> bool {
    let Some(text) = text.strip_prefix(">>> ") else { return false };
    let is_name = |text: &str| text.len() > 1 && text.starts_with('\'') && text.ends_with('\'');
    let begun = text.strip_prefix("Running case ").and_then(|rest| rest.strip_suffix("..."));
    let begun = begun.and_then(|rest| rest.strip_prefix('#')?.split_once(": "));
    let passed = text.strip_suffix(" passed, 0 failed").and_then(|rest| rest.rsplit_once(": "));
    let begun = begun.filter(|(count, _)| number(count).is_some()).map(|(_, name)| name);
    let passed = passed.filter(|(_, count)| number(count).is_some()).map(|(name, _)| name);
    begun.or(passed).is_some_and(is_name)
}

/// Lists the pairs in a line, whatever stands around them.
pub(super) fn pairs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, behind) = rest.split_at_checked(rest.find("{{")?)?;
        let (found, next) = behind.split_at_checked(behind.find("}}")? + 2)?;
        rest = next;
        Some(found)
    })
}

fn counts(value: &str) -> Option<(u64, u64)> {
    let (passed, failed) = value.split_once(';')?;
    Some((number(passed)?, number(failed)?))
}

/// Reads `name;passed;failed`.
fn finish(value: &str) -> Option<(&str, u64, u64)> {
    let (rest, failed) = value.rsplit_once(';')?;
    let (name, passed) = rest.rsplit_once(';')?;
    Some((name, number(passed)?, number(failed)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cases_are_told_from_other_lines() {
        for (line, names) in [
            (">>> Running case #1: 'push'...", true),
            (">>> Running case #2: 'Error: allocation failure is reported'...", true),
            (">>> 'Fault handler: context': 1 passed, 0 failed", true),
            (">>> 'push': 0 passed, 1 failed", false),
            (">>> 'push': 1 passed, 1 failed with reason 'Assertion Failed'", false),
            (">>> Running case #1: 'push", false),
            (">>> HardFault: 1 passed, 0 failed", false),
            (">>> '", false),
            ("Running case #1: 'push'...", false),
        ] {
            assert_eq!(is_name_of_case(line), names, "{line}");
        }
    }
}
