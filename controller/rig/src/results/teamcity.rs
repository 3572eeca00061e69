//! TeamCity's service messages, which CppUTest (`-oteamcity`), Catch2 (`-r teamcity`), pytest's plugin
//! and runners of other frameworks print.
//!
//! # Design
//! A message stands anywhere in a line, since what a test prints may have no line end. The protocol
//! has no end: a report ends behind the last suite, or with as many tests as `testCount` announces.
//! CppUTest prints its summary behind the messages, and a head in front of each of several runs: both
//! are read here, so that they are no report of their own.
//!
//! What a message quotes (`testStdOut`, `message`) is no result, and is searched like other output.

use jig_model::result::{CaseStatus, ResultFormat};

use super::choice::Credibility;
use super::cpputest::{Summary, run_head, summary};
use super::grammar::{FormatSpec, Grammar, NO_SIGNS};
use super::record::{CaseOutcome, ReportBuilder};
use super::scan::{TEAMCITY as HEAD, number};
use crate::console::lines::{ReportLine, Span};

/// Most suites within each other, tests at one time, and attributes of a message.
const MOST: usize = 64;

/// Reads TeamCity's messages.
#[derive(Debug, Default)]
struct TeamCity {
    /// Suites that have begun, the outermost first.
    suites: Vec<String>,
    running: Vec<RunningTest>,
    /// Tests that `testCount` announced.
    announced: u64,
    /// A suite was finished.
    finished_suite: bool,
    /// A message about tests was read.
    sure: bool,
    /// How many runs are announced that have not begun.
    runs_left: u64,
    /// CppUTest's summary of this run was read.
    summed: bool,
}

/// A test that has started.
#[derive(Debug)]
struct RunningTest {
    name: String,
    decided: bool,
}

pub(super) const SERVICE_MESSAGES: FormatSpec = FormatSpec {
    format: ResultFormat::Teamcity,
    family: ResultFormat::Teamcity,
    begins: b"T",
    holds: &[HEAD],
    opens,
    tells_size: |first| first.text.contains("##teamcity[testCount "),
    grammar: |_| Box::new(TeamCity::default()),
    failing: &NO_SIGNS,
};

fn opens(line: &ReportLine<'_>) -> bool {
    run_head(line.text).is_some() || line.text.contains("##teamcity[test")
}

impl Grammar for TeamCity {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        if let Some((run, of)) = run_head(line.text) {
            self.begin_run(run, of, record);
            return true;
        }
        if let Some(summary) = self.summary(line) {
            self.sum_up(&summary, record);
            return true;
        }
        let mut known = false;
        for message in messages(line.text) {
            match message {
                Some(message) => known |= self.message(&message, line.span, record),
                None => {
                    let at = line.span.start;
                    record.remark(format!("an incomplete message of TeamCity at {at}"));
                }
            }
        }
        known
    }

    fn credibility(&self) -> Credibility {
        if self.sure { Credibility::Report } else { Credibility::Guess }
    }

    fn covers(&self, line: &ReportLine<'_>) -> bool {
        self.summary(line).is_some()
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        let whole = || messages(line.text).all(|message| message.is_some());
        self.summary(line).is_some()
            || line.text.contains(HEAD) && line.text.ends_with(']') && whole()
    }

    fn end_is_open(&self) -> bool {
        self.announced == 0 && !self.summed
    }

    fn holds_failure(&self, text: &str) -> bool {
        text.contains("##teamcity[testFailed")
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        let quotes = line.text.contains("##teamcity[testStd");
        line.text.contains("##teamcity[test") && !quotes
    }
}

impl TeamCity {
    /// Reads CppUTest's summary where the cases of this report are its cases.
    fn summary(&self, line: &ReportLine<'_>) -> Option<Summary> {
        if self.sure { summary(line.text) } else { None }
    }

    fn begin_run(&mut self, run: u64, of: u64, record: &mut ReportBuilder) {
        if run > 1 {
            if self.sure && !self.summed {
                record.remark(format!("run {run} begins before the end of the last"));
            }
            record.begin_run("run", run);
            *self = Self { sure: self.sure, ..Self::default() };
        }
        self.runs_left = of.saturating_sub(run);
        record.goes_on();
    }

    fn sum_up(&mut self, summary: &Summary, record: &mut ReportBuilder) {
        if std::mem::replace(&mut self.summed, true) {
            record.begins_again();
        }
        if let Some(open) = self.suites.last() {
            record.remark(format!("the summary comes before the end of suite {open}"));
        }
        summary.claim(record);
        record.compare("ignored", summary.ignored, record.count(CaseStatus::Skip));
        let ran = record.count(CaseStatus::Pass) + record.count(CaseStatus::Fail);
        record.compare("tests run", summary.ran, ran);
        if self.runs_left == 0 {
            record.end();
        }
    }

