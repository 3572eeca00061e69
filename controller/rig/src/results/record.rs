//! The report under construction, and the rules that keep it from getting greener.
//!
//! Owns limits, duplicates, contradictions and events. Knows no result format.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use jig_model::result::{CaseStatus, ResultFormat, TestCase, TestReport};

use crate::console::lines::Span;

/// Most cases kept: ten times the largest suite known to run on one board.
const MAX_CASES: usize = 100_000;
/// Most bytes of names and messages kept together: reports are held in memory and sent whole.
const MAX_TEXT: usize = 16 << 20;
/// Longest name kept; C and Rust test paths stay far below.
const MAX_NAME: usize = 256;
/// Longest message kept: an assertion with both operands, not a dump.
const MAX_MESSAGE: usize = 1024;
/// Most remarks kept: one alone spoils a pass, more than a screenful explains nothing.
const MAX_REMARKS: usize = 32;

/// Something that a target reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultEvent {
    /// The format was recognised; comes a second time where TAP turns out to be KTAP.
    Format(ResultFormat),
    /// A case began.
    Started {
        /// Its name; hostile text.
        name: String,
    },
    /// A case was decided, or decided worse than before. The report's form of it may have
    /// parents in its name and a message that were not known yet.
    Case(TestCase),
    /// How many cases are announced, as far as is known.
    Planned(u64),
    /// The end marker was seen.
    Ended,
    /// Something is wrong with the report itself; may quote the target.
    Remark(String),
}

#[derive(Debug)]
struct CaseEntry {
    case: TestCase,
    decided: bool,
}

/// What a grammar says about one case.
#[derive(Debug, Clone, Copy)]
pub(super) struct CaseOutcome<'a> {
    pub(super) status: CaseStatus,
    pub(super) message: Option<&'a str>,
    pub(super) duration_ms: Option<u64>,
}

impl CaseOutcome<'_> {
    pub(super) fn of(status: CaseStatus) -> Self {
        Self { status, message: None, duration_ms: None }
    }
}

/// One of several runs of the same tests, which together are one report.
#[derive(Debug, Default)]
struct TestRun {
    /// How many came before it.
    earlier: u64,
    /// What stands behind the names of its cases; nothing behind those of the first run.
    suffix: String,
    /// Index of its first case.
    first: usize,
    /// Cases that the runs before it announced.
    planned: Option<u64>,
    /// Failures that the runs before it claimed.
    claimed: u64,
    /// Cases of the runs before it that failed.
    failing: u64,
}

impl TestRun {
    fn name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match self.suffix.as_str() {
            "" => Cow::Borrowed(name),
            suffix => Cow::Owned(format!("{name}{suffix}")),
        }
    }
}

/// Collects what grammars recognise.
#[derive(Debug, Default)]
pub(super) struct ReportBuilder {
    pub(super) events: Vec<ResultEvent>,
    format: Option<ResultFormat>,
    entries: Vec<CaseEntry>,
    /// Decided entries, in the order of decision.
    order: Vec<usize>,
    index: HashMap<String, usize>,
    text_bytes: usize,
    planned: Option<u64>,
    claimed: Option<u64>,
    failing: u64,
    ended: bool,
    distrusted: bool,
    /// A failing assertion that no failing case has explained yet.
    assertion: Option<String>,
    remarks: Vec<String>,
    run: TestRun,
    /// What was read so far was forgotten.
    forgotten: bool,
}

/// Orders outcomes from good to bad. Unfinished is worse than skipped: something ran and
/// did not come back.
fn badness(status: CaseStatus) -> u8 {
    match status {
        CaseStatus::Pass => 0,
        CaseStatus::Skip => 1,
        CaseStatus::Unfinished => 2,
        CaseStatus::Fail => 3,
    }
}

fn word(status: CaseStatus) -> &'static str {
    match status {
        CaseStatus::Pass => "pass",
        CaseStatus::Skip => "skip",
        CaseStatus::Unfinished => "unfinished",
        CaseStatus::Fail => "fail",
    }
}

/// Names a case within a sentence; one that has got a number in place of a name is named by it.
fn shown_case(name: &str) -> String {
    let shown = shortened(name, 80);
    if shown.starts_with("case ") { shown.to_owned() } else { format!("case {shown}") }
}

