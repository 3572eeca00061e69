//! The watcher of one console: reads its log during an attempt and reports what it finds.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use jig_model::plan::Markers;
use jig_model::result::{ResultFormat, TestReport};
use jig_model::{Cause, ConsoleName, RunEvent};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::board::{AttemptBoard, WatcherProgress};
use super::board_timeout::BoardTimeout;
use super::compiled_patterns::CompiledPatterns;
use super::error::AttemptError;
use super::facts::Observed;
use super::garbage::GarbageScanner;
use super::identity::{IdentityScanner, MAX_LINE, id_in};
use super::transport_watch::TransportWatch;
use crate::console::{
    CrashDump, ExcusedCrash, Follow, Follower, LogState, Recogniser, Recognition,
};
use crate::judge::{ByteRange, Incident, IncidentKind, PrintedId};
use crate::results::{ReadLines, ResultEvent, ResultParser};

/// Bytes read at once. One console chunk is at most as long.
const STRIDE: usize = 64 << 10;

/// How often silence is checked: a tenth of the shortest limit a profile may set.
const TICK: Duration = Duration::from_millis(100);

/// How long a console may be silent behind the headline of a crash before the crash counts: the line
/// that excuses one is printed at once.
const EXCUSE: Duration = Duration::from_secs(1);

/// Most crashes that are excused in one boot: ten times those of the largest test known.
const MAX_EXCUSED: usize = 1000;

/// Result of a watcher.
#[derive(Debug, Default)]
pub(super) struct WatcherResult {
    /// Where the last boot's output begins, and where the log ends.
    pub(super) output: (u64, u64),
    /// What was reported in the last boot.
    pub(super) report: TestReport,
    /// The lines of reports, of all boots; `None` where reports on this console do not count.
    pub(super) read: Option<ReadLines>,
    /// Where the end marker of that report ends, if output may follow it.
    pub(super) report_end: Option<u64>,
    /// Earlier boots in which the plan got its report, or whose report fails: the number, the output,
    /// and the report.
    pub(super) earlier: Vec<(usize, (u64, u64), TestReport)>,
    /// Crashes that the firmware expected, with the lines that say so.
    pub(super) excused: Vec<Range<u64>>,
    /// The first garbage of the last boot.
    pub(super) garbage: Option<ByteRange>,
    /// Whether garbage came last, without text after it.
    pub(super) garbage_goes_on: bool,
    /// The build id that the last boot printed.
    pub(super) printed: Option<PrintedId>,
    /// For how long the last boot has been silent.
    pub(super) silent: Duration,
}

/// How results are read on a console.
#[derive(Clone, Default)]
pub(super) struct ResultsReader {
    pub(super) only: Option<ResultFormat>,
    pub(super) markers: Option<Markers>,
    /// Whether the plan waits for them there; else they are only guarded against failures.
    pub(super) awaited: bool,
    /// Whether nothing passes without a complete report.
    pub(super) decides: bool,
}

impl ResultsReader {
    fn parser(&self, offset: u64) -> Result<ResultParser, AttemptError> {
        ResultParser::new(self.only, self.markers.as_ref(), offset).map_err(AttemptError::Markers)
    }
}

pub(super) struct ConsoleWatcher {
    console: ConsoleName,
    board: Arc<AttemptBoard>,
    follower: Follower,
    recogniser: Recogniser,
    results: Option<Results>,
    /// Output of this boot that the results are not read of yet: it may show a crash.
    unread: Vec<u8>,
    /// When a crash counts that may be excused.
    excusable_until: Option<BoardTimeout>,
    /// Crashes of this boot that end a case which is to crash, while it is not over.
    awaited: Vec<Recognition>,
    /// Crashes of this boot whose excuse was printed, or that a case awaited.
    excused: Vec<ExcusedCrash>,
    /// The dump of the last crash of this boot.
    dump: Option<CrashDump>,
    /// Where crashes were excused in all boots, and the text of the first.
    accepted: (Vec<Range<u64>>, Option<String>),
    garbage: GarbageScanner,
    identity: IdentityScanner,
    printed: Option<PrintedId>,
    transport: TransportWatch,
    /// Boots of the board's list that were begun here.
    begun: usize,
    began: Instant,
    /// Where the console stood at the last tick, and whether it stands there still.
    quiet: (u64, bool),
    progress: watch::Sender<WatcherProgress>,
}

struct Results {
    reading: ResultsReader,
    parser: ResultParser,
    reports: u32,
    reporting: bool,
    earlier: Vec<(usize, (u64, u64), TestReport)>,
    /// The lines of the reports of earlier boots.
    read: ReadLines,
}