    /// Reads one message; tells whether it is a result or belongs to one.
    fn message(&mut self, message: &Message<'_>, span: Span, record: &mut ReportBuilder) -> bool {
        let name = message.get("name").unwrap_or_default();
        match message.kind {
            "testCount" => {
                let count = message.get("count").and_then(number).unwrap_or_default();
                self.announced = self.announced.saturating_add(count);
                record.replan(self.announced);
            }
            "testSuiteStarted" => {
                record.goes_on();
                if self.suites.len() < MOST {
                    self.suites.push(name.to_owned());
                } else {
                    record.remark("too many suites within each other".to_owned());
                }
            }
            "testSuiteFinished" => {
                match self.suites.pop() {
                    Some(open) if open == name => {}
                    Some(open) => {
                        record.remark(format!("suite {name} is finished, but {open} runs"));
                    }
                    None => record.remark(format!("suite {name} is finished, but none runs")),
                }
                self.finished_suite = true;
                self.end(record);
            }
            "testStarted" => {
                record.goes_on();
                let name = self.full_name(name);
                record.begin(&name, &name, span);
                if self.running.len() < MOST {
                    self.running.push(RunningTest { name, decided: false });
                } else {
                    record.remark("too many tests at one time".to_owned());
                }
            }
            "testFailed" => self.decide(name, CaseStatus::Fail, message, span, record),
            "testIgnored" => self.decide(name, CaseStatus::Skip, message, span, record),
            "testFinished" => self.finish_test(name, message, span, record),
            "buildProblem" => record.claim_any(),
            "buildStatus" if message.get("status") == Some("FAILURE") => record.claim_any(),
            _ => return false,
        }
        self.sure |= message.kind.starts_with("test");
        true
    }

    fn full_name(&self, name: &str) -> String {
        self.suites.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("::")
    }

    /// A test fails, possibly by several assertions, or is ignored, also without having started.
    fn decide(
        &mut self,
        name: &str,
        status: CaseStatus,
        message: &Message<'_>,
        span: Span,
        record: &mut ReportBuilder,
    ) {
        record.goes_on();
        let name = self.full_name(name);
        let texts = ["message", "details"].into_iter().filter_map(|text| message.get(text));
        let text = texts.collect::<Vec<_>>().join("\n");
        let running = self.running.iter_mut().rev().find(|test| test.name == name);
        let again = running.is_some_and(|test| std::mem::replace(&mut test.decided, true));
        if again && status == CaseStatus::Fail {
            record.explain(&name, &text);
            record.restate(&name, &name, status, span);
        } else {
            let outcome = CaseOutcome { message: Some(&text), ..CaseOutcome::of(status) };
            record.decide(&name, &name, outcome, span);
        }
        self.end(record);
    }

    fn finish_test(
        &mut self,
        name: &str,
        message: &Message<'_>,
        span: Span,
        record: &mut ReportBuilder,
    ) {
        let name = self.full_name(name);
        match self.running.iter().rposition(|test| test.name == name) {
            Some(at) if self.running.remove(at).decided => {}
            Some(_) => {
                let duration_ms = message.get("duration").and_then(number);
                let outcome = CaseOutcome { duration_ms, ..CaseOutcome::of(CaseStatus::Pass) };
                record.decide(&name, &name, outcome, span);
            }
            None => record.remark(format!("test {name} is finished, but it did not start")),
        }
        self.end(record);
    }

    /// Ends the report where nothing runs, and all that was announced has run.
    fn end(&self, record: &mut ReportBuilder) {
        let runs = !self.suites.is_empty() || !self.running.is_empty() || self.runs_left > 0;
        let complete = match record.planned() {
            Some(planned) => record.decided() as u64 >= planned,
            None => self.finished_suite,
        };
        if !runs && complete {
            record.end();
        }
    }
}

/// A service message.
#[derive(Debug)]
struct Message<'a> {
    kind: &'a str,
    attributes: Vec<(&'a str, String)>,
}

impl Message<'_> {
    fn get(&self, attribute: &str) -> Option<&str> {
        let mut attributes = self.attributes.iter();
        attributes.find(|(name, _)| *name == attribute).map(|(_, value)| value.as_str())
    }
}

