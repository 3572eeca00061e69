//! The view of a run that all reports are made of.

use std::path::Path;

use jiff::Timestamp;
use jig_model::result::CaseStatus;
use jig_model::{Cause, Identity, Note, Verdict, VerdictKind, exit};

use super::text::{MAX_NAME, MAX_TEXT, cut, lines, one_line, tail};
use crate::store::RunRecord;

/// Names the forms a report can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReportFormat {
    /// JUnit XML.
    Junit,
    /// The verdict as JSON.
    Json,
    /// TAP 14.
    Tap,
    /// Markdown for a CI job's summary.
    Summary,
}

impl ReportFormat {
    /// Returns the name of the report's file in a run.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Junit => "junit.xml",
            Self::Json => "verdict.json",
            Self::Tap => "result.tap",
            Self::Summary => "summary.md",
        }
    }
}

/// One attempt, as reports show it.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptReport {
    /// Counts from 1.
    pub attempt: u32,
    /// What it amounts to.
    pub verdict: Verdict,
    /// Whether it was made again after the rig was recovered; it then counts for nothing.
    pub replaced: bool,
    /// How long it took.
    pub duration_ms: u64,
}

/// A run, as reports show it: settled, and every text bounded and harmless on one line.
#[derive(Debug, Clone, PartialEq)]
pub struct RunReport {
    pub(super) suite: String,
    pub(super) verdict: Verdict,
    pub(super) attempts: Vec<AttemptReport>,
    pub(super) run: Option<String>,
    pub(super) board: Option<String>,
    pub(super) place: Option<String>,
    pub(super) identity: Option<Identity>,
    pub(super) started: Option<Timestamp>,
    pub(super) duration_ms: Option<u64>,
    pub(super) properties: Vec<(String, String)>,
    pub(super) console_tail: Option<String>,
    pub(super) location: Option<SourceLocation>,
    pub(super) seen_before: Option<String>,
}

/// The line of a source file that a failure is shown at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file, as the report's reader knows it.
    pub file: String,
    /// Counts from 1.
    pub line: u32,
}

/// Refuses a false green: a pass among whose cases one failed or never ended is none.
///
/// The judge should never build one. This check stands where verdicts become exit codes, records
/// and reports, so that a bug in the judge cannot turn into a green build.
pub fn settle(verdict: Verdict) -> Verdict {
    if verdict.kind != VerdictKind::Pass {
        return verdict;
    }
    let failed = verdict.tests.count(CaseStatus::Fail);
    let unfinished = verdict.tests.count(CaseStatus::Unfinished);
    let (cause, summary) = if failed > 0 {
        (Cause::TestFailed, format!("{failed} failed although the run was judged a pass"))
    } else if unfinished > 0 {
        (
            Cause::ReportIncomplete,
            format!("{unfinished} never ended although the run was judged a pass"),
        )
    } else {
        return verdict;
    };
    let Verdict { evidence, tests, notes, .. } = verdict;
    Verdict { evidence, tests, notes, ..Verdict::of(cause, summary) }
}

/// Bounds a verdict and makes its texts harmless.
fn clip(verdict: Verdict) -> Verdict {
    let mut verdict = settle(verdict);
    verdict.summary = one_line(&cut(&verdict.summary, MAX_NAME));
    for evidence in &mut verdict.evidence {
        evidence.file = one_line(&cut(&evidence.file, MAX_NAME));
        evidence.note = one_line(&cut(&evidence.note, MAX_NAME));
    }
    for case in &mut verdict.tests.cases {
        case.name = one_line(&cut(&case.name, MAX_NAME));
        case.message = case.message.take().map(|text| lines(&cut(&text, MAX_TEXT)));
    }
    for remark in &mut verdict.tests.remarks {
        *remark = one_line(&cut(remark, MAX_NAME));
    }
    for note in &mut verdict.notes {
        *note = Note::Text(one_line(&cut(&note.to_string(), MAX_NAME)));
    }
    verdict
}

