//! The watcher of one console: reads its log during an attempt and reports what it finds.

use std::sync::Arc;
use std::time::Duration;

use jig_model::plan::Markers;
use jig_model::result::{ResultFormat, TestReport};
use jig_model::{Cause, ConsoleName, RunEvent};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::board::{AttemptBoard, WatcherProgress};
use super::compiled_patterns::CompiledPatterns;
use super::error::AttemptError;
use super::facts::Observed;
use super::garbage::GarbageScanner;
use super::identity::{IdentityScanner, MAX_LINE, id_in};
use super::transport_watch::TransportWatch;
use crate::console::{Follow, Follower, LogState, Recogniser, Recognition};
use crate::judge::{ByteRange, Incident, IncidentKind, PrintedId};
use crate::results::{ReadLines, ResultEvent, ResultParser};

/// Bytes read at once. One console chunk is at most as long.
const STRIDE: usize = 64 << 10;

/// How often silence is checked: a tenth of the shortest limit a profile may set.
const TICK: Duration = Duration::from_millis(100);

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
    /// Earlier boots in which the plan got its report: the number, the output, and the report.
    pub(super) earlier: Vec<(usize, (u64, u64), TestReport)>,
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
            recogniser: compiled.recogniser.clone(),
            results,
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
                }
            }
        }
        self.finish()
    }

    /// Begins the boots that start at or before an offset.
    fn begin_boots(&mut self, offset: u64) -> Result<(), AttemptError> {
        while let Some(start) = self.next_boot().filter(|&start| start <= offset) {
            let heard = self.board.facts().heard.contains(&self.begun);
            let output = (self.follower.floor(), start);
            self.begun += 1;
            self.recogniser.expect_boot(start, self.began.elapsed());
            self.follower.begin_boot(start);
            self.garbage = GarbageScanner::new(start);
            self.identity.restart();
            self.printed = None;
            if let Some(results) = &mut self.results {
                let parser = results.reading.parser(start)?;
                let parser = std::mem::replace(&mut results.parser, parser);
                let (report, read) = parser.finish_with_lines();
                results.read.append(read);
                if heard {
                    results.earlier.push((self.begun - 1, output, report));
                }
                results.reports = 0;
                results.reporting = false;
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
        let mut fed = 0;
        for recognition in &recognitions {
            // Lines before the fault may be results; the line that it cuts is none.
            let until = (recognition.start.max(offset) - offset) as usize;
            self.feed_results(&bytes[fed..until.max(fed)]);
            fed = until.max(fed);
            if let Some(results) = &mut self.results {
                results.parser.interrupt();
            }
        }
        self.feed_results(&bytes[fed..]);
        for recognition in recognitions {
            self.report(recognition);
        }
        self.find_identity(offset, bytes)
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

    fn report(&self, recognition: Recognition) {
        let Recognition { cause, by, start, end, text } = recognition;
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
        self.board.alert(Observed::Shown { boot: self.begun, incident });
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
            garbled: self.garbage.goes_on(),
        };
        self.progress.send_if_modified(|now| std::mem::replace(now, next) != next);
    }

    fn finish(mut self) -> Result<WatcherResult, AttemptError> {
        for recognition in self.recogniser.finish() {
            if let Some(results) = &mut self.results {
                results.parser.interrupt();
            }
            self.report(recognition);
        }
        let output = (self.follower.floor(), self.follower.cursor());
        let text = "bytes that no text holds".to_owned();
        let garbage = self.garbage.found();
        let garbage = garbage.map(|(start, end)| ByteRange { file: self.file(), start, end, text });
        let garbage_goes_on = self.garbage.goes_on();
        let silent = self.recogniser.silent_for(self.began.elapsed());
        Ok(match self.results {
            None => WatcherResult {
                output,
                garbage,
                printed: self.printed,
                silent,
                ..WatcherResult::default()
            },
            Some(results) => {
                let Results { parser, earlier, mut read, .. } = results;
                let report_end = parser.ended_at();
                let (report, last) = parser.finish_with_lines();
                read.append(last);
                WatcherResult {
                    output,
                    report_end,
                    report,
                    read: Some(read),
                    earlier,
                    garbage,
                    garbage_goes_on,
                    printed: self.printed,
                    silent,
                }
            }
        })
    }
}