/// Reads the messages of a line; one that has no end, or another form, is none.
fn messages(text: &str) -> impl Iterator<Item = Option<Message<'_>>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, behind) = rest.split_once(HEAD)?;
        let read = message(behind);
        rest = read.as_ref().map_or(behind, |(_, behind)| behind);
        Some(read.map(|(message, _)| message))
    })
}

/// Reads `testFailed name='a' message='x']`, and returns what follows.
fn message(text: &str) -> Option<(Message<'_>, &str)> {
    let (kind, mut rest) = word(text)?;
    let mut attributes = Vec::new();
    loop {
        let body = rest.trim_ascii_start();
        if let Some(behind) = body.strip_prefix(']') {
            return Some((Message { kind, attributes }, behind));
        }
        // `progressMessage 'text'` has a value without a name.
        let (name, quoted) = match body.strip_prefix('\'') {
            Some(quoted) => ("", quoted),
            None => {
                let (name, behind) = word(body)?;
                (name, behind.trim_ascii_start().strip_prefix('=')?.trim_ascii_start())
            }
        };
        let quoted = if name.is_empty() { quoted } else { quoted.strip_prefix('\'')? };
        let (value, behind) = unquoted(quoted)?;
        if attributes.len() >= MOST {
            return None;
        }
        attributes.push((name, value));
        rest = behind;
    }
}

fn word(text: &str) -> Option<(&str, &str)> {
    let len = text.bytes().take_while(|b| b.is_ascii_alphanumeric() || b"_.-".contains(b)).count();
    if len == 0 { None } else { text.split_at_checked(len) }
}

/// Reads a value up to its quote, with `|` in front of characters that mean something.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => return Some((value, &text[at + 1..])),
            '|' => match chars.next()?.1 {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                'x' | 'l' | 'p' => value.push(' '),
                // `|0x00E9`
                '0' if text[at + 2..].starts_with('x') => {
                    let digits = text.get(at + 3..at + 7)?;
                    let code = u32::from_str_radix(digits, 16).ok()?;
                    value.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    // The `x` and the digits.
                    chars.nth(4)?;
                }
                other => value.push(other),
            },
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Vec<Option<String>> {
        let shown = |message: Message<'_>| {
            let values = message.attributes.iter().map(|(name, value)| format!(" {name}={value}"));
            format!("{}{}", message.kind, values.collect::<String>())
        };
        messages(text).map(|message| message.map(shown)).collect()
    }

    #[test]
    fn messages_are_read_wherever_they_stand() {
        for (text, wanted) in [
            ("##teamcity[testStarted name='a']", &[Some("testStarted name=a")][..]),
            (
                "x##teamcity[testFinished name='a' duration='3']##teamcity[testCount count='2']",
                &[Some("testFinished name=a duration=3"), Some("testCount count=2")],
            ),
            ("##teamcity[progressMessage 'a|'b']", &[Some("progressMessage =a'b")]),
            (
                "##teamcity[m a='|[|]||n' b='|0x00E9-|n-' c = '' ]",
                &[Some("m a=[]|n b=\u{e9}-\n- c=")],
            ),
            ("##teamcity[enteredTheMatrix]", &[Some("enteredTheMatrix")]),
            ("##teamcity[testStarted name='a", &[None]),
            ("##teamcity[testStarted name='a|']", &[None]),
            ("##teamcity[testStarted name=a]", &[None]),
            (
                "##teamcity[testSta##teamcity[testStarted name='a']",
                &[None, Some("testStarted name=a")],
            ),
            ("##teamcity[]", &[None]),
            ("# teamcity[testStarted name='a']", &[]),
        ] {
            let wanted: Vec<_> = wanted.iter().map(|w| w.map(str::to_owned)).collect();
            assert_eq!(read(text), wanted, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(parts in prop::collection::vec(
            prop_oneof![
                prop::sample::select(vec![HEAD, "testFailed", " name='", "'", "|", "|0x00", "]", "=", " ", "é"])
                    .prop_map(str::to_owned),
                "\\PC{0,6}",
            ],
            0..16,
        )) {
            let text = parts.concat();
            prop_assert!(messages(&text).count() <= text.matches(HEAD).count());
        }

        #[test]
        fn quoted_values_come_back(value in "[a-z|'\\[\\]\n\r]{0,20}") {
            let quoted: String = value.chars().map(|c| match c {
                '\n' => "|n".to_owned(),
                '\r' => "|r".to_owned(),
                '|' | '\'' | '[' | ']' => format!("|{c}"),
                c => c.to_string(),
            }).collect();
            let text = format!("{quoted}' b");
            prop_assert_eq!(unquoted(&text), Some((value, " b")));
        }
    }
}
