//! Unity, plain and with its fixture extension run with `-v`.
//!
//! The fixture's quiet mode prints a mark for each test and names only the failing ones: the summary
//! then gives the number of the others, and the marks must agree with it.

use jig_model::result::{CaseStatus, ResultFormat};

use super::choice::Credibility;
use super::grammar::{FormatSpec, Grammar, NO_SIGNS, starts};
use super::record::{CaseOutcome, ReportBuilder};
use super::scan::{is_ident, number, summed_number};
use super::tally::{ProgressMarks, add_unnamed};
use crate::console::lines::{ReportLine, Span};

/// Most colons of a line that are looked at: a path and a name hold a handful.
const MAX_COLONS: usize = 16;

/// Longest name that is remembered.
const MAX_NAME: usize = 256;

/// Reads Unity's lines.
#[derive(Debug, Default)]
struct Unity {
    /// Key of the fixture test that runs, for its ` PASS` on a later line.
    running: Option<String>,
    /// The summary was read and `OK` or `FAIL` must follow.
    summed: bool,
    /// Tests, failures and ignored tests by all summaries.
    totals: [u64; 3],
    /// The prompt of ESP-IDF's test menu, or the head of another run, stands behind the last
    /// summary: another round may follow.
    prompted: bool,
    /// How many runs are announced that have not begun.
    runs_left: u64,
    /// The verdict of a run was read, and another run is announced.
    judged: bool,
    /// Other tests followed a complete summary, so that summaries add up.
    rounds: bool,
    /// The test that `Running x...` announced, and where.
    announced: Option<(String, Span)>,
    /// A test of that name had a result: such lines announce tests, and are no prose.
    announces: bool,
    /// A line was read that only Unity prints.
    sure: bool,
    /// The head of a fixture's run was read, and no line that names a passed test since.
    quiet: bool,
    marks: ProgressMarks,
}

/// What ESP-IDF's test menu prints behind each round of tests.
const PROMPT: &str = "Enter next test, or 'enter' to see menu";

struct CaseLine<'a> {
    file: &'a str,
    name: &'a str,
    outcome: CaseOutcome<'a>,
}

/// Its cases begin with a path, so only the colon behind it tells them from other lines.
pub(super) const UNITY: FormatSpec = FormatSpec {
    format: ResultFormat::Unity,
    family: ResultFormat::Unity,
    begins: b"TIRU0123456789",
    holds: &[":PASS", ":FAIL", " : FAIL", ":IGNORE"],
    opens,
    tells_size: |_| true,
    grammar: |_| Box::new(Unity::default()),
    failing: &NO_SIGNS,
};

fn opens(line: &ReportLine<'_>) -> bool {
    case_line(line.text).is_some()
        || fixture(line.text).is_some_and(|(_, rest)| {
            rest.is_empty() || pass(rest).is_some() || case_line(rest).is_some()
        })
        || summary(line.text).is_some()
        || running(line.text).is_some()
        || is_assertion_outside(line.text)
        || run_head(line.text).is_some()
}

