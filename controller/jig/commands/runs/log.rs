//! `jig runs log`: events and console output on one time line.

use std::fs;
use std::iter::Peekable;
use std::path::PathBuf;

use jig_lab::RunStanding;
use jig_model::{ConsoleName, StampedEvent, exit};
use jig_rig::console::{IndexHealth, LogPaths, LogReader};
use jig_rig::store::{EventItem, RunEntry};
use serde_json::{Value, json};

use super::source::OpenedRun;
use super::timeline::{ConsoleLine, ConsoleLines};
use super::words;
use crate::failure::{Failure, chain};
use crate::render::{Paint, Screen, Style, one_line};

/// Width of the column with the source of a line; longer names push their line to the right.
const SOURCE: usize = 8;

/// A console's log of one attempt.
struct Log {
    attempt: u32,
    console: ConsoleName,
    reader: LogReader,
}

/// Shows everything that happened in a run.
///
/// JSON lines: events are `{"mono_ns","source":"event","event":EVENT}`, console lines
/// `{"mono_ns","source":"console","console","attempt","offset","text"}` (or `"sent"`), the
/// end `{"source":"verdict","state","verdict"}`. What cannot be read is told on standard
/// error and does not keep the rest from being shown.
pub(super) fn log(screen: &Screen, run: &OpenedRun) -> Result<u8, Failure> {
    let form = if screen.json() { Form::Json } else { Form::Text(screen.out_paint()) };
    let warn = |text: &str| screen.insist(&format!("warning: {}", one_line(text)));
    merge(&run.entry, form, &warn, &mut |line| {
        screen.out(line);
        !screen.closed()
    })?;
    Ok(exit::PASS)
}

/// How the time line is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    Text(Paint),
    Json,
}

/// Writes the time line, line by line, until `show` has enough.
pub(crate) fn merge(
    entry: &RunEntry,
    form: Form,
    warn: &dyn Fn(&str),
    show: &mut dyn FnMut(&str) -> bool,
) -> Result<(), Failure> {
    let (logs, troubles) = logs(entry);
    troubles.iter().for_each(|trouble| warn(trouble));
    let mut consoles: Vec<_> =
        logs.iter().map(|log| (log, ConsoleLines::new(&log.reader).peekable())).collect();
    let mut events = events(warn, entry)?.peekable();
    let writer = TextLogWriter { form, several: logs.iter().any(|log| log.attempt > 1) };
    loop {
        let event = events.peek().map(|event| event.mono_ns);
        // Of what has the same time, the event comes first: it is the cause. Lines without
        // a time come last.
        let line = next_line(&mut consoles);
        let line = line.filter(|(_, at)| event.is_none_or(|event| at.unwrap_or(u64::MAX) < event));
        let text = match line.and_then(|(n, _)| consoles.get_mut(n)) {
            Some((log, lines)) => lines.next().map(|line| writer.console(log, line)),
            None => events.next().map(|event| writer.event(&event)),
        };
        match text {
            Some(text) if show(&text) => {}
            Some(_) => return Ok(()),
            None => break,
        }
    }
    show(&writer.end(entry));
    Ok(())
}

type OpenLogs<'l> = Vec<(&'l Log, Peekable<ConsoleLines<'l>>)>;

/// Returns which console has the oldest line, and when that came.
fn next_line(consoles: &mut OpenLogs<'_>) -> Option<(usize, Option<u64>)> {
    let heads = consoles.iter_mut().enumerate();
    let heads = heads.filter_map(|(n, (_, lines))| Some((n, lines.peek()?.at_ns)));
    heads.min_by_key(|(_, at)| at.unwrap_or(u64::MAX))
}

/// Opens the console logs of a run, whatever its record says.
fn logs(entry: &RunEntry) -> (Vec<Log>, Vec<String>) {
    let (mut logs, mut troubles) = (Vec::new(), Vec::new());
    for (attempt, folder) in attempts(&entry.dir.path().join("consoles")) {
        for console in consoles(&folder) {
            match LogReader::open(&LogPaths::new(&folder, &console)) {
                Ok(reader) => {
                    let health = match reader.health() {
                        IndexHealth::Whole => None,
                        IndexHealth::Torn => Some("its index is torn; its end may be missing"),
                        IndexHealth::Missing => Some("it has no index, so its lines have no time"),
                    };
                    troubles.extend(health.map(|h| format!("{console} of attempt {attempt}: {h}")));
                    logs.push(Log { attempt, console, reader });
                }
                Err(error) => troubles.push(chain(&error)),
            }
        }
    }
    (logs, troubles)
}