impl ConsoleWatcher {
    pub(super) fn new(
        console: &ConsoleName,
        board: &Arc<AttemptBoard>,
        compiled: &CompiledPatterns,
        reading: Option<ResultsReader>,
        progress: watch::Sender<WatcherProgress>,
    ) -> Result<Self, AttemptError> {
        let line =
            board.lines.get(console).ok_or_else(|| AttemptError::NoConsole(console.clone()))?;
        let follower = line.handle.follow(0, 0).map_err(AttemptError::Follow)?;
        let results = match reading {
            None => None,
            Some(reading) => Some(Results {
                parser: reading.parser(0)?,
                reports: 0,
                reporting: false,
                earlier: Vec::new(),
                read: ReadLines::default(),
                reading,
            }),
        };
        Ok(Self {
            console: console.clone(),
            board: Arc::clone(board),
            follower,
            recogniser: match &compiled.of_commands {
                (names, of_commands) if names.contains(console) => of_commands.clone(),
                _ => compiled.recogniser.clone(),
            },
            results,
            unread: Vec::new(),
            excusable_until: None,
            awaited: Vec::new(),
            excused: Vec::new(),
            dump: None,
            accepted: (Vec::new(), None),
            garbage: GarbageScanner::new(0),
            identity: compiled.identity.clone(),
            printed: None,
            transport: TransportWatch::default(),
            begun: 0,
            began: Instant::now(),
            quiet: (0, false),
            progress,
        })
    }

    /// Watches until told to stop, then reads the rest.
    pub(super) async fn run(
        mut self,
        mut stop: oneshot::Receiver<()>,
    ) -> Result<WatcherResult, AttemptError> {
        let mut changes = self.board.changes();
        let mut state = self.board.lines[&self.console].handle.state();
        let mut tick = tokio::time::interval(TICK);
        let mut buf = vec![0; STRIDE];
        let mut stopping = false;
        loop {
            changes.borrow_and_update();
            self.begin_boots(self.follower.cursor())?;
            let more = state.borrow_and_update().len > self.follower.cursor();
            if more {
                self.quiet.1 = false;
                let Follow::Bytes { offset, len } =
                    self.follower.next(&mut buf).await.map_err(AttemptError::Follow)?
                else {
                    continue;
                };
                self.look(offset, &buf[..len])?;
                // The log of a flooding target always has more bytes, so yield to other tasks.
                tokio::task::yield_now().await;
                continue;
            }
            self.publish();
            self.mind_transport(&state.borrow());
            if stopping {
                break;
            }
            tokio::select! {
                // Sent or dropped: both mean stop.
                _ = &mut stop => stopping = true,
                changed = state.changed() => stopping = changed.is_err(),
                _ = changes.changed() => {}
                _ = tick.tick() => {
                    let at = self.follower.cursor();
                    self.quiet = (at, self.quiet.0 == at);
                    self.listen_for_silence();
                    if self.excusable_until.is_some_and(|until| until.is_over(&self.board)) {
                        self.give_up();
                    }
                }
            }
        }
        self.finish()
    }

    /// Begins the boots that start at or before an offset.
    fn begin_boots(&mut self, offset: u64) -> Result<(), AttemptError> {
        while let Some(start) = self.next_boot().filter(|&start| start <= offset) {
            if start < self.recogniser.position() {
                self.read_again_up_to(start)?;
                self.give_up_awaited();
            } else {
                self.give_up();
                self.recogniser.cut_line().into_iter().for_each(|found| self.report(found));
            }
            self.reject_excuses();
            let ended = self.results.as_ref().and_then(|results| results.parser.ended_at());
            self.accept_excuses(ended);
            let heard = self.board.facts().heard.contains(&self.begun);
            let output = (self.follower.floor(), start);
            self.begun += 1;
            self.recogniser.expect_boot(start, self.began.elapsed());
            self.follower.begin_boot(start);
            self.dump = None;
            self.garbage = GarbageScanner::new(start);
            self.identity.restart();
            self.printed = None;
            if let Some(results) = &mut self.results {
                let parser = results.reading.parser(start)?;
                let parser = std::mem::replace(&mut results.parser, parser);
                let (report, read) = parser.finish_with_lines();
                results.read.append(read);
                if heard || (self.begun > 1 && report.fails()) {
                    results.earlier.push((self.begun - 1, output, report));
                }
                results.reports = 0;
                results.reporting = false;
            }
        }
        Ok(())
    }