impl Grammar for Unity {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        let text = line.text;
        if let Some(name) = running(text) {
            self.close_announced(record);
            self.announced = Some((name.to_owned(), line.span));
            return false;
        }
        if self.summed && matches!(text, "OK" | "FAIL") {
            self.verdict(text, record);
            return true;
        }
        if self.quiet && self.marks.line(text) {
            return true;
        }
        if let Some((run, of)) = run_head(text) {
            self.begin_run(run, of, record);
            return true;
        }
        if text == PROMPT {
            self.prompted = record.ended();
            return true;
        }
        if let Some((test, rest)) = fixture(text) {
            self.sure = true;
            let ignored = text.starts_with("IGNORE_");
            let name = fixture_name(test);
            self.next_round(Some(&name), record);
            if let Some(case) = case_line(rest) {
                self.running = None;
                record.decide(&name, &name, case.outcome, line.span);
            } else if ignored && rest.is_empty() {
                record.decide(&name, &name, CaseOutcome::of(CaseStatus::Skip), line.span);
            } else if let Some(duration_ms) = pass(rest) {
                self.quiet = false;
                let outcome = CaseOutcome { duration_ms, ..CaseOutcome::of(CaseStatus::Pass) };
                self.running = None;
                record.decide(&name, &name, outcome, line.span);
            } else {
                // Whatever the test prints follows its name on the same line.
                record.begin(&name, &name, line.span);
                self.running = Some(name);
            }
            self.summed = false;
            return true;
        }
        if let Some(case) = case_line(text) {
            self.sure = true;
            if self.announced.take_if(|(name, _)| name == case.name).is_some() {
                self.announces = true;
            }
            if fixture(case.name).is_some_and(|(_, rest)| rest.is_empty()) {
                let name = fixture_name(fixture(case.name).map_or(case.name, |(test, _)| test));
                self.next_round(Some(&name), record);
                record.decide(&name, &name, case.outcome, line.span);
                self.running = None;
            } else {
                // Two files may hold tests of one name. The quiet fixture's dots stick to
                // the file, so they are no part of it.
                let file = case.file.trim_start_matches(['.', '!', '/']);
                let key = format!("{file}\0{}", case.name);
                self.next_round(Some(&key), record);
                record.decide(&key, case.name, case.outcome, line.span);
            }
            self.summed = false;
            return true;
        }
        if let Some(counts) = summary(text) {
            self.sure = true;
            self.close_announced(record);
            self.next_round(None, record);
            if self.summed || record.ended() {
                record.begins_again();
            }
            let earlier = if self.rounds { self.totals } else { [0; 3] };
            let [tests, failures, ignored] =
                [0, 1, 2].map(|n| earlier[n].saturating_add(counts[n]));
            self.totals = [tests, failures, ignored];
            if self.quiet && !self.marks.is_empty() {
                self.add_marked(counts, line.span, record);
            }
            record.compare("ignored", ignored, record.count(CaseStatus::Skip));
            if self.rounds {
                record.replan(tests);
            } else {
                record.plan(tests);
            }
            record.claim(failures);
            self.summed = true;
            return true;
        }
        // After a test's own output ` PASS` stands alone, with the blank Unity prints.
        if line.indent == 1
            && text == "PASS"
            && let Some(name) = self.running.take()
        {
            record.decide(&name, &name, CaseOutcome::of(CaseStatus::Pass), line.span);
            return true;
        }
        false
    }

    fn prose(&mut self, text: &str, _record: &mut ReportBuilder) {
        if self.quiet {
            self.marks.prose(text);
        }
    }

    fn credibility(&self) -> Credibility {
        if self.sure { Credibility::Report } else { Credibility::Guess }
    }

    fn finish(&mut self, record: &mut ReportBuilder) {
        self.close_announced(record);
    }

    fn closed(&self, line: &ReportLine<'_>) -> bool {
        self.summed && matches!(line.text, "OK" | "FAIL")
    }

    fn holds_failure(&self, text: &str) -> bool {
        text.contains(":FAIL")
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        opens(line) || starts(line, &["TEST(", "IGNORE_TEST("])
    }
}

impl Unity {
    /// A run that has begun has an end of its own, and the cases of a repetition are told apart.
    fn begin_run(&mut self, run: u64, of: u64, record: &mut ReportBuilder) {
        let ended = record.ended() || self.judged;
        if run > 1 {
            if !ended {
                record.remark(format!("run {run} begins before the end of the last"));
            }
            record.begin_run("run", run);
            *self = Self { announces: self.announces, ..Self::default() };
        }
        self.sure = true;
        self.prompted = run == 1 && ended;
        self.runs_left = of.saturating_sub(run);
        self.quiet = true;
        record.goes_on();
    }

    /// Adds the tests of a quiet run that the summary counts and no line names.
    fn add_marked(&mut self, counts: [u64; 3], span: Span, record: &mut ReportBuilder) {
        let [tests, _, ignored] = counts;
        let named = [CaseStatus::Pass, CaseStatus::Fail].map(|status| record.count(status));
        let skipped = record.count(CaseStatus::Skip);
        self.marks.check(tests, ignored.saturating_sub(skipped), record);
        let passed = tests.saturating_sub(ignored + named[0] + named[1]);
        add_unnamed(record, CaseStatus::Pass, passed, span);
        add_unnamed(record, CaseStatus::Skip, ignored.saturating_sub(skipped), span);
    }

