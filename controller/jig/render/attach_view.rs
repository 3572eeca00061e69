//! Shows a run that goes on elsewhere, by the bytes of its files.
//!
//! Consoles are shown for tests only, as the run's own command does: what the known-good image prints is
//! in the log. Which attempt is a test is an event, which may come behind the first bytes of its
//! consoles; these wait for it.

use std::collections::BTreeMap;

use jig_model::command::{CommandEvent, EventSink as _};
use jig_model::{Purpose, RunEvent, StampedEvent};
use jig_service::protocol::EVENTS;

use super::live::{LinePrinter, LiveView};
use super::{LogPrinter as _, Screen};

/// Longest line of events that is put together: a longer one is none.
const MOST_LINE: usize = 4 << 20;

/// Shows one run.
pub(crate) struct AttachView {
    screen: Screen,
    live: LiveView,
    /// The console that each log is of, and what prints it.
    consoles: BTreeMap<String, (String, LinePrinter)>,
    /// What each attempt is for, as far as it is known.
    purposes: BTreeMap<u32, Purpose>,
    /// Bytes of attempts of which that is not known yet, with their paths.
    waiting: Vec<(String, Vec<u8>)>,
    /// The start of a line of events.
    line: Vec<u8>,
}

impl AttachView {
    /// Prepares to show a run.
    pub(crate) fn new(screen: &Screen) -> Self {
        // How often the test is repeated is not known, so each attempt is shown.
        let live = LiveView::new(screen, 1);
        Self {
            screen: screen.clone(),
            live,
            consoles: BTreeMap::new(),
            purposes: BTreeMap::new(),
            waiting: Vec::new(),
            line: Vec::new(),
        }
    }

    /// Shows the next bytes of a file of the run, by its path within it.
    pub(crate) fn show(&mut self, path: &str, bytes: &[u8]) {
        match path == EVENTS {
            true => {
                self.events(bytes);
                for (path, bytes) in std::mem::take(&mut self.waiting) {
                    self.console(&path, &bytes);
                }
            }
            false if self.live.shows_consoles() => self.console(path, bytes),
            false => {}
        }
    }

    /// Shows bytes of a console, or has them wait until it is known what its attempt is for.
    fn console(&mut self, path: &str, bytes: &[u8]) {
        let attempt = path.split('/').nth(1).and_then(|number| number.parse().ok());
        match attempt.and_then(|attempt: u32| self.purposes.get(&attempt)) {
            Some(purpose) if purpose.is_test() => self.print(path, bytes),
            Some(_) => {}
            None => self.waiting.push((path.to_owned(), bytes.to_owned())),
        }
    }

    fn events(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(piece);
            if !piece.ends_with(b"\n") {
                // Of a line without end no more is kept than of any.
                self.line.truncate(MOST_LINE);
                return;
            }
            let line = std::mem::take(&mut self.line);
            // The first line is the header; one that is no event is in the log all the same.
            if let Ok(StampedEvent { event, .. }) = serde_json::from_slice(&line) {
                if let RunEvent::AttemptStarted { attempt, purpose, .. } = &event {
                    self.purposes.insert(*attempt, *purpose);
                }
                self.live.event(CommandEvent::Run { event });
            }
        }
    }

    fn print(&mut self, path: &str, bytes: &[u8]) {
        if !self.consoles.contains_key(path) {
            let name = path.rsplit('/').next().unwrap_or(path).to_owned();
            // The same console of an earlier attempt has been shown to its end.
            self.consoles.retain(|_, (console, printer)| {
                let other = *console != name;
                if !other {
                    printer.finish();
                }
                other
            });
            let printer = LinePrinter::new(&self.screen);
            self.consoles.insert(path.to_owned(), (name, printer));
        }
        if let Some((_, printer)) = self.consoles.get_mut(path) {
            // Output that is lost is known to the screen.
            let _ = printer.print(bytes);
        }
    }

    /// Ends the last lines.
    pub(crate) fn finish(&mut self) {
        // Where the events are damaged, everything is shown.
        for (path, bytes) in std::mem::take(&mut self.waiting) {
            self.print(&path, &bytes);
        }
        self.live.finish();
        for (_, printer) in self.consoles.values_mut() {
            printer.finish();
        }
    }
}
