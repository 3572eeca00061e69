//! The parser: opens a report for each format that a line stands for, and hands it the lines.

use std::ops::Range;

use jig_model::plan::Markers;
use jig_model::result::{ResultFormat, TestReport};

use super::choice::{Credibility, Standing};
use super::formats::{enclosed_in, holders, opened_by};
use super::grammar::FormatSpec;
use super::markers::{MarkerError, MarkerReader};
use super::power_on::without_noise;
use super::read_lines::ReadLines;
use super::reading::Reading;
use super::record::ResultEvent;
use super::tap::is_torn;
use crate::console::lines::{LineSplitter, RawLine, ReportLine, hides_text, lossy, plain};
use crate::console::log_prefix::without_prefix;

/// Most log prefixes taken off one line: time stamp, level, tag.
const MAX_PREFIXES: usize = 3;

/// Reads the results of one boot from a console's bytes.
#[derive(Debug)]
pub struct ResultParser {
    splitter: LineSplitter,
    reader: ReportReader,
    /// Where the line with the last end marker ends.
    ended_at: Option<u64>,
}

/// Reads every report that was opened, at most one for each family of formats.
#[derive(Debug)]
struct ReportReader {
    only: Option<ResultFormat>,
    markers: Option<Box<MarkerReader>>,
    readings: Vec<Reading>,
    /// Reports in other formats than the plan names: only whether results are missing is of interest.
    unnamed: Vec<Reading>,
    /// Index of the report whose events are passed on.
    leader: Option<usize>,
    /// Nothing but noise was read so far: the board has just been switched on.
    in_noise: bool,
    /// The last line, if it may be the beginning of the next one.
    fragment: Option<String>,
    /// Where the stream was last cut.
    cut_at: Option<u64>,
    /// Whether the end of a report was told.
    was_ended: bool,
    events: Vec<ResultEvent>,
}

impl ResultParser {
    /// Builds a parser for a stream whose first byte has an offset in the console's log.
    ///
    /// With `only`, of a report in another format only results that it announces and that do not come
    /// count; markers are tried before the formats.
    ///
    /// # Errors
    /// Refuses markers that do not compile, and `only` markers where there are none.
    pub fn new(
        only: Option<ResultFormat>,
        markers: Option<&Markers>,
        offset: u64,
    ) -> Result<Self, MarkerError> {
        let wanted = only.is_none_or(|only| only == ResultFormat::Markers);
        let markers = markers.filter(|_| wanted).map(MarkerReader::new).transpose()?;
        if only == Some(ResultFormat::Markers) && markers.is_none() {
            return Err(MarkerError::Missing);
        }
        Ok(Self {
            splitter: LineSplitter::new(offset),
            reader: ReportReader {
                only,
                markers: markers.map(Box::new),
                readings: Vec::new(),
                unnamed: Vec::new(),
                leader: None,
                in_noise: true,
                fragment: None,
                cut_at: None,
                was_ended: false,
                events: Vec::new(),
            },
            ended_at: None,
        })
    }

    /// Takes the next bytes of the stream, in chunks of any size.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut dyn FnMut(ResultEvent)) {
        let reader = &mut self.reader;
        reader.events.drain(..).for_each(&mut *sink);
        let ended_at = &mut self.ended_at;
        self.splitter.feed(bytes, |raw| {
            reader.line(&raw);
            for event in reader.events.drain(..) {
                if event == ResultEvent::Ended {
                    *ended_at = Some(raw.span.end);
                }
                sink(event);
            }
        });
    }

    /// Something cut the stream here: a fault banner, a reset, a gap.
    ///
    /// The unfinished line is no result, and neither is what follows up to the next line
    /// end. The offset goes on; a gap's lost bytes have none. Unless the report had ended
    /// or its head follows, it gets a remark: what was lost may have been a whole sub-test
    /// or suite, and the rest would still look complete.
    pub fn interrupt(&mut self) {
        let at = self.splitter.at();
        let reader = &mut self.reader;
        reader.cut_at = Some(at);
        reader.readings.iter_mut().for_each(|reading| reading.cut(at));
        reader.pass_on();
        self.splitter.interrupt();
    }

    /// Tells whether a report's end marker was seen, with no result of that report after it.
    pub fn ended(&self) -> bool {
        self.reader.ended()
    }

    /// Returns where the line with the end marker ends, if no result followed it.
    pub fn ended_at(&self) -> Option<u64> {
        self.ended_at.filter(|_| self.ended())
    }

    /// Tells whether the case that runs is to end by the crash that a line shows.
    pub fn awaits_crash(&self, line: &str) -> bool {
        self.reader.readings.iter().any(|reading| reading.awaits_crash(line))
    }

    /// Tells whether a line within a range of the log is the result of a case.
    pub fn has_result_in(&self, range: &Range<u64>) -> bool {
        self.reader.readings.iter().any(|reading| reading.decides_in(range))
    }

    /// Tells whether the report would have ended if the unfinished line were whole. A target that
    /// stops behind its last word prints no line end.
    pub fn ends_unfinished(&self) -> bool {
        let Some(raw) = self.splitter.unfinished() else { return false };
        let bytes = plain(raw.bytes);
        let noise = self.reader.in_noise;
        let text = lossy(if noise { without_noise(&bytes) } else { &bytes });
        let known = &self.reader.readings;
        !self.ended() && known.iter().any(|r| r.closes_with(meanings(&text, &raw)))
            || known.is_empty() && whole_report(&text, &raw).next().is_some()
    }

    /// Ends the stream and returns the report that counts.
    pub fn finish(self) -> TestReport {
        self.finish_with_lines().0
    }

    /// Ends the stream and returns the report that counts, with the lines that it consists of.
    pub fn finish_with_lines(self) -> (TestReport, ReadLines) {
        let Self { splitter, mut reader, ended_at: _ } = self;
        if let Some(raw) = splitter.unfinished() {
            let bytes = plain(raw.bytes);
            let text = lossy(if reader.in_noise { without_noise(&bytes) } else { &bytes });
            let mut known = false;
            for reading in &mut reader.readings {
                known |= reading.last(&bytes, &raw, meanings(&text, &raw));
            }
            if !known && !raw.cut {
                reader.read_enclosed(&text, &raw);
                reader.read_only_line(&text, &raw);
            }
        }
        reader.finish()
    }
}