    /// A test that was announced and has no result is unfinished.
    fn close_announced(&mut self, record: &mut ReportBuilder) {
        if let Some((name, span)) = self.announced.take().filter(|_| self.announces) {
            record.begin(&format!("\0{name}"), &name, span);
        }
    }

    /// Goes on with the report behind the menu's prompt, or with the first test of another group:
    /// a program may run several, each with a summary. A test that has a result already belongs to
    /// a report that begins again.
    fn next_round(&mut self, test: Option<&str>, record: &mut ReportBuilder) {
        let other = record.ended() && test.is_some_and(|key| !record.knows(key));
        if std::mem::take(&mut self.prompted) || other {
            self.rounds = true;
            record.goes_on();
        }
    }

    fn verdict(&mut self, text: &str, record: &mut ReportBuilder) {
        self.summed = false;
        let [_, failures, _] = self.totals;
        match (text, failures) {
            ("FAIL", 0) => {
                record.remark("the summary counts no failure, but the verdict is FAIL".to_owned());
                record.claim_any();
            }
            ("OK", 1..) => {
                record.remark(format!("the summary counts {failures} failures, but says OK"));
            }
            _ => {}
        }
        self.judged = self.runs_left > 0;
        if !self.judged {
            record.end();
        }
    }
}

/// Reads the numbers in `Unity test run 1 of 2`, with which the fixture begins each run.
fn run_head(text: &str) -> Option<(u64, u64)> {
    let (run, of) = text.strip_prefix("Unity test run ")?.split_once(" of ")?;
    Some((number(run)?, number(of)?))
}

/// Reads the name in `Running push...`, which ESP-IDF and others print in front of a test.
fn running(text: &str) -> Option<&str> {
    let name = text.strip_prefix("Running ")?.strip_suffix("...")?;
    (1..=MAX_NAME).contains(&name.len()).then_some(name)
}

/// Splits `TEST(group, name)` off the front.
fn fixture(text: &str) -> Option<(&str, &str)> {
    let body = text.strip_prefix("IGNORE_").unwrap_or(text).strip_prefix("TEST(")?;
    let (inside, rest) = body.split_once(')')?;
    let (group, name) = inside.split_once(", ")?;
    (is_ident(group) && is_ident(name)).then_some((inside, rest))
}

fn fixture_name(test: &str) -> String {
    test.replacen(", ", "::", 1)
}

/// Reads ` PASS` with or without a time.
fn pass(rest: &str) -> Option<Option<u64>> {
    let rest = rest.strip_prefix(" PASS")?;
    if rest.is_empty() { Some(None) } else { Some(Some(exec_time(rest)?)) }
}

fn exec_time(text: &str) -> Option<u64> {
    number(text.strip_prefix(" (")?.strip_suffix(" ms)")?)
}

/// Reads `file:line:name:PASS|FAIL|IGNORE[:message]`.
///
/// Paths may hold blanks and colons, and so may names, as those of ESP-IDF do. The first line number
/// behind something that is a path ends it; the first word of the three that can end a line ends the
/// name. Only a failed case may have blanks around its colons.
fn case_line(text: &str) -> Option<CaseLine<'_>> {
    if ![":PASS", ":FAIL", " : FAIL", ":IGNORE"].iter().any(|word| text.contains(word)) {
        return None;
    }
    // A drive letter holds a colon, too.
    let skip = if text.as_bytes().get(1) == Some(&b':') { 2 } else { 0 };
    let colons = text.bytes().enumerate().skip(skip).filter(|&(_, byte)| byte == b':');
    let (file, rest) = colons.take(MAX_COLONS).find_map(|(at, _)| {
        let (file, rest) = text.split_at_checked(at)?;
        let (line, rest) = rest.get(1..)?.split_once(':')?;
        number(line).filter(|_| is_path(file))?;
        Some((file, rest))
    })?;
    let colons = rest.bytes().enumerate().filter(|&(_, byte)| byte == b':');
    colons.take(MAX_COLONS).find_map(|(at, _)| {
        let (name, verdict) = rest.split_at_checked(at)?;
        let verdict = verdict.get(1..)?;
        if name.trim().is_empty() {
            return None;
        }
        let exact = case_outcome(verdict).filter(|_| name.trim() == name);
        let outcome = exact.or_else(|| spaced_failure(verdict))?;
        Some(CaseLine { file, name: name.trim(), outcome })
    })
}

