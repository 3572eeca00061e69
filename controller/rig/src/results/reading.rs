//! One report that is being read: its grammar or markers, and what they have recorded.

use std::ops::Range;

use jig_model::result::{ResultFormat, TestReport};

use super::choice::{Credibility, Standing};
use super::grammar::{AssertionSigns, FormatSpec, Grammar};
use super::markers::{MarkedLine, MarkerReader};
use super::read_lines::ReadLines;
use super::record::{ReportBuilder, ResultEvent};
use crate::console::lines::{RawLine, ReportLine};

/// What reads the lines of a report.
#[derive(Debug)]
enum Source {
    Format { family: ResultFormat, grammar: Box<dyn Grammar>, failing: &'static AssertionSigns },
    Markers(Box<MarkerReader>),
}

/// A report from its first line on.
#[derive(Debug)]
pub(super) struct Reading {
    source: Source,
    record: ReportBuilder,
    opened_at: u64,
    /// Offset behind the line that ended the report.
    ended_at: Option<u64>,
    /// Events that were looked at while another report led.
    kept: usize,
    /// The stream ends in the middle of what would be a result.
    broke_off: bool,
    /// The lines that belong to it, and the number of those that are of no other report.
    lines: ReadLines,
    count: u64,
}

impl Reading {
    pub(super) fn of_format(spec: &FormatSpec, alone: bool, opened_at: u64) -> Self {
        let grammar = (spec.grammar)(alone);
        let source = Source::Format { family: spec.family, grammar, failing: spec.failing };
        Self::new(source, spec.format, opened_at)
    }

    pub(super) fn of_markers(markers: Box<MarkerReader>, opened_at: u64) -> Self {
        Self::new(Source::Markers(markers), ResultFormat::Markers, opened_at)
    }

    fn new(source: Source, format: ResultFormat, opened_at: u64) -> Self {
        let mut record = ReportBuilder::default();
        record.set_format(format);
        let lines = ReadLines::default();
        Self {
            source,
            record,
            opened_at,
            ended_at: None,
            kept: 0,
            broke_off: false,
            lines,
            count: 0,
        }
    }

    /// Returns the family of formats it reads; a plan's markers have none.
    pub(super) fn family(&self) -> Option<ResultFormat> {
        match &self.source {
            Source::Format { family, .. } => Some(*family),
            Source::Markers(_) => None,
        }
    }

    pub(super) fn format(&self) -> Option<ResultFormat> {
        self.record.format()
    }

    /// Tells whether a line that opens another format belongs to this report.
    pub(super) fn covers(&self, line: &ReportLine<'_>) -> bool {
        match &self.source {
            Source::Format { grammar, .. } => grammar.covers(line),
            Source::Markers(_) => false,
        }
    }

    /// Tells whether two reports are of the same tests: a framework that prints its own report prints
    /// TeamCity's messages within it, and both count the same.
    pub(super) fn tells_the_same_as(&self, other: &Self) -> bool {
        let formats = [self.format(), other.format()];
        let Some((end, other_end)) = self.ended_at.zip(other.ended_at) else { return false };
        formats.contains(&Some(ResultFormat::Teamcity))
            && self.opened_at < other_end
            && other.opened_at < end
            && self.record.tally() == other.record.tally()
            && !self.record.is_doubtful()
    }

    /// Tells whether a result begins within a range.
    pub(super) fn decides_in(&self, range: &Range<u64>) -> bool {
        self.record.decides_in(range)
    }

    pub(super) fn decided(&self) -> usize {
        self.record.decided()
    }

    /// Reads a line by a format's grammar; tells whether it is part of the report.
    pub(super) fn line<'a>(
        &mut self,
        text: &str,
        raw: &RawLine<'_>,
        mut meanings: impl Iterator<Item = ReportLine<'a>> + Clone,
    ) -> bool {
        let Source::Format { grammar, failing, .. } = &mut self.source else { return false };
        if let Some(line) = meanings.clone().find(|line| failing.match_line(line.text)) {
            self.record.assertion_failed(line.text);
        }
        let known = meanings.any(|line| grammar.line(&line, &mut self.record));
        if self.record.take_forgotten() {
            (self.opened_at, self.lines) = (raw.span.start, ReadLines::default());
        }
        if known {
            self.add(raw);
        } else {
            if grammar.holds_failure(text) {
                self.record.failure_in_prose(text);
            }
            grammar.fragment(text);
            grammar.prose(text.trim_ascii(), &mut self.record);
        }
        self.note_end(raw.span.end);
        known
    }

    /// Is shown the line in front of its first line, which may be the beginning of that.
    pub(super) fn fragment(&mut self, line: &str) {
        if let Source::Format { grammar, .. } = &mut self.source {
            grammar.fragment(line);
        }
    }

    /// Reads a record that stands between other text of a line.
    pub(super) fn enclosed(&mut self, record: &ReportLine<'_>, raw: &RawLine<'_>) {
        let Source::Format { grammar, .. } = &mut self.source else { return };
        if grammar.line(record, &mut self.record) {
            self.add(raw);
        }
        self.note_end(raw.span.end);
    }

    /// Reads a line by the plan's markers; tells whether they know it.
    pub(super) fn marked_line(&mut self, bytes: &[u8], raw: &RawLine<'_>) -> bool {
        let Source::Markers(markers) = &mut self.source else { return false };
        let marked = markers.line(bytes, raw.span, &mut self.record);
        if marked == MarkedLine::Result {
            self.add(raw);
        }
        self.note_end(raw.span.end);
        marked != MarkedLine::Unknown
    }