impl ReportReader {
    fn line(&mut self, raw: &RawLine<'_>) {
        let bytes = plain(raw.bytes);
        let text = lossy(if self.in_noise { without_noise(&bytes) } else { &bytes });
        self.in_noise &= !bytes.iter().any(u8::is_ascii_graphic);
        self.open(&bytes, &text, raw);
        self.fragment = is_torn(&text).then(|| text.clone().into_owned());
        let readings = self.readings.len() + self.unnamed.len();
        if readings == 0 && (raw.cut || !text.contains("{{")) {
            return;
        }
        if hides_text(raw.bytes) {
            self.readings.iter_mut().for_each(|reading| reading.hidden_text(raw.span.start));
        }
        if raw.cut {
            for reading in &mut self.readings {
                reading.overlong_line(&bytes, raw, meanings(&text, raw));
            }
        } else if !self.readings.iter_mut().any(|reading| reading.marked_line(&bytes, raw)) {
            let mut known = 0;
            for reading in &mut self.readings {
                known += u32::from(reading.line(&text, raw, meanings(&text, raw)));
            }
            match known {
                0 => {
                    self.read_enclosed(&text, raw);
                    for reading in &mut self.unnamed {
                        reading.line(&text, raw, meanings(&text, raw));
                    }
                }
                1 => {}
                _ => self.readings.iter_mut().for_each(|reading| reading.shares(raw)),
            }
        }
        self.pass_on();
    }

    /// Opens a report for each format that alone can have printed this line. What the plan's
    /// markers know is theirs.
    fn open(&mut self, bytes: &[u8], text: &str, raw: &RawLine<'_>) {
        let at = raw.span.start;
        if let Some(markers) = self.markers.take_if(|markers| markers.knows(bytes)) {
            let mut reading = Reading::of_markers(markers, at);
            self.cut_at.into_iter().for_each(|at| reading.cut(at));
            self.readings.push(reading);
            return;
        }
        let held = holders(text);
        for line in meanings(text, raw) {
            for spec in opened_by(line, held) {
                let known = |r: &Reading| r.family() == Some(spec.family) || r.covers(&line);
                if !self.readings.iter().chain(&self.unnamed).any(known) {
                    self.begin(spec, &line);
                }
            }
        }
    }

    /// Reads the records that a line without a result holds between other text.
    fn read_enclosed(&mut self, text: &str, raw: &RawLine<'_>) {
        for (spec, record) in enclosed_in(text) {
            let Some(line) = ReportLine::new(record, raw.span) else { continue };
            if !self.readings.iter().any(|r| r.family() == Some(spec.family)) && (spec.opens)(&line)
            {
                self.begin(spec, &line);
            }
            let reading = self.readings.iter_mut().find(|r| r.family() == Some(spec.family));
            reading.into_iter().for_each(|reading| reading.enclosed(&line, raw));
        }
    }

    /// Reads a report that consists of the unfinished last line of the stream.
    fn read_only_line(&mut self, text: &str, raw: &RawLine<'_>) {
        let Some((spec, line)) = whole_report(text, raw).next() else { return };
        if self.readings.is_empty() {
            self.begin(spec, &line);
            for reading in &mut self.readings {
                reading.last(text.as_bytes(), raw, meanings(text, raw));
            }
            self.leader = self.best();
        }
    }