impl RunReport {
    /// Builds the view of a verdict; `suite` is the plan's name.
    pub fn new(suite: &str, verdict: Verdict) -> Self {
        Self {
            suite: one_line(&cut(suite, MAX_NAME)),
            verdict: clip(verdict),
            attempts: Vec::new(),
            run: None,
            board: None,
            place: None,
            identity: None,
            started: None,
            duration_ms: None,
            properties: Vec::new(),
            console_tail: None,
            location: None,
            seen_before: None,
        }
    }

    /// Builds the view of a stored run. One that has not ended shows as inconclusive.
    pub fn of(record: &RunRecord) -> Self {
        let suite = record.plan.as_ref().map_or("run", |plan| plan.name.as_str());
        let verdict = record.verdict.clone().unwrap_or_else(|| {
            Verdict::of(
                Cause::ReportIncomplete,
                "the run has not ended; this is what is known so far",
            )
        });
        let mut report = Self::new(suite, verdict);
        report.run = Some(record.id.to_string());
        report.board = record.board.as_ref().map(ToString::to_string);
        report.place = record.place.as_ref().map(ToString::to_string);
        report.identity = record.identity.clone();
        report.started = record.started;
        report.duration_ms = record.duration_ms;
        // A canary says something of the rig, and nothing of what was asked for.
        for attempt in record.attempts.iter().filter(|made| made.purpose.is_test()) {
            report = report.with_attempt(AttemptReport {
                attempt: attempt.attempt,
                verdict: attempt.verdict.clone(),
                replaced: attempt.replaced,
                duration_ms: attempt.duration_ms,
            });
        }
        if let Some(version) = &record.jig_version {
            report = report.with_property("jig.version", version);
        }
        let (attempts, recoveries) =
            (report.attempts.len(), report.attempts.iter().filter(|made| made.replaced).count());
        report = report.with_property("jig.attempts", &attempts.to_string());
        report = report.with_property("jig.recoveries", &recoveries.to_string());
        for image in &record.images {
            // The whole path tells about the machine of the user who built it; the name is enough.
            let name = Path::new(&image.path).file_name().unwrap_or_default().to_string_lossy();
            report = report.with_property("image", &name);
            report = report.with_property("image.sha256", &image.sha256);
            if let Some(build_id) = &image.build_id {
                report = report.with_property("image.build_id", build_id);
            }
        }
        for (name, value) in &record.host {
            report = report.with_property(&format!("host.{name}"), value);
        }
        report
    }

    /// Adds an attempt.
    #[must_use]
    pub fn with_attempt(mut self, attempt: AttemptReport) -> Self {
        self.attempts.push(AttemptReport { verdict: clip(attempt.verdict), ..attempt });
        self
    }

    /// Adds a fact worth keeping beside the result.
    #[must_use]
    pub fn with_property(mut self, name: &str, value: &str) -> Self {
        let (name, value) = (cut(name, MAX_NAME), cut(value, MAX_NAME));
        self.properties.push((one_line(&name), one_line(&value)));
        self
    }

    /// Adds the end of the console's log, already made UTF-8.
    #[must_use]
    pub fn with_console_tail(mut self, text: &str) -> Self {
        self.console_tail = Some(lines(&tail(text, MAX_TEXT)));
        self
    }

    /// Adds what is known of a failure that is seen again, for all forms: the property `jig.seen_before`.
    #[must_use]
    pub fn with_seen_before(self, words: Option<&str>) -> Self {
        let Some(words) = words.map(|words| one_line(&cut(words, MAX_NAME))) else { return self };
        let report = self.with_property("jig.seen_before", &words);
        Self { seen_before: Some(words), ..report }
    }

    /// Sets where the run ended, as a backtrace tells it.
    #[must_use]
    pub fn at_location(mut self, file: &str, line: u32) -> Self {
        self.location = Some(SourceLocation { file: one_line(&cut(file, MAX_NAME)), line });
        self
    }

    /// Returns the settled verdict: what all reports say.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Returns the exit code that goes with the reports.
    pub fn exit_code(&self) -> u8 {
        exit::of_verdict(self.verdict.kind)
    }
}