    /// Reads the boot again up to where it turns out to have ended: behind that, the target has begun
    /// another one, whose output is read from there.
    fn read_again_up_to(&mut self, end: u64) -> Result<(), AttemptError> {
        if self.recogniser.undecided_from().is_some_and(|from| from < end) {
            self.give_up();
        }
        self.excusable_until = None;
        self.unread.clear();
        self.excused.retain(|crash| crash.end <= end);
        self.awaited.retain(|crash| crash.end <= end);
        let start = self.follower.floor();
        let Some(results) = &mut self.results else { return Ok(()) };
        results.parser = results.reading.parser(start)?;
        let file = &self.board.lines[&self.console].file;
        let crashes: Vec<u64> = {
            let facts = self.board.facts();
            let crashes = facts.incidents.iter().filter(|incident| {
                let recognised = matches!(incident.kind, IncidentKind::Recognised(_));
                recognised && incident.range.file == *file
            });
            crashes.map(|incident| incident.range.start).collect()
        };
        let mut buf = vec![0; STRIDE];
        let mut at = start;
        while at < end {
            let crash = crashes.iter().copied().filter(|&crash| crash > at).min();
            let until = crash.unwrap_or(end).min(end);
            let room = buf.len().min((until - at) as usize);
            let len = self.follower.read_at(at, &mut buf[..room]).map_err(AttemptError::Follow)?;
            if len == 0 {
                break;
            }
            results.parser.feed(&buf[..len], &mut |_| {});
            at += len as u64;
            if crashes.contains(&at) {
                results.parser.interrupt();
            }
        }
        Ok(())
    }

    fn next_boot(&self) -> Option<u64> {
        let facts = self.board.facts();
        facts.boots.get(self.begun)?.get(&self.console).copied()
    }