/// Tells whether a line is a failing assertion outside of a test: `file:line::FAIL: message`. The
/// file, too, is empty as long as no report has begun.
fn is_assertion_outside(text: &str) -> bool {
    let Some((place, verdict)) = text.split_once("::FAIL") else { return false };
    let Some((file, line)) = place.rsplit_once(':') else { return false };
    let ends = verdict.is_empty() || verdict.starts_with(':');
    ends && number(line).is_some() && (file.is_empty() || is_path(file))
}

/// Reads `PASS`, `FAIL: message`, `PASS (3 ms)`.
fn case_outcome(verdict: &str) -> Option<CaseOutcome<'_>> {
    let words =
        [("PASS", CaseStatus::Pass), ("FAIL", CaseStatus::Fail), ("IGNORE", CaseStatus::Skip)];
    let (status, tail) =
        words.into_iter().find_map(|(word, status)| Some((status, verdict.strip_prefix(word)?)))?;
    let mut outcome = CaseOutcome::of(status);
    if let Some(message) = tail.strip_prefix(':').filter(|_| status != CaseStatus::Pass) {
        outcome.message = Some(message);
    } else if !tail.is_empty() {
        outcome.duration_ms = Some(exec_time(tail)?);
    }
    Some(outcome)
}

/// Reads ` FAIL : message`.
fn spaced_failure(verdict: &str) -> Option<CaseOutcome<'_>> {
    let tail = verdict.trim().strip_prefix("FAIL")?.trim_start();
    let message = tail.strip_prefix(':').map(str::trim_start);
    let outcome = CaseOutcome { message, ..CaseOutcome::of(CaseStatus::Fail) };
    (tail.is_empty() || message.is_some()).then_some(outcome)
}

/// Tells whether a text is the path of a source file.
///
/// A path with blanks or colons is told from prose by how it begins, or by a folder in it.
fn is_path(file: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b >= 0x80 || b"_./\\:+-!".contains(&b);
    let wide = |b: u8| plain(b) || b" ()[]{}@~,=&'#$%^".contains(&b);
    let Some((body, extension)) = file.rsplit_once('.') else { return false };
    let bytes = file.as_bytes();
    let drive = matches!(bytes, [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    let rooted = drive || ["/", "./", "../", ".\\", "..\\"].iter().any(|r| file.starts_with(r));
    let colons = file.get(if drive { 2 } else { 0 }..).is_some_and(|rest| rest.contains(':'));
    if bytes.iter().all(|&b| plain(b)) && !colons {
        return true;
    }
    let source = matches!(
        extension,
        "c" | "cc" | "cpp" | "cxx" | "c++" | "h" | "hh" | "hpp" | "m" | "ino" | "C" | "S"
    );
    let folder =
        body.contains(['/', '\\']) && bytes.first().is_some_and(|b| b.is_ascii_alphanumeric());
    source && bytes.iter().all(|&b| wide(b)) && (rooted || (folder && !colons))
}

/// Reads `3 Tests 1 Failures 0 Ignored`.
fn summary(text: &str) -> Option<[u64; 3]> {
    if !text.as_bytes().first()?.is_ascii_digit() {
        return None;
    }
    let mut words = text.split(' ');
    let mut counts = [0; 3];
    for (count, label) in counts.iter_mut().zip(["Tests", "Failures", "Ignored"]) {
        *count = summed_number(words.next()?)?;
        if words.next()? != label {
            return None;
        }
    }
    words.next().is_none().then_some(counts)
}