fn shortened(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

impl ReportBuilder {
    pub(super) fn set_format(&mut self, format: ResultFormat) {
        self.format = Some(format);
        self.events.push(ResultEvent::Format(format));
    }

    /// Forgets cases and plan: what was read was no report. The one that begins has its own.
    pub(super) fn forget(&mut self) {
        self.entries.clear();
        self.order.clear();
        self.index.clear();
        (self.text_bytes, self.failing, self.planned) = (0, 0, None);
        self.run = TestRun::default();
        self.ended = false;
        self.forgotten = true;
    }

    /// Tells once whether what was read so far was forgotten.
    pub(super) fn take_forgotten(&mut self) -> bool {
        std::mem::take(&mut self.forgotten)
    }

    /// Another run of the same tests begins: its cases have names of their own, and its counts add
    /// to those of the runs before. `word` is what the framework calls a run.
    pub(super) fn begin_run(&mut self, word: &str, number: u64) {
        self.ended = false;
        let earlier = self.run.earlier + 1;
        if number != earlier + 1 {
            self.remark(format!("{word} {number} follows {word} {earlier}"));
        }
        self.run = TestRun {
            earlier,
            suffix: format!(" ({word} {number})"),
            first: self.entries.len(),
            planned: self.planned.take().or(self.run.planned),
            claimed: self.claimed.unwrap_or(0),
            failing: self.failing,
        };
    }

    /// A case begins.
    pub(super) fn begin(&mut self, key: &str, name: &str, span: Span) {
        self.reopen();
        let (key, name) = (self.run.name(key), self.run.name(name));
        if self.index.contains_key(&*key) {
            self.remark(format!("{} started again", shown_case(&name)));
        } else if self.insert(&key, &name, span).is_some() {
            let name = shortened(&name, MAX_NAME).to_owned();
            self.events.push(ResultEvent::Started { name });
        }
    }

    /// A case's own line says how it ended.
    pub(super) fn decide(&mut self, key: &str, name: &str, outcome: CaseOutcome<'_>, span: Span) {
        self.reopen();
        let (key, name) = (self.run.name(key), self.run.name(name));
        self.explain_assertion(&name, outcome.status);
        let found = self.index.get(&*key).copied();
        let Some(at) = found.or_else(|| self.insert(&key, &name, span)) else { return };
        let Some(entry) = self.entries.get(at) else { return };
        if !entry.decided {
            self.order.push(at);
        } else {
            let old = entry.case.status;
            let shown = shown_case(&name);
            if old == outcome.status {
                self.remark(format!("{shown} reported twice"));
                return;
            }
            let (a, b) = (word(old), word(outcome.status));
            self.remark(format!("{shown} reported as {a} and as {b}"));
            if badness(outcome.status) < badness(old) {
                return;
            }
        }
        self.write(at, outcome, span);
    }

    /// A line said that an assertion failed, so the case that it belongs to must not pass.
    pub(super) fn assertion_failed(&mut self, line: &str) {
        self.assertion.get_or_insert_with(|| shortened(line, 120).to_owned());
    }

    /// A line that is no row of the report holds a failed one.
    pub(super) fn failure_in_prose(&mut self, line: &str) {
        let line = shortened(line.trim_ascii(), 120);
        self.remark(format!("a line that is no row of the report tells of a failure: {line}"));
    }

    /// What failed was expected to fail, as the report itself says.
    pub(super) fn excuse_assertion(&mut self) {
        self.assertion = None;
    }

    fn explain_assertion(&mut self, name: &str, status: CaseStatus) {
        if let Some(line) = self.assertion.take().filter(|_| status != CaseStatus::Fail) {
            let (shown, word) = (shown_case(name), word(status));
            self.remark(format!("{shown} is {word}, but an assertion failed: {line}"));
        }
    }

    /// Compares a count of the target's summary with the cases that were seen.
    pub(super) fn compare(&mut self, what: &str, told: u64, seen: u64) {
        if told != seen {
            self.remark(format!("the summary counts {told} {what}, {seen} were seen"));
        }
    }

    /// A summary repeats how a case ended. It can make the case worse, never better.
    pub(super) fn restate(&mut self, key: &str, name: &str, status: CaseStatus, span: Span) {
        let known_as = self.run.name(name);
        let shown = shown_case(&known_as);
        let known =
            self.index.get(&*self.run.name(key)).and_then(|&at| Some((at, self.entries.get(at)?)));
        match known.map(|(at, entry)| (at, entry.decided, entry.case.status)) {
            Some((_, true, old)) if old == status => {}
            Some((at, decided, old)) => {
                let (a, b) = (word(old), word(status));
                self.remark(format!("{shown} is {a}, but the summary says {b}"));
                if status == CaseStatus::Fail {
                    if !decided {
                        self.order.push(at);
                    }
                    self.write(at, CaseOutcome::of(status), span);
                }
            }
            None => {
                self.remark(format!("{shown} is only in the summary"));
                if status == CaseStatus::Fail {
                    self.decide(key, name, CaseOutcome::of(status), span);
                }
            }
        }
    }

    fn write(&mut self, at: usize, outcome: CaseOutcome<'_>, span: Span) {
        let message = outcome.message.map(str::trim).filter(|m| !m.is_empty());
        let message = message.and_then(|m| self.afford_message(m));
        let Some(entry) = self.entries.get_mut(at) else { return };
        let was_failing = entry.decided && entry.case.status == CaseStatus::Fail;
        entry.decided = true;
        entry.case.status = outcome.status;
        entry.case.message = message.or(entry.case.message.take());
        entry.case.duration_ms = outcome.duration_ms.or(entry.case.duration_ms);
        entry.case.start = span.start;
        entry.case.end = span.end;
        let case = entry.case.clone();
        self.failing += u64::from(!was_failing && case.status == CaseStatus::Fail);
        self.events.push(ResultEvent::Case(case));
    }

    fn afford_message(&mut self, message: &str) -> Option<String> {
        let kept = shortened(message, MAX_MESSAGE);
        if self.text_bytes + kept.len() > MAX_TEXT {
            return None;
        }
        self.text_bytes += kept.len();
        Some(kept.to_owned())
    }

    fn insert(&mut self, key: &str, name: &str, span: Span) -> Option<usize> {
        let cost = key.len() + name.len().min(MAX_NAME);
        if self.entries.len() >= MAX_CASES || self.text_bytes + cost > MAX_TEXT {
            self.remark("too many cases: the rest is not listed".to_owned());
            return None;
        }
        if name.len() > MAX_NAME {
            self.remark(format!("name cut to {MAX_NAME} bytes: {}", shortened(name, 80)));
        }
        self.text_bytes += cost;
        let at = self.entries.len();
        self.index.insert(key.to_owned(), at);
        let case = TestCase {
            name: shortened(name, MAX_NAME).to_owned(),
            status: CaseStatus::Unfinished,
            message: None,
            duration_ms: None,
            start: span.start,
            end: span.end,
        };
        self.entries.push(CaseEntry { case, decided: false });
        Some(at)
    }

    /// Adds a line to a case's message, after its result; the event went out without it.
    pub(super) fn explain(&mut self, key: &str, line: &str) {
        let Some(&at) = self.index.get(&*self.run.name(key)) else { return };
        let Some(line) = self.afford_message(line.trim()) else { return };
        let Some(entry) = self.entries.get_mut(at) else { return };
        let message = entry.case.message.get_or_insert_default();
        if message.len() + line.len() < MAX_MESSAGE {
            if !message.is_empty() {
                message.push('\n');
            }
            message.push_str(&line);
        }
    }

    /// Puts a parent in front of the names of all cases from `first` on.
    pub(super) fn prefix_from(&mut self, first: usize, parent: &str) {
        let parent = shortened(parent, MAX_NAME);
        for entry in self.entries.get_mut(first..).unwrap_or_default() {
            self.text_bytes += parent.len() + 2;
            if self.text_bytes <= MAX_TEXT {
                entry.case.name = format!("{parent}::{}", entry.case.name);
            }
        }
    }

    pub(super) fn format(&self) -> Option<ResultFormat> {
        self.format
    }

    /// Tells whether a case failed or the target's summary claims a failure.
    pub(super) fn failed(&self) -> bool {
        self.failing > 0 || self.claimed.is_some_and(|claimed| claimed > 0)
    }

    /// Counts the cases that have a result.
    pub(super) fn decided(&self) -> usize {
        self.order.len()
    }

    pub(super) fn knows(&self, key: &str) -> bool {
        self.index.contains_key(&*self.run.name(key))
    }

    pub(super) fn planned(&self) -> Option<u64> {
        self.planned.or(self.run.planned)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Counts results among the cases of this run.
    pub(super) fn count(&self, status: CaseStatus) -> u64 {
        self.count_from(self.run.first, status)
    }

    /// Counts results among the cases from `first` on.
    pub(super) fn count_from(&self, first: usize, status: CaseStatus) -> u64 {
        let tail = self.entries.get(first..).unwrap_or_default();
        tail.iter().filter(|e| e.decided && e.case.status == status).count() as u64
    }

    /// Counts passed, failed, skipped and unfinished cases of all runs.
    pub(super) fn tally(&self) -> [usize; 4] {
        let mut tally = [0; 4];
        for entry in &self.entries {
            let status = if entry.decided { entry.case.status } else { CaseStatus::Unfinished };
            tally[usize::from(badness(status))] += 1;
        }
        tally
    }

    /// Tells whether something is wrong with the report itself.
    pub(super) fn is_doubtful(&self) -> bool {
        !self.remarks.is_empty()
    }

    /// Lists the name and result of each case that has one.
    pub(super) fn results(&self) -> impl Iterator<Item = (&str, CaseStatus)> {
        let decided = self.entries.iter().filter(|entry| entry.decided);
        decided.map(|entry| (entry.case.name.as_str(), entry.case.status))
    }

    /// Tells whether one of the cases from `first` on failed.
    pub(super) fn failing_from(&self, first: usize) -> bool {
        self.count_from(first, CaseStatus::Fail) > 0
    }

    /// The target says once how many cases a run has; another number contradicts it.
    pub(super) fn plan(&mut self, count: u64) {
        let earlier = self.run.planned.unwrap_or(0);
        match self.planned.map(|planned| planned.saturating_sub(earlier)) {
            None => self.replan(count),
            Some(old) if old == count => {}
            Some(old) => self.remark(format!("announces {old} cases, then {count}")),
        }
    }

    /// What is known of the plan of this run grew.
    pub(super) fn replan(&mut self, count: u64) {
        let count = self.run.planned.unwrap_or(0).saturating_add(count);
        if self.planned != Some(count) {
            self.planned = Some(count);
            self.events.push(ResultEvent::Planned(count));
        }
    }

    /// The target's own summary claims failures of this run.
    pub(super) fn claim(&mut self, failures: u64) {
        let claimed = self.run.claimed.saturating_add(failures);
        self.claimed = Some(self.claimed.unwrap_or(0).max(claimed));
    }

    /// A verdict line says that something failed: at least one failure is claimed.
    pub(super) fn claim_any(&mut self) {
        self.claim((self.failing - self.run.failing).max(1));
    }

    pub(super) fn end(&mut self) {
        if !self.ended {
            self.ended = true;
            self.events.push(ResultEvent::Ended);
        }
    }

    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Results go on: the end that was seen was not the end.
    pub(super) fn reopen(&mut self) {
        if self.ended {
            self.ended = false;
            self.remark("results go on after the report ended".to_owned());
        }
    }

    /// Another part of the report begins where one has ended: a group, a package.
    pub(super) fn goes_on(&mut self) {
        self.ended = false;
    }

    /// Decides a case of a format that lists cases behind its end.
    pub(super) fn list(&mut self, key: &str, name: &str, outcome: CaseOutcome<'_>, span: Span) {
        let ended = std::mem::take(&mut self.ended);
        self.decide(key, name, outcome, span);
        self.ended = ended;
    }

    /// The report's head came again: the firmware started over.
    pub(super) fn begins_again(&mut self) {
        self.reopen();
        self.remark("the report begins again".to_owned());
    }

    pub(super) fn remark(&mut self, text: String) {
        if self.remarks.len() < MAX_REMARKS && !self.remarks.contains(&text) {
            self.events.push(ResultEvent::Remark(text.clone()));
            self.remarks.push(text);
        }
    }

    /// The stream was cut inside the report, or in front of it with its head unseen.
    pub(super) fn cut(&mut self, at: u64) {
        self.remark(format!("the report was cut at offset {at}"));
    }

    /// A line that cannot be trusted would have been a result.
    pub(super) fn distrust(&mut self, span: Span) {
        self.distrusted = true;
        self.remark(format!("overlong result line at {} ignored", span.start));
    }

    pub(super) fn distrusted(&self) -> bool {
        self.distrusted
    }

    /// Tells whether the line that decides a case begins within a range.
    pub(super) fn decides_in(&self, range: &Range<u64>) -> bool {
        self.entries.iter().any(|entry| entry.decided && range.contains(&entry.case.start))
    }

    pub(super) fn finish(mut self) -> TestReport {
        if let Some(line) = self.assertion.take().filter(|_| !self.failed()) {
            self.remark(format!("no case failed, but a line tells of a failure: {line}"));
        }
        if let Some(claimed) = self.claimed
            && claimed != self.failing
        {
            self.remark(format!(
                "the summary claims {claimed} failures, {} were seen",
                self.failing
            ));
        }
        let planned = self.planned();
        if let Some(planned) = planned
            && planned < self.entries.len() as u64
        {
            self.remark(format!("{planned} cases announced, {} seen", self.entries.len()));
        }
        let (mut open, mut slots) = (Vec::new(), Vec::with_capacity(self.entries.len()));
        for entry in self.entries {
            if entry.decided {
                slots.push(Some(entry.case));
            } else {
                slots.push(None);
                open.push(entry.case);
            }
        }
        let mut cases: Vec<TestCase> =
            self.order.iter().filter_map(|&at| slots.get_mut(at)?.take()).collect();
        cases.append(&mut open);
        TestReport {
            format: self.format,
            cases,
            planned,
            claimed_failures: self.claimed,
            ended: self.ended,
            remarks: self.remarks,
            may_be_log: false,
        }
    }
}
