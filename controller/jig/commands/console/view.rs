//! Shows what a console prints.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use jig_model::ConsoleName;
use jig_model::command::{ConsoleLogEvent, ConsoleLogItem, ConsoleLogSource};
use jig_rig::console::{Escaper, escape};
use serde_json::json;

use crate::args::RawMode;
use crate::render::{LogPrinter, LogViews, Screen};

/// What is shown of one console.
pub(super) struct ConsoleView {
    screen: Screen,
    raw: Option<RawMode>,
    /// The log of a board that this session has booted.
    logs: LogViews,
    shown: Mutex<LastShown>,
}

/// What was shown last of a console whose log comes in events.
#[derive(Default)]
struct LastShown {
    escaper: Escaper,
    source: Option<ConsoleLogSource>,
}

impl ConsoleView {
    /// Shows nothing yet; raw output is not escaped.
    pub(super) fn new(screen: &Screen, raw: Option<RawMode>) -> Self {
        let (logs, shown) = (LogViews::default(), Mutex::default());
        Self { screen: screen.clone(), raw, logs, shown }
    }

    /// Shows a log file while it grows.
    pub(super) fn follow(&self, console: &ConsoleName, log: &Path) {
        let escaper = self.raw.is_none().then(Escaper::default);
        self.logs.show(console, log, BytePrinter { screen: self.screen.clone(), escaper });
    }

    /// Waits until the log files that have ended are shown.
    pub(super) fn finish(&self) {
        self.logs.finish();
    }

    /// Shows an entry of a log.
    pub(super) fn show(&self, event: ConsoleLogEvent) {
        let screen = &self.screen;
        if screen.json() {
            return screen.out_json(&json_line(&event));
        }
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let ConsoleLogEvent { source, item, .. } = event;
        // Between untouched bytes, remarks that nothing is missing are in the way.
        if self.raw.is_none() && shown.source.as_ref() != Some(&source) {
            let before = shown.source.replace(source.clone());
            match (before, &source) {
                (_, ConsoleLogSource::Run { run, attempt }) => {
                    screen.say(&format!("[from here in attempt {attempt} of run {run}]"));
                }
                (Some(ConsoleLogSource::Run { .. }), ConsoleLogSource::Captured { .. }) => {
                    screen.say("[from here captured]");
                }
                (_, ConsoleLogSource::Captured { .. }) => {}
            }
        }
        match item {
            ConsoleLogItem::Output { bytes } if self.raw.is_some() => screen.out_bytes(&bytes),
            ConsoleLogItem::Output { bytes } => {
                screen.out_bytes(shown.escaper.escape(&bytes).as_bytes());
            }
            ConsoleLogItem::Gap { lost, reason } => {
                let lost = lost.map_or_else(String::new, |lost| format!("{lost} "));
                let reason = escape(reason.as_bytes());
                self.note(&format!("[{lost}bytes may be missing here: {reason}]"));
            }
            ConsoleLogItem::Garbled { count } => {
                self.note(&format!("[{count} of the characters before may be wrong]"));
            }
        }
    }

    /// Says something about the output; a terminal in raw mode needs the carriage return.
    fn note(&self, words: &str) {
        let end = if self.raw == Some(RawMode::Terminal) { "\r" } else { "" };
        self.screen.say(&format!("{words}{end}"));
    }
}

fn json_line(event: &ConsoleLogEvent) -> serde_json::Value {
    let ConsoleLogEvent { at, source, offset, item } = event;
    let mut line = match item {
        ConsoleLogItem::Output { bytes } => json!({ "text": String::from_utf8_lossy(bytes) }),
        ConsoleLogItem::Gap { lost, reason } => json!({ "gap": reason, "lost": lost }),
        ConsoleLogItem::Garbled { count } => json!({ "garbled": count }),
    };
    line["at"] = json!(at);
    line["offset"] = json!(offset);
    match source {
        ConsoleLogSource::Captured { file } => line["file"] = json!(file),
        ConsoleLogSource::Run { run, attempt } => {
            line["run"] = json!(run);
            line["attempt"] = json!(attempt);
        }
    }
    line
}

/// Writes a log to standard output, escaped if there is an escaper.
struct BytePrinter {
    screen: Screen,
    escaper: Option<Escaper>,
}

impl LogPrinter for BytePrinter {
    fn print(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.escaper {
            None => self.screen.out_bytes(bytes),
            Some(escaper) => self.screen.out_bytes(escaper.escape(bytes).as_bytes()),
        }
        self.screen.written()
    }
}
