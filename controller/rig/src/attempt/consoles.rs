//! The captured consoles of a board, and the summary of their logs at the end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jig_model::profile::BoardProfile;
use jig_model::{Cause, ConsoleName, RunEvent};

use super::board::BoardConsole;
use crate::console::{
    Console, ConsoleClock, GapReason, LogError, LogPaths, LogReader, LogState, RecordKind, Syncing,
};
use crate::judge::{ByteRange, Gap, Incident, IncidentKind};
use crate::store::RunDir;

/// Most gaps, and most places with garbled characters, of one console that become events: a bad
/// transport has thousands, and the index of the console lists all of them.
const MOST_TOLD: usize = 32;

/// The captured consoles of the board.
pub(crate) struct CapturedConsoles {
    pub(crate) running: BTreeMap<ConsoleName, Console>,
    pub(crate) primary: ConsoleName,
}

/// Summary of the console logs.
#[derive(Default)]
pub(crate) struct Closed {
    pub(crate) lengths: BTreeMap<ConsoleName, u64>,
    pub(crate) gaps: Vec<Gap>,
    /// Where characters came with errors: the console, and the offset after them.
    pub(crate) garbled: Vec<(ConsoleName, ByteRange)>,
    /// The events for the run.
    pub(crate) events: Vec<RunEvent>,
    pub(crate) incidents: Vec<Incident>,
    pub(crate) syncing: Vec<Syncing>,
}

impl CapturedConsoles {
    /// Begins the logs of an attempt.
    pub(crate) fn start(
        profile: &BoardProfile,
        dir: &RunDir,
        attempt: u32,
        clock: &Arc<dyn ConsoleClock>,
    ) -> Result<Self, LogError> {
        let mut running = BTreeMap::new();
        for spec in &profile.consoles {
            let paths = log_paths(dir, attempt, &spec.name);
            if let Some(folder) = paths.raw.parent() {
                std::fs::create_dir_all(folder)
                    .map_err(|source| LogError::Create { path: folder.to_owned(), source })?;
            }
            let console = Console::start(&paths, Arc::clone(clock))?;
            running.insert(spec.name.clone(), console);
        }
        Ok(Self { running, primary: profile.primary_console().clone() })
    }

    /// Returns the consoles as the board shows them to its watchers.
    pub(crate) fn lines(&self, dir: &RunDir, attempt: u32) -> BTreeMap<ConsoleName, BoardConsole> {
        let lines = self.running.iter().map(|(name, console)| {
            let file = dir.relative(&dir.console_path(attempt, name)).unwrap_or_default();
            (name.clone(), BoardConsole { handle: console.handle().clone(), file })
        });
        lines.collect()
    }

    /// Ends the logs and returns their summary.
    pub(crate) async fn close(self, dir: &RunDir, attempt: u32) -> Closed {
        let mut closed = Closed::default();
        for (name, console) in self.running {
            let (state, syncing) = console.end().await;
            closed.syncing.push(syncing);
            closed.lengths.insert(name.clone(), state.len);
            let file = dir.relative(&dir.console_path(attempt, &name)).unwrap_or_default();
            closed.take(&name, state, file, &log_paths(dir, attempt, &name));
        }
        closed
    }
}

impl Closed {
    /// Returns the first place behind an offset of a console where characters came with errors.
    pub(crate) fn garbled_on(&self, console: &ConsoleName, behind: u64) -> Option<ByteRange> {
        let ranges = self.garbled.iter().filter(|(name, _)| name == console);
        ranges.map(|(_, range)| range).find(|range| range.start > behind).cloned()
    }

    fn take(&mut self, name: &ConsoleName, state: LogState, file: String, paths: &LogPaths) {
        if let Some(error) = &state.error {
            let text = format!("the console's log could not be written: {error}");
            let range = ByteRange { file: file.clone(), start: state.len, end: state.len, text };
            let kind = IncidentKind::Lost(Cause::StorageFailed);
            self.incidents.push(Incident { kind, range });
        }
        if let Some(why) = &state.away {
            let text = format!("the console's transport did not come back: {why}");
            let range = ByteRange { file: file.clone(), start: state.len, end: state.len, text };
            let kind = IncidentKind::Lost(Cause::ConsoleLost);
            self.incidents.push(Incident { kind, range });
        }
        if state.gaps == 0 && state.garbled == 0 {
            return;
        }
        let Ok(reader) = LogReader::open(paths) else { return };
        let (mut gaps, mut garbled) = (Vec::new(), Vec::new());
        // The time since which the transport's other end has been away.
        let mut away = None;
        for record in reader.records() {
            match record.kind {
                RecordKind::Gap { lost, reason } => {
                    let text = match (reason, &state.shared) {
                        (GapReason::Shared, Some(with)) => format!("shared with {with}"),
                        _ => reason.as_str().to_owned(),
                    };
                    let (start, end) = (record.offset, record.offset);
                    away = (reason == GapReason::Transport).then_some(record.stamp.mono_ns);
                    let range = ByteRange { file: file.clone(), start, end, text };
                    gaps.push(Gap { range, lost });
                }
                RecordKind::Attached => {
                    if let (Some(since), Some(gap)) = (away.take(), gaps.last_mut()) {
                        let time = Duration::from_nanos(record.stamp.mono_ns.saturating_sub(since));
                        gap.range.text = format!("transport, away for {:.3} s", time.as_secs_f64());
                    }
                }
                RecordKind::Garbled(count) => {
                    let (start, end) = (record.offset, record.offset);
                    let text = format!("{count} characters with a wrong stop or parity bit");
                    let range = ByteRange { file: file.clone(), start, end, text };
                    self.garbled.push((name.clone(), range));
                    let (console, at) = (name.clone(), record.offset);
                    garbled.push(RunEvent::Garbled { console, at, count });
                }
                RecordKind::Bytes(_)
                | RecordKind::Boot
                | RecordKind::Detached
                | RecordKind::Sent(_) => {}
            }
        }
        let gap = |gap: &Gap| RunEvent::Gap {
            console: name.clone(),
            at: gap.range.start,
            lost: gap.lost,
            reason: gap.range.text.clone(),
        };
        self.events.extend(gaps.iter().take(MOST_TOLD).map(gap));
        self.events.extend(garbled.into_iter().take(MOST_TOLD));
        self.gaps.extend(gaps);
    }
}

fn log_paths(dir: &RunDir, attempt: u32, console: &ConsoleName) -> LogPaths {
    let raw = dir.console_path(attempt, console);
    LogPaths { index: raw.with_extension("idx"), raw }
}