    /// Begins a report with its first line.
    fn begin(&mut self, spec: &FormatSpec, line: &ReportLine<'_>) {
        let named = self.only.is_none_or(|only| only == spec.format);
        let alone = self.only.is_some() && named;
        let mut reading = Reading::of_format(spec, alone, line.span.start);
        if let Some(fragment) = &self.fragment {
            reading.fragment(fragment);
        }
        if let Some(at) = self.cut_at.filter(|_| !(spec.tells_size)(line)) {
            reading.cut(at);
        }
        let readings = if named { &mut self.readings } else { &mut self.unnamed };
        readings.push(reading);
    }

    fn ended(&self) -> bool {
        let complete = |reading: &Reading| reading.standing().complete();
        let leads = |index: usize| {
            self.readings.get(index).is_some_and(|r| r.standing().ended_at.is_some())
        };
        self.leader.is_some_and(leads)
            || (self.readings.len() > 1 && self.readings.iter().any(complete))
    }

    /// Passes on the events of the report that leads; those of the others wait until they do. The
    /// end of any report is told at once: a wait may end with it.
    fn pass_on(&mut self) {
        if let [only] = self.readings.as_mut_slice()
            && self.leader == Some(0)
        {
            only.take_events(&mut self.events);
            self.was_ended = only.standing().ended_at.is_some();
            return;
        }
        let was_ended = self.was_ended;
        self.leader = self.best();
        let mut ends = 0;
        for (index, reading) in self.readings.iter_mut().enumerate() {
            if self.leader == Some(index) {
                reading.take_events(&mut self.events);
            } else {
                ends += reading.hold_events();
            }
        }
        self.was_ended = self.ended();
        if self.was_ended {
            let told = self.events.contains(&ResultEvent::Ended);
            let owed = if was_ended || told { ends } else { ends.max(1) };
            self.events.extend(std::iter::repeat_n(ResultEvent::Ended, owed));
        }
    }

    /// Finds the report that counts, as far as is known.
    fn best(&self) -> Option<usize> {
        let standings = self.readings.iter().map(Reading::standing).enumerate();
        let credible = standings.filter(|(_, s)| s.credibility != Credibility::Guess);
        credible.max_by_key(|(_, standing)| standing.rank()).map(|(index, _)| index)
    }

    fn finish(mut self) -> (TestReport, ReadLines) {
        self.readings.iter_mut().for_each(Reading::close);
        let told =
            |&best: &usize| self.readings.get(best).is_some_and(|r| !r.standing().is_stray());
        let Some(best) = self.best().filter(told) else { return Default::default() };
        let counted = self.readings.swap_remove(best);
        let standing: Standing = counted.standing();
        let others: Vec<_> =
            self.readings.iter().filter(|other| !other.tells_the_same_as(&counted)).collect();
        let (mut report, lines) = counted.finish();
        report.may_be_log = standing.may_be_log();
        for other in &mut self.unnamed {
            other.close();
            let found = other.standing();
            if found.breaks_off() && found.casts_doubt_on(&standing) {
                let (format, count) =
                    (other.format().map_or("unknown", ResultFormat::as_str), other.decided());
                let s = if count == 1 { "" } else { "s" };
                report.remarks.push(format!(
                    "the target has also begun a report in format {format} ({count} result{s}) that lacks \
                     results"
                ));
            }
        }
        for other in others {
            if other.standing().casts_doubt_on(&standing) {
                let format = other.format().map_or("unknown", ResultFormat::as_str);
                let (count, end) = (other.decided(), other.standing().ended_at);
                let s = if count == 1 { "" } else { "s" };
                let end = if end.is_some() { "" } else { ", without an end" };
                report.remarks.push(format!(
                    "the target also reports in format {format} ({count} result{s}{end}): \
                     name the format that counts in the plan"
                ));
            }
        }
        (report, lines)
    }
}

/// Lists the formats of which a line, to which no further byte belongs, is a whole report.
fn whole_report<'a>(
    text: &'a str,
    raw: &RawLine<'_>,
) -> impl Iterator<Item = (&'static FormatSpec, ReportLine<'a>)> {
    let held = holders(text);
    meanings(text, raw).flat_map(move |line| {
        let formats = opened_by(line, held).filter(move |spec| (spec.grammar)(false).closed(&line));
        formats.map(move |spec| (spec, line))
    })
}

/// Lists what a line can mean: itself, then what stands behind each log prefix.
fn meanings<'a>(text: &'a str, raw: &RawLine<'_>) -> impl Iterator<Item = ReportLine<'a>> + Clone {
    let span = raw.span;
    std::iter::successors(Some(text), |text| without_prefix(text))
        .take(1 + MAX_PREFIXES)
        .filter_map(move |text| ReportLine::new(text, span))
}
