//! The parser: recognises the format, then hands lines to its grammar.

use std::borrow::Cow;

use jig_model::plan::Markers;
use jig_model::result::{ResultFormat, TestReport};

use super::lines::{Line, LineSplitter, RawLine, plain, without_prefix};
use super::markers::{MarkerError, MarkerReader};
use super::record::{Record, ResultEvent};
use super::{gtest, libtest, tap, unity, ztest};

/// Most log prefixes taken off one line: time stamp, level, tag.
const MAX_PREFIXES: usize = 3;

/// Reads the results of one boot from a console's bytes.
#[derive(Debug)]
pub struct ResultParser {
    splitter: LineSplitter,
    reader: Reader,
}

#[derive(Debug)]
enum Speaker {
    Unity(unity::Unity),
    Ztest(ztest::Ztest),
    Tap(tap::Tap),
    Gtest(gtest::Gtest),
    Libtest(libtest::Libtest),
    Markers(Box<MarkerReader>),
}

#[derive(Debug)]
struct Reader {
    only: Option<ResultFormat>,
    markers: Option<Box<MarkerReader>>,
    speaker: Option<Speaker>,
    /// Where the stream was cut before any format was recognised.
    cut_at: Option<u64>,
    record: Record,
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
            reader: Reader {
                only,
                markers: markers.map(Box::new),
                speaker: None,
                cut_at: None,
                record: Record::default(),
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

    /// Ends the stream and returns the report.
    pub fn finish(self) -> TestReport {
        let Self { splitter, mut reader } = self;
        if let Some(raw) = splitter.unfinished() {
            reader.last(&raw);
        }
        if let Some(Speaker::Tap(tap)) = &mut reader.speaker {
            tap.finish(&mut reader.record);
        }
        reader.record.finish()
    }
}

impl Reader {
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
        if let Speaker::Markers(markers) = speaker {
            if markers.line(&bytes, raw.span, &mut self.record) {
                return;
            }
        } else {
            if candidates(&text, raw).any(|line| speaker.line(&line, &mut self.record)) {
                return;
            }
            speaker.prose(text.trim_ascii(), &mut self.record);
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
        let (format, line) = candidates(text, raw).find_map(|line| {
            let format =
                opened_by(line).find(|&format| self.only.is_none_or(|only| only == format))?;
            Some((format, line))
        })?;
        self.record.set_format(format);
        if let Some(at) = self.cut_at.filter(|_| !tells_size(format, &line)) {
            self.record.cut(at);
        }
        Some(match format {
            ResultFormat::Unity => Speaker::Unity(unity::Unity::default()),
            ResultFormat::Ztest => Speaker::Ztest(ztest::Ztest::default()),
            ResultFormat::Tap => Speaker::Tap(tap::Tap::new(false, self.only.is_none())),
            ResultFormat::Ktap => Speaker::Tap(tap::Tap::new(true, false)),
            ResultFormat::Gtest => Speaker::Gtest(gtest::Gtest::default()),
            ResultFormat::Libtest => Speaker::Libtest(libtest::Libtest::default()),
            ResultFormat::Markers => return None,
        })
    }

    /// Finds another format in a line that the recognised one does not know.
    fn foreign(&self, bytes: &[u8], text: &str, raw: &RawLine<'_>) -> Option<ResultFormat> {
        if self.markers.as_ref().is_some_and(|markers| markers.matches(bytes)) {
            return Some(ResultFormat::Markers);
        }
        let own = self.speaker.as_ref().map(Speaker::family);
        candidates(text, raw).find_map(|line| opened_by(line).find(|&f| Some(family(f)) != own))
    }

    /// An overlong line is never a result, but one that would have been is worth a remark.
    fn cut_line(&mut self, bytes: &[u8], text: &str, raw: &RawLine<'_>) {
        let suspect = match &self.speaker {
            Some(Speaker::Markers(markers)) => markers.matches(bytes),
            Some(speaker) => candidates(text, raw).any(|line| speaker.resembles(&line)),
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
            Some(speaker) => {
                if let Some(line) = candidates(&text, raw).find(|line| speaker.closed(line)) {
                    speaker.line(&line, &mut self.record);
                }
            }
            None => {}
        }
    }
}

impl Speaker {
    fn line(&mut self, line: &Line<'_>, record: &mut Record) -> bool {
        match self {
            Self::Unity(unity) => unity.line(line, record),
            Self::Ztest(ztest) => ztest.line(line, record),
            Self::Tap(tap) => tap.line(line, record),
            Self::Gtest(gtest) => gtest.line(line, record),
            Self::Libtest(libtest) => libtest.line(line, record),
            Self::Markers(_) => false,
        }
    }