fn attempts(folder: &PathBuf) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let numbered = entries
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path())));
    let mut attempts: Vec<_> = numbered.collect();
    attempts.sort();
    attempts
}

fn consoles(folder: &PathBuf) -> Vec<ConsoleName> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        name.strip_suffix(".raw")?.parse::<ConsoleName>().ok()
    });
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// Reads the events; damage is told and skipped.
fn events<'w>(
    warn: &'w dyn Fn(&str),
    entry: &RunEntry,
) -> Result<impl Iterator<Item = StampedEvent> + 'w, Failure> {
    let reader = match entry.dir.events() {
        Ok(reader) => Some(reader),
        // A run without its events still has its consoles.
        Err(error) if entry.dir.path().is_dir() => {
            warn(&chain(&error));
            None
        }
        Err(error) => return Err(error.into()),
    };
    Ok(reader.into_iter().flatten().filter_map(move |item| {
        let trouble = match item {
            Ok(EventItem::Event(event)) => return Some(*event),
            Ok(EventItem::Torn { at, bytes }) => {
                format!("its last line is unfinished ({bytes} bytes at {at})")
            }
            Ok(EventItem::Damaged { at, reason }) => format!("damaged at byte {at}: {reason}"),
            Err(error) => chain(&error),
        };
        warn(&format!("events.jsonl: {trouble}"));
        None
    }))
}

struct TextLogWriter {
    form: Form,
    /// Whether a console's name alone does not tell the attempt.
    several: bool,
}

impl TextLogWriter {
    fn console(&self, log: &Log, line: ConsoleLine) -> String {
        let ConsoleLine { at_ns, offset, text, sent } = line;
        let paint = match self.form {
            Form::Text(paint) => paint,
            Form::Json => {
                let mut value = json!({
                    "mono_ns": at_ns,
                    "source": "console",
                    "console": log.console,
                    "attempt": log.attempt,
                    "offset": offset,
                });
                value[if sent { "sent" } else { "text" }] = Value::String(text);
                return value.to_string();
            }
        };
        let arrow = if sent { '<' } else { '>' };
        let source = match self.several {
            true => format!("{}#{}{arrow}", log.console, log.attempt),
            false => format!("{}{arrow}", log.console),
        };
        text_line(paint, at_ns, &source, &text, sent.then_some(Style::Dim))
    }

    fn event(&self, event: &StampedEvent) -> String {
        let at = event.mono_ns;
        match self.form {
            Form::Json => json!({ "mono_ns": at, "source": "event", "event": event }).to_string(),
            Form::Text(paint) => {
                let words = words::words(&event.event);
                text_line(paint, Some(at), words.source, &words.text, words.style)
            }
        }
    }

    fn end(&self, entry: &RunEntry) -> String {
        let record = entry.record.as_ref().ok();
        let verdict = record.and_then(|record| record.verdict.as_ref());
        let state = RunStanding::of(entry).as_str();
        let paint = match self.form {
            Form::Text(paint) => paint,
            Form::Json => {
                let value = json!({ "source": "verdict", "state": state, "verdict": verdict });
                return value.to_string();
            }
        };
        let took = record.and_then(|record| record.duration_ms);
        let text = match verdict {
            Some(verdict) if !entry.live => {
                let (word, _) = crate::render::verdict_word(verdict.kind);
                format!("{word} ({}): {}", verdict.cause, one_line(&verdict.summary))
            }
            _ => format!("none: the run is {state}"),
        };
        let at = took.map(|ms| ms.saturating_mul(1_000_000));
        text_line(paint, at, "verdict", &words::cut(&text), Some(Style::Bold))
    }
}

fn text_line(
    paint: Paint,
    at_ns: Option<u64>,
    source: &str,
    text: &str,
    style: Option<Style>,
) -> String {
    let time = paint.paint(Style::Dim, &format!("{:<9}", time(at_ns)));
    let text = style.map_or_else(|| text.to_owned(), |style| paint.paint(style, text));
    format!("{time} {source:<SOURCE$} {text}").trim_end().to_owned()
}

/// Writes a time since the start of the run, in seconds.
fn time(at_ns: Option<u64>) -> String {
    match at_ns {
        Some(ns) => format!("+{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1000),
        None => "+?".to_owned(),
    }
}