    /// Reads bytes of the log, boot by boot.
    fn look(&mut self, offset: u64, bytes: &[u8]) -> Result<(), AttemptError> {
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            self.begin_boots(at)?;
            if self.follower.cursor() < at {
                // The boot that was begun is read from where it begins.
                return Ok(());
            }
            let room = self.next_boot().map_or(usize::MAX, |start| (start - at) as usize);
            let (piece, behind) = rest.split_at(rest.len().min(room));
            self.look_within_boot(at, piece)?;
            at += piece.len() as u64;
            rest = behind;
        }
        // `begin_boot` moves the cursor back when a boundary lies within the chunk.
        self.follower.seek(at);
        Ok(())
    }

    fn look_within_boot(&mut self, offset: u64, bytes: &[u8]) -> Result<(), AttemptError> {
        let recognitions = self.recogniser.feed(bytes, self.began.elapsed());
        self.garbage.feed(offset, bytes);
        let recognitions = self.read_results(recognitions, bytes);
        let undecided = self.recogniser.undecided_from().is_some() || !self.awaited.is_empty();
        self.excusable_until = undecided.then(|| BoardTimeout::new(&self.board, EXCUSE));
        self.keep_excused();
        for recognition in recognitions {
            self.report(recognition);
        }
        self.find_identity(offset, bytes)
    }

    /// Reads results of the output up to what may be a crash, cut where something was recognised.
    /// Returns what counts of that: not a crash that the case which runs is to end by.
    fn read_results(&mut self, recognitions: Vec<Recognition>, bytes: &[u8]) -> Vec<Recognition> {
        let from = self.recogniser.position() - (self.unread.len() + bytes.len()) as u64;
        let mut unread = std::mem::take(&mut self.unread);
        let bytes = if unread.is_empty() {
            Cow::Borrowed(bytes)
        } else {
            unread.extend_from_slice(bytes);
            Cow::Owned(unread)
        };
        let index = |at: u64| (at.saturating_sub(from) as usize).min(bytes.len());
        let mut fed = 0;
        let mut counted = Vec::new();
        for recognition in recognitions {
            // Lines before the fault may be results; the line that it cuts is none.
            let until = index(recognition.start).max(fed);
            self.feed_results(&bytes[fed..until]);
            fed = until;
            self.end_awaited();
            if let Some(results) = &mut self.results {
                if results.parser.awaits_crash(&recognition.text) {
                    self.awaited.push(recognition);
                    continue;
                }
                results.parser.interrupt();
            }
            counted.push(recognition);
        }
        let until = self.recogniser.undecided_from().map_or(bytes.len(), index).max(fed);
        self.feed_results(&bytes[fed..until]);
        self.unread = bytes[until..].to_vec();
        self.end_awaited();
        counted
    }

    /// A case that was to crash does not end: its crashes count.
    fn give_up_awaited(&mut self) {
        self.end_awaited();
        for crash in std::mem::take(&mut self.awaited) {
            if let Some(results) = &mut self.results {
                results.parser.interrupt();
            }
            self.report(crash);
        }
    }

    /// Excuses the crashes of a case that is over: its result is in the report.
    fn end_awaited(&mut self) {
        let Some(results) = &self.results else { return };
        let over = |crash: &mut Recognition| !results.parser.awaits_crash(&crash.text);
        for crash in self.awaited.extract_if(.., over) {
            self.excused.push(ExcusedCrash { end: crash.end, headlines: vec![crash] });
        }
    }

    /// No excuse comes: a crash that may have been excused counts.
    fn give_up(&mut self) {
        self.excusable_until = None;
        self.give_up_awaited();
        if self.recogniser.undecided_from().is_none() {
            return;
        }
        let recognitions = self.recogniser.give_up();
        for recognition in self.read_results(recognitions, &[]) {
            self.report(recognition);
        }
    }

    /// Keeps the crashes whose excuse was printed until it is known whether a report follows.
    fn keep_excused(&mut self) {
        for crash in self.recogniser.take_excused() {
            if self.excused.len() < MAX_EXCUSED {
                self.excused.push(crash);
            } else {
                crash.headlines.into_iter().for_each(|headline| self.report(headline));
            }
        }
    }

    /// Rejects excuses that a result separates from their crash: they stand in another case.
    fn reject_excuses(&mut self) {
        let Some(results) = &self.results else { return };
        let separated = |crash: &mut ExcusedCrash| {
            let first = crash.headlines.first();
            first.is_some_and(|first| results.parser.has_result_in(&(first.start..crash.end)))
        };
        let rejected: Vec<_> = self.excused.extract_if(.., separated).collect();
        for headline in rejected.into_iter().flat_map(|crash| crash.headlines) {
            self.report(headline);
        }
    }

    /// Accepts the excuses in front of the end of a report, which decides then. The other crashes
    /// of this boot count.
    fn accept_excuses(&mut self, report_end: Option<u64>) {
        for crash in std::mem::take(&mut self.excused) {
            let Some(first) = crash.headlines.first() else { continue };
            if report_end.is_some_and(|end| crash.end <= end) {
                self.accepted.0.push(first.start..crash.end);
                self.accepted.1.get_or_insert_with(|| first.text.clone());
                continue;
            }
            for headline in crash.headlines {
                self.report(headline);
            }
        }
    }

    /// Tells of the crashes that the firmware expected.
    fn remark_on_excused(&self) {
        let (ranges, Some(first)) = &self.accepted else { return };
        let text = match ranges.len() {
            1 => format!("the firmware expected a crash: {first}"),
            count => format!("the firmware expected {count} crashes, first: {first}"),
        };
        self.board.emit(RunEvent::Note { text });
    }

    fn feed_results(&mut self, bytes: &[u8]) {
        let Some(results) = &mut self.results else { return };
        if !results.reading.awaited {
            return results.parser.feed(bytes, &mut |_| {});
        }
        let (board, reporting) = (&self.board, &mut results.reporting);
        let reports = &mut results.reports;
        results.parser.feed(bytes, &mut |event| match event {
            ResultEvent::Format(format) => {
                *reporting = true;
                board.emit(RunEvent::FormatFound { format });
            }
            ResultEvent::Case(case) => {
                board.emit(RunEvent::Case { name: case.name, status: case.status });
            }
            ResultEvent::Remark(text) => board.emit(RunEvent::Note { text }),
            ResultEvent::Ended => *reports = reports.saturating_add(1),
            ResultEvent::Started { .. } | ResultEvent::Planned(_) => {}
        });
    }

    fn find_identity(&mut self, offset: u64, bytes: &[u8]) -> Result<(), AttemptError> {
        if self.printed.is_some() {
            return Ok(());
        }
        let Some(used) = self.identity.feed(bytes) else { return Ok(()) };
        let end = offset + used as u64;
        let start = end.saturating_sub(MAX_LINE).max(self.follower.floor());
        let mut range = vec![0; (end - start) as usize];
        let len = self.follower.read_at(start, &mut range).map_err(AttemptError::Follow)?;
        if let Some(hex) = id_in(&range[..len]) {
            let (file, text) = (self.file(), format!("build id {hex}"));
            self.printed = Some(PrintedId { hex, range: ByteRange { file, start, end, text } });
        }
        Ok(())
    }

    fn file(&self) -> String {
        self.board.lines[&self.console].file.clone()
    }

    /// Returns where the dump begins that a crash belongs to.
    fn dump_of(&mut self, by: &str, headline: Range<u64>) -> u64 {
        if let Some(dump) = &mut self.dump
            && let Some(between) = dump.between(by, headline.start)
        {
            let mut bytes = vec![0; (between.end - between.start) as usize];
            // A log that cannot be read is found by the next read of its bytes.
            let read = self.follower.read_at(between.start, &mut bytes);
            if read.is_ok_and(|len| len == bytes.len())
                && dump.goes_on(by, headline.clone(), &bytes)
            {
                return dump.start();
            }
        }
        self.dump.insert(CrashDump::new(by, headline)).start()
    }

    fn report(&mut self, recognition: Recognition) {
        let Recognition { cause, by, start, end, text } = recognition;
        let dump = self.dump_of(&by, start..end);
        tracing::info!(%cause, by, console = %self.console, "recognised");
        self.board.emit(RunEvent::Recognised {
            cause,
            console: self.console.clone(),
            start,
            end,
            text: text.clone(),
        });
        let range = ByteRange { file: self.file(), start, end, text };
        let incident = Incident { kind: IncidentKind::Recognised(cause), range };
        self.board.alert(Observed::Shown { boot: self.begun, incident, dump: Some(dump) });
    }

    fn awaited(&self) -> bool {
        self.results.as_ref().is_some_and(|results| results.reading.awaited)
    }

    /// Reports silence. It fails nothing by itself, only a wait that runs out does.
    fn listen_for_silence(&mut self) {
        // Only on a console that the plan waits on: others may be silent for good.
        if !self.awaited() {
            return;
        }
        if let Some(silence) = self.recogniser.check_silence(self.began.elapsed()) {
            let Recognition { start, end, text, .. } = silence;
            let cause = Cause::NoOutput;
            let console = self.console.clone();
            self.board.emit(RunEvent::Recognised { cause, console, start, end, text });
        }
    }

    /// Reports at once a log or transport that failed: it ends every wait.
    fn mind_transport(&mut self, state: &LogState) {
        let powered = {
            let facts = self.board.facts();
            facts.on() && !facts.switching
        };
        for text in self.transport.away(state) {
            self.board.emit(RunEvent::Note { text: format!("console {}: {text}", self.console) });
        }
        if let Some((cause, text)) = self.transport.look(state, powered, Instant::now()) {
            let range = ByteRange { file: self.file(), start: state.len, end: state.len, text };
            self.board.incident(IncidentKind::Lost(cause), range);
        }
    }

    fn publish(&self) {
        // A last line without a line end counts once nothing follows it.
        let unfinished = self.quiet.1
            && self.results.as_ref().is_some_and(|results| results.parser.ends_unfinished());
        let next = WatcherProgress {
            processed: self.follower.cursor(),
            boots: self.begun,
            ended: unfinished || self.results.as_ref().is_some_and(|r| r.parser.ended()),
            reports: self.results.as_ref().map_or(0, |r| r.reports) + u32::from(unfinished),
            reporting: self.results.as_ref().is_some_and(|r| r.reporting),
            ended_at: self.results.as_ref().and_then(|results| results.parser.ended_at()),
            garbled: self.garbage.goes_on(),
            undecided: self.excusable_until.is_some(),
        };
        self.progress.send_if_modified(|now| std::mem::replace(now, next) != next);
    }

    fn finish(mut self) -> Result<WatcherResult, AttemptError> {
        self.give_up();
        for recognition in self.recogniser.finish() {
            if let Some(results) = &mut self.results {
                results.parser.interrupt();
            }
            self.report(recognition);
        }
        self.keep_excused();
        let output = (self.follower.floor(), self.follower.cursor());
        let text = "bytes that no text holds".to_owned();
        let garbage = self.garbage.found();
        let garbage = garbage.map(|(start, end)| ByteRange { file: self.file(), start, end, text });
        let mut result = WatcherResult {
            output,
            garbage,
            garbage_goes_on: self.garbage.goes_on(),
            printed: self.printed.take(),
            silent: self.recogniser.silent_for(self.began.elapsed()),
            ..WatcherResult::default()
        };
        self.reject_excuses();
        let decides = self.results.as_ref().is_some_and(|results| results.reading.decides);
        if let Some(results) = self.results.take() {
            let Results { parser, earlier, mut read, .. } = results;
            result.report_end = parser.ended_at();
            let (report, last) = parser.finish_with_lines();
            read.append(last);
            (result.report, result.read, result.earlier) = (report, Some(read), earlier);
        }
        let ended = result.report.ended;
        if decides && !ended {
            // Nothing passes, and what kept it from its end is the failure.
            self.excused.clear();
        }
        // Its last line may have no line end.
        self.accept_excuses(ended.then(|| result.report_end.unwrap_or(output.1)));
        self.remark_on_excused();
        result.excused = std::mem::take(&mut self.accepted.0);
        Ok(result)
    }
}
