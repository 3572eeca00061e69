//! Shows a run that goes on elsewhere, by the bytes of its files.

use std::collections::BTreeMap;

use jig_model::StampedEvent;
use jig_model::command::{CommandEvent, EventSink as _};
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
    /// The start of a line of events.
    line: Vec<u8>,
}

impl AttachView {
    /// Prepares to show a run.
    pub(crate) fn new(screen: &Screen) -> Self {
        // How often the test is repeated is not known, so each attempt is shown.
        let live = LiveView::new(screen, 1);
        Self { screen: screen.clone(), live, consoles: BTreeMap::new(), line: Vec::new() }
    }

    /// Shows the next bytes of a file of the run, by its path within it.
    pub(crate) fn show(&mut self, path: &str, bytes: &[u8]) {
        match path == EVENTS {
            true => self.events(bytes),
            false if self.live.shows_consoles() => self.console(path, bytes),
            false => {}
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
                self.live.event(CommandEvent::Run { event });
            }
        }
    }

    fn console(&mut self, path: &str, bytes: &[u8]) {
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
        self.live.finish();
        for (_, printer) in self.consoles.values_mut() {
            printer.finish();
        }
    }
}
