//! The two streams, and what they are connected to.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use jig_model::Fault;
use serde::Serialize;

use super::diagnostics::{self, DiagnosticStyle};
use super::paint::{Paint, wants_colour};
use super::progress::{ProgressLine, ProgressView};
use crate::args::Common;
use crate::failure::Failure;
use crate::logs;

/// Standard output and standard error of a command.
///
/// A reader that goes away (`jig runs log | head`) ends no command: its exit code must
/// still tell what became of the target. What is left to say is dropped, and
/// [`Screen::closed`] lets long listings stop early.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    out: Paint,
    err: Paint,
    unicode: bool,
    is_terminal: bool,
    in_journal: bool,
    quiet: bool,
    json: bool,
    line: ProgressLine,
    lost: Arc<Mutex<Option<io::ErrorKind>>>,
}

/// Writes a line on standard error. A reader that has gone ends no run.
pub(super) fn stderr_line(line: &str) {
    // There is no place to report that standard error is closed.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

impl Screen {
    /// Looks at the streams, the environment and the options.
    pub(crate) fn new(common: &Common) -> Self {
        let get = |name: &'static str| (name, std::env::var_os(name));
        let names =
            ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "TERM", "LC_ALL", "LC_CTYPE", "LANG"];
        let set: Vec<(&str, Option<OsString>)> = names.into_iter().map(get).collect();
        let find = |name: &str| -> Option<&OsStr> {
            set.iter().find(|(known, _)| *known == name).and_then(|(_, value)| value.as_deref())
        };
        // The first of the three that says anything decides, as the C library does it.
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(find);
        let locale = locale.filter(|value| !value.is_empty()).map(OsStr::to_ascii_lowercase).next();
        let locale = locale.unwrap_or_default().to_string_lossy().into_owned();
        let is_terminal = io::stderr().is_terminal();
        Self {
            out: Paint { on: !common.json && wants_colour(io::stdout().is_terminal(), find) },
            err: Paint { on: wants_colour(is_terminal, find) },
            unicode: locale.contains("utf-8") || locale.contains("utf8"),
            is_terminal: is_terminal && find("TERM").is_none_or(|term| term != "dumb"),
            in_journal: logs::in_journal(),
            quiet: common.quiet,
            json: common.json,
            line: ProgressLine::default(),
            lost: Arc::default(),
        }
    }

    /// Tells whether standard error gets colour.
    pub(crate) fn colour(&self) -> bool {
        self.err.on
    }

    /// Tells whether standard output is to be JSON.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Tells whether only what was asked for is to be said.
    pub(crate) fn quiet(&self) -> bool {
        self.quiet
    }

    /// Tells whether standard error is a terminal that can rewrite a line.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Tells whether a person may read standard error now: the journal is read later.
    pub(crate) fn is_watched(&self) -> bool {
        !self.in_journal
    }

    /// Returns the colours of standard error.
    pub(crate) fn err_paint(&self) -> Paint {
        self.err
    }

    /// Returns the colours of standard output.
    pub(crate) fn out_paint(&self) -> Paint {
        self.out
    }

    /// Says a line on standard error, unless quiet. The text is already escaped.
    pub(crate) fn say(&self, line: &str) {
        if !self.quiet {
            self.insist(line);
        }
    }

    /// Says a line on standard error, even if quiet.
    pub(crate) fn insist(&self, line: &str) {
        self.line.step_aside(|| {
            stderr_line(line);
        });
    }

    /// Writes a line of what was asked for. The text is already escaped.
    pub(crate) fn out(&self, text: &str) {
        self.line.step_aside(|| self.put(&[text.as_bytes(), b"\n"]));
    }

    /// Writes a part of what was asked for, as it is, and shows it at once.
    pub(crate) fn out_bytes(&self, bytes: &[u8]) {
        self.line.take_away();
        self.put(&[bytes]);
    }

    /// Writes a value as one line of JSON.
    pub(crate) fn out_json<T: Serialize>(&self, value: &T) {
        match serde_json::to_string(value) {
            Ok(text) => self.out(&text),
            // Only maps with keys that are no text fail, and none of ours has them.
            Err(error) => self.insist(&format!("error: could not write JSON: {error}")),
        }
    }

    fn put(&self, parts: &[&[u8]]) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if lost.is_some() {
            return;
        }
        let mut out = io::stdout().lock();
        let written = parts.iter().try_for_each(|part| out.write_all(part));
        *lost = written.and_then(|()| out.flush()).err().map(|error| error.kind());
    }

    /// Returns whether standard output is closed.
    pub(crate) fn closed(&self) -> bool {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Fails once standard output is closed.
    ///
    /// # Errors
    /// What was to be written is dropped.
    pub(crate) fn written(&self) -> io::Result<()> {
        let lost = *self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.map_or(Ok(()), |kind| Err(kind.into()))
    }

    /// Returns the failure of standard output, if there was one. A reader that went away
    /// is none; a full disk is.
    pub(crate) fn output_failure(&self) -> Option<Failure> {
        let lost = *self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.filter(|kind| *kind != io::ErrorKind::BrokenPipe).map(|kind| {
            Failure::new(Fault::Lab, format!("could not write to standard output: {kind}"))
                .help("what was written is incomplete; look at the disk it goes to")
        })
    }

    /// Shows a failure: on standard error for people, with `--json` on standard output unless that
    /// is lost.
    pub(crate) fn failure(&self, failure: &Failure) {
        if self.json && !self.closed() {
            return self.out_json(&diagnostics::failure_json(failure));
        }
        self.failure_beside(failure);
    }

    /// Shows a failure on standard error: with `--json`, standard output holds another document.
    pub(crate) fn failure_beside(&self, failure: &Failure) {
        let look = DiagnosticStyle { paint: self.err, unicode: self.unicode };
        self.complain(diagnostics::failure_text(failure, look).trim_end_matches('\n'));
    }

    /// Says what went wrong on standard error. The text is already escaped.
    pub(crate) fn complain(&self, text: &str) {
        match self.in_journal {
            true => self.insist(&logs::as_errors(text)),
            false => self.insist(text),
        }
    }

    /// Begins a line that shows what is going on.
    pub(crate) fn progress(&self) -> ProgressView {
        ProgressView::new((self.is_terminal && !self.quiet).then(|| self.line.clone()))
    }
}
