//! The parser: recognises the format, then hands lines to its grammar.

use jig_model::plan::Markers;
use jig_model::result::{ResultFormat, TestReport};

use super::formats::opened_by;
use super::grammar::{FormatSpec, Grammar};
use super::markers::{MarkerError, MarkerReader};
use super::record::{ReportBuilder, ResultEvent};
use crate::console::lines::{
    LineSplitter, RawLine, ReportLine, hides_text, lossy, plain, without_prefix,
};

/// Most log prefixes taken off one line: time stamp, level, tag.
const MAX_PREFIXES: usize = 3;

/// Reads the results of one boot from a console's bytes.
#[derive(Debug)]
pub struct ResultParser {
    splitter: LineSplitter,
    reader: ReportReader,
}

/// What reads the report, once it is recognised.
#[derive(Debug)]
enum Speaker {
    Format { family: ResultFormat, grammar: Box<dyn Grammar> },
    Markers(Box<MarkerReader>),
}

#[derive(Debug)]
struct ReportReader {
    only: Option<ResultFormat>,
    markers: Option<Box<MarkerReader>>,
    speaker: Option<Speaker>,
    /// Where the stream was cut before any format was recognised.
    cut_at: Option<u64>,
    record: ReportBuilder,
}

impl ResultParser {
    /// Builds a parser for a stream whose first byte has an offset in the console's log.
    ///
    /// With `only`, other formats are not looked for. Without it, the first format that is
    /// recognised counts; markers are tried first.
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
                speaker: None,
                cut_at: None,
                record: ReportBuilder::default(),
            },
        })
    }

    /// Takes the next bytes of the stream, in chunks of any size.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut dyn FnMut(ResultEvent)) {
        let reader = &mut self.reader;
        reader.record.events.drain(..).for_each(&mut *sink);
        self.splitter.feed(bytes, |raw| {
            reader.line(&raw);
            reader.record.events.drain(..).for_each(&mut *sink);
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
        if self.reader.speaker.is_none() {
            self.reader.cut_at = Some(at);
        } else if !self.reader.record.ended() {
            self.reader.record.cut(at);
        }
        self.splitter.interrupt();
    }

    /// Tells whether the format's end marker was seen, with no result after it.
    pub fn ended(&self) -> bool {
        self.reader.record.ended()
    }

    /// Tells whether the report would have ended if the unfinished line were whole. A target that
    /// stops behind its last word prints no line end.
    pub fn ends_unfinished(&self) -> bool {
        let Some(raw) = self.splitter.unfinished() else { return false };
        let Some(Speaker::Format { grammar, .. }) = &self.reader.speaker else { return false };
        let bytes = plain(raw.bytes);
        let text = lossy(&bytes);
        !self.ended() && candidates(&text, &raw).any(|line| grammar.closed(&line))
    }

    /// Ends the stream and returns the report.
    pub fn finish(self) -> TestReport {
        let Self { splitter, mut reader } = self;
        if let Some(raw) = splitter.unfinished() {
            reader.last(&raw);
        }
        if let Some(Speaker::Format { grammar, .. }) = &mut reader.speaker {
            grammar.finish(&mut reader.record);
        }
        reader.record.finish()
    }
}

impl ReportReader {
    fn line(&mut self, raw: &RawLine<'_>) {
        let bytes = plain(raw.bytes);
        let text = lossy(&bytes);
        if raw.cut {
            self.cut_line(&bytes, &text, raw);
            return;
        }
        if self.speaker.is_none() {
            self.speaker = self.recognise(&bytes, &text, raw);
        }
        let Some(speaker) = &mut self.speaker else { return };
        let record = &mut self.record;
        if hides_text(raw.bytes) {
            let at = raw.span.start;
            record.remark(format!("an unfinished control string hides text at {at}"));
        }
        match speaker {
            Speaker::Markers(markers) => {
                if markers.line(&bytes, raw.span, record) {
                    return;
                }
            }
            Speaker::Format { grammar, .. } => {
                if candidates(&text, raw).any(|line| grammar.line(&line, record)) {
                    return;
                }
                grammar.prose(text.trim_ascii(), record);
            }
        }
        if self.only.is_none()
            && let Some(other) = self.foreign(&bytes, &text, raw)
        {
            self.record.remark(format!("the target also speaks {}, not read", other.as_str()));
        }
    }

    fn recognise(&mut self, bytes: &[u8], text: &str, raw: &RawLine<'_>) -> Option<Speaker> {
        if let Some(markers) = self.markers.take_if(|markers| markers.matches(bytes)) {
            self.record.set_format(ResultFormat::Markers);
            if let Some(at) = self.cut_at {
                self.record.cut(at);
            }
            return Some(Speaker::Markers(markers));
        }
        let wanted = |found: &&FormatSpec| self.only.is_none_or(|only| only == found.format);
        let (found, line) = candidates(text, raw)
            .find_map(|line| opened_by(line).find(wanted).map(|found| (found, line)))?;
        self.record.set_format(found.format);
        if let Some(at) = self.cut_at.filter(|_| !(found.tells_size)(&line)) {
            self.record.cut(at);
        }
        let grammar = (found.grammar)(self.only.is_some());
        Some(Speaker::Format { family: found.family, grammar })
    }

    /// Finds another format in a line that the recognised one does not know.
    fn foreign(&self, bytes: &[u8], text: &str, raw: &RawLine<'_>) -> Option<ResultFormat> {
        if self.markers.as_ref().is_some_and(|markers| markers.matches(bytes)) {
            return Some(ResultFormat::Markers);
        }
        let own = match &self.speaker {
            Some(Speaker::Format { family, .. }) => Some(*family),
            Some(Speaker::Markers(_)) | None => None,
        };
        let other = |found: &&FormatSpec| Some(found.family) != own;
        candidates(text, raw).find_map(|line| opened_by(line).find(other).map(|found| found.format))
    }

    /// An overlong line is never a result, but one that would have been is worth a remark.
    fn cut_line(&mut self, bytes: &[u8], text: &str, raw: &RawLine<'_>) {
        let suspect = match &self.speaker {
            Some(Speaker::Markers(markers)) => markers.matches(bytes),
            Some(Speaker::Format { grammar, .. }) => {
                candidates(text, raw).any(|line| grammar.resembles(&line))
            }
            None => self.markers.as_ref().is_some_and(|markers| markers.matches(bytes)),
        };
        if suspect {
            self.record.distrust(raw.span);
        }
    }

    /// Reads the unfinished last line of the stream.
    fn last(&mut self, raw: &RawLine<'_>) {
        let bytes = plain(raw.bytes);
        let text = lossy(&bytes);
        match &mut self.speaker {
            Some(Speaker::Markers(markers)) => markers.last(&bytes, &mut self.record),
            Some(Speaker::Format { grammar, .. }) => {
                if let Some(line) = candidates(&text, raw).find(|line| grammar.closed(line)) {
                    grammar.line(&line, &mut self.record);
                }
            }
            None => {}
        }
    }
}

/// Lists what a line can mean: itself, then what stands behind each log prefix.
fn candidates<'a>(text: &'a str, raw: &RawLine<'_>) -> impl Iterator<Item = ReportLine<'a>> {
    let span = raw.span;
    std::iter::successors(Some(text), |text| without_prefix(text))
        .take(1 + MAX_PREFIXES)
        .filter_map(move |text| ReportLine::new(text, span))
}