    /// Shows a grammar a line that is no result: it may explain one.
    fn prose(&mut self, text: &str, record: &mut Record) {
        match self {
            Self::Ztest(ztest) => ztest.prose(text),
            Self::Gtest(gtest) => gtest.prose(text),
            Self::Libtest(libtest) => libtest.prose(text, record),
            Self::Unity(_) | Self::Tap(_) | Self::Markers(_) => {}
        }
    }

    /// Tells whether no further byte on this line could change its meaning.
    fn closed(&self, line: &Line<'_>) -> bool {
        match self {
            Self::Unity(unity) => unity.closed(line),
            Self::Ztest(_) => ztest::Ztest::closed(line),
            Self::Gtest(gtest) => gtest.closed(line),
            Self::Libtest(_) => libtest::Libtest::closed(line),
            Self::Tap(_) | Self::Markers(_) => false,
        }
    }

    /// Tells whether the head of an overlong line looks like a result.
    fn resembles(&self, line: &Line<'_>) -> bool {
        let starts = |heads: &[&str]| heads.iter().any(|head| line.text.starts_with(head));
        match self {
            Self::Unity(_) => unity::opens(line) || starts(&["TEST(", "IGNORE_TEST("]),
            Self::Ztest(_) => starts(&["PASS - ", "FAIL - ", "SKIP - ", "START - "]),
            Self::Tap(_) => starts(&["ok ", "not ok ", "Bail out!"]),
            Self::Gtest(_) => starts(&["[ RUN", "[       OK", "[  FAILED", "[  SKIPPED"]),
            Self::Libtest(_) => line.text.starts_with("test ") && line.text.contains(" ... "),
            Self::Markers(_) => false,
        }
    }

    fn family(&self) -> ResultFormat {
        match self {
            Self::Unity(_) => ResultFormat::Unity,
            Self::Ztest(_) => ResultFormat::Ztest,
            Self::Tap(_) => ResultFormat::Tap,
            Self::Gtest(_) => ResultFormat::Gtest,
            Self::Libtest(_) => ResultFormat::Libtest,
            Self::Markers(_) => ResultFormat::Markers,
        }
    }
}

/// Tells whether nothing of the report can be missing in front of its first line unnoticed:
/// that line is the head, or a count of all cases comes last.
fn tells_size(format: ResultFormat, first: &Line<'_>) -> bool {
    match format {
        ResultFormat::Unity | ResultFormat::Libtest => true,
        ResultFormat::Gtest => first.text.starts_with("[==========]"),
        ResultFormat::Tap | ResultFormat::Ktap => {
            first.indent == 0 && first.text.contains("TAP version ")
        }
        ResultFormat::Ztest | ResultFormat::Markers => false,
    }
}

/// One grammar reads TAP and KTAP.
fn family(format: ResultFormat) -> ResultFormat {
    if format == ResultFormat::Ktap { ResultFormat::Tap } else { format }
}

/// Reads bytes as text; what is no UTF-8 becomes a character that no grammar knows.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    // The strict check is several times faster than the lossy one, and nearly always enough.
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// Tells cheaply whether a line could be the first of a report: most console lines are not.
fn may_open(text: &str) -> bool {
    match text.as_bytes() {
        // Heads and results of all formats but Unity's plain lines.
        [b'K' | b'T' | b'I' | b'o' | b'n' | b'R' | b'S' | b'P' | b'F' | b'[' | b'r', ..] => true,
        [b'0'..=b'9', ..] => true,
        bytes => memchr::memchr(b':', bytes).is_some(),
    }
}

/// Lists the formats that alone can have printed a line.
fn opened_by<'a>(line: Line<'a>) -> impl Iterator<Item = ResultFormat> + use<'a> {
    type Opens = fn(&Line<'_>) -> bool;
    static GRAMMARS: [(ResultFormat, Opens); 6] = [
        (ResultFormat::Ktap, tap::opens_ktap),
        (ResultFormat::Tap, tap::opens),
        (ResultFormat::Ztest, ztest::opens),
        (ResultFormat::Gtest, gtest::opens),
        (ResultFormat::Libtest, libtest::opens),
        (ResultFormat::Unity, unity::opens),
    ];
    let grammars: &[(ResultFormat, Opens)] = if may_open(line.text) { &GRAMMARS } else { &[] };
    grammars.iter().filter(move |(_, opens)| opens(&line)).map(|&(format, _)| format)
}

/// Lists what a line can mean: itself, then what stands behind each log prefix.
fn candidates<'a>(text: &'a str, raw: &RawLine<'_>) -> impl Iterator<Item = Line<'a>> {
    let span = raw.span;
    std::iter::successors(Some(text), |text| without_prefix(text))
        .take(1 + MAX_PREFIXES)
        .filter_map(move |text| Line::new(text, span))
}
