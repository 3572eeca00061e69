//! The progress line of a terminal, which is rewritten in place.

use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the line shows; shared with the screen, which steps around it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgressLine(Arc<Mutex<String>>);

impl ProgressLine {
    fn lock(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something else with the terminal: the line makes way and comes back.
    pub(crate) fn step_aside(&self, act: impl FnOnce()) {
        let shown = self.lock();
        if shown.is_empty() {
            return act();
        }
        wipe();
        act();
        draw(&shown);
    }

    /// Takes the line away, for output that may end in the middle of a line.
    pub(crate) fn take_away(&self) {
        let mut shown = self.lock();
        if !shown.is_empty() {
            shown.clear();
            wipe();
        }
    }

    fn set(&self, text: &str) {
        let mut shown = self.lock();
        if *shown != text {
            text.clone_into(&mut shown);
            draw(text);
        }
    }
}

/// Writes over the line. With line wrap off, a text longer than the terminal is wide stays
/// on one line, without asking how wide that is at the moment.
fn draw(text: &str) {
    let _ = write!(std::io::stderr().lock(), "\r\x1b[2K\x1b[?7l{text}\x1b[?7h");
}

fn wipe() {
    let _ = write!(std::io::stderr().lock(), "\r\x1b[2K");
}

/// Progress line; removed when dropped. Silent if standard error is no terminal.
#[derive(Debug)]
pub(crate) struct ProgressView {
    line: Option<ProgressLine>,
}

impl ProgressView {
    /// Begins with nothing shown.
    pub(super) fn new(line: Option<ProgressLine>) -> Self {
        Self { line }
    }

    /// Shows a text, already escaped; only its first line counts.
    pub(crate) fn set(&self, text: &str) {
        if let Some(line) = &self.line {
            line.set(text.lines().next().unwrap_or_default());
        }
    }

    /// Shows nothing.
    pub(crate) fn clear(&self) {
        if let Some(line) = &self.line {
            line.take_away();
        }
    }
}

impl Drop for ProgressView {
    fn drop(&mut self) {
        self.clear();
    }
}