    /// A line that several reports know shows of none that it has begun.
    pub(super) fn shares(&mut self, raw: &RawLine<'_>) {
        let counted = u64::from(self.lines.contains(raw.span.start));
        self.count = self.count.saturating_sub(counted);
    }

    fn add(&mut self, raw: &RawLine<'_>) {
        self.count += 1;
        self.lines.add(raw.span);
    }

    fn note_end(&mut self, at: u64) {
        if !self.record.ended() {
            self.ended_at = None;
        } else if self.ended_at.is_none() {
            self.ended_at = Some(at);
        }
    }

    /// An overlong line is never a result, but one that would have been is worth a remark.
    pub(super) fn overlong_line<'a>(
        &mut self,
        bytes: &[u8],
        raw: &RawLine<'_>,
        mut meanings: impl Iterator<Item = ReportLine<'a>>,
    ) {
        let suspect = match &self.source {
            Source::Markers(markers) => markers.matches(bytes),
            Source::Format { grammar, .. } => meanings.any(|line| grammar.resembles(&line)),
        };
        if suspect {
            self.record.distrust(raw.span);
        }
    }

    /// A control string without an end hides the rest of a line.
    pub(super) fn hidden_text(&mut self, at: u64) {
        self.record.remark(format!("an unfinished control string hides text at {at}"));
    }

    /// The stream was cut here. Behind an end that is open a whole part may be lost.
    pub(super) fn cut(&mut self, at: u64) {
        let end_is_open = match &self.source {
            Source::Format { grammar, .. } => grammar.end_is_open(),
            Source::Markers(_) => false,
        };
        if !self.record.ended() || end_is_open {
            self.record.cut(at);
        }
    }

    /// Tells whether the report would end with an unfinished line.
    pub(super) fn closes_with<'a>(
        &self,
        mut meanings: impl Iterator<Item = ReportLine<'a>>,
    ) -> bool {
        let Source::Format { grammar, .. } = &self.source else { return false };
        meanings.any(|line| grammar.closed(&line))
    }

    /// Tells whether the case that runs is to end by the crash that a line shows.
    pub(super) fn awaits_crash(&self, line: &str) -> bool {
        match &self.source {
            Source::Format { grammar, .. } => grammar.awaits_crash(line),
            Source::Markers(_) => false,
        }
    }

    /// Reads the unfinished last line of the stream; tells whether it is part of the report.
    pub(super) fn last<'a>(
        &mut self,
        bytes: &[u8],
        raw: &RawLine<'_>,
        meanings: impl Iterator<Item = ReportLine<'a>>,
    ) -> bool {
        let mut known = false;
        match &mut self.source {
            Source::Markers(markers) => markers.last(bytes, &mut self.record),
            Source::Format { grammar, .. } => {
                let mut closed = None;
                for line in meanings {
                    self.broke_off |= grammar.resembles(&line);
                    if self.record.ended() && grammar.begins_more(&line) {
                        let text = "further tests begin behind the end of the report";
                        self.record.remark(text.to_owned());
                    }
                    closed = closed.or(grammar.closed(&line).then_some(line));
                }
                if let Some(line) = closed
                    && grammar.line(&line, &mut self.record)
                {
                    known = true;
                    self.add(raw);
                }
            }
        }
        self.note_end(raw.span.end);
        known
    }

    /// The stream is over: the grammar draws its last conclusions.
    pub(super) fn close(&mut self) {
        if let Source::Format { grammar, .. } = &mut self.source {
            grammar.finish(&mut self.record);
        }
    }

    /// Returns the report, and the lines that belong to it.
    pub(super) fn finish(self) -> (TestReport, ReadLines) {
        (self.record.finish(), self.lines)
    }

    pub(super) fn standing(&self) -> Standing {
        let (credibility, declared) = match &self.source {
            Source::Format { grammar, .. } => (grammar.credibility(), false),
            Source::Markers(_) => (Credibility::Report, true),
        };
        Standing {
            credibility,
            declared,
            failed: self.record.failed(),
            distrusted: self.record.distrusted(),
            broke_off: self.broke_off,
            lines: self.count,
            planned: self.record.planned().unwrap_or(0),
            begun: self.record.len(),
            decided: self.record.decided(),
            opened_at: self.opened_at,
            ended_at: self.ended_at,
        }
    }

    /// Hands out all events so far.
    pub(super) fn take_events(&mut self, sink: &mut Vec<ResultEvent>) {
        self.kept = 0;
        sink.append(&mut self.record.events);
    }

    /// Keeps the events that are worth telling should this report take the lead, so that their
    /// number is bounded by cases and remarks. Returns how many ends of the report were among them.
    pub(super) fn hold_events(&mut self) -> usize {
        let mut ends = 0;
        if self.record.events.len() > self.kept {
            let fresh = self.record.events.split_off(self.kept);
            for event in fresh {
                match event {
                    ResultEvent::Ended => ends += 1,
                    ResultEvent::Planned(_) | ResultEvent::Started { .. } => {}
                    event => self.record.events.push(event),
                }
            }
            self.kept = self.record.events.len();
        }
        ends
    }
}
