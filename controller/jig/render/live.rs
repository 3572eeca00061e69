//! Shows a run while it happens: the console as it comes, and a progress line.

use std::io;
use std::sync::{Mutex, PoisonError};

use jig_model::command::{CommandEvent, EventSink};
use jig_model::recovery::RecoveryEvent;
use jig_model::result::CaseStatus;
use jig_model::{Cause, Purpose, RunEvent, Verdict};
use jig_rig::console::{Escaper, escape};

use super::screen::stderr_line;
use super::{LogPrinter, LogViews, ProgressView, Screen, one_line, repair_words};

/// Shows one run.
pub(crate) struct LiveView {
    screen: Screen,
    show_console: bool,
    /// Whether what the fault injector does is told.
    told: bool,
    /// Whether progress is told in lines, because it is no terminal that would show it.
    lines: bool,
    /// Whether people are told of recoveries.
    tells: bool,
    repeat: u32,
    tally: Mutex<Tally>,
    progress: ProgressView,
    logs: LogViews,
}

#[derive(Default)]
struct Tally {
    cases: [u32; 3],
    /// Of attempts that count so far.
    verdicts: Vec<Verdict>,
    /// What the attempt under way is for.
    purpose: Purpose,
    /// Which repetition the attempt under way belongs to, where there are several.
    repetition: Option<u32>,
    /// That of the last verdict that counts.
    counted: Option<u32>,
}

impl LiveView {
    /// Prepares to show a run of so many attempts. Console output is shown where it is
    /// the only thing on standard output, and for a single attempt.
    pub(crate) fn new(screen: &Screen, repeat: u32) -> Self {
        Self {
            screen: screen.clone(),
            show_console: !screen.json() && !screen.quiet() && repeat == 1,
            told: !screen.quiet(),
            lines: !screen.quiet() && !screen.is_terminal(),
            tells: !screen.quiet(),
            repeat,
            tally: Mutex::default(),
            progress: screen.progress(),
            logs: LogViews::default(),
        }
    }

    /// Tells whether console output is shown.
    pub(super) fn shows_consoles(&self) -> bool {
        self.show_console
    }

    /// Waits until everything has been shown.
    pub(crate) fn finish(&self) {
        self.progress.clear();
        self.logs.finish();
    }

    fn line(&self, tally: &Tally) -> String {
        let [passed, failed, skipped] = tally.cases;
        if self.repeat > 1 {
            let good = tally.verdicts.iter().filter(|v| v.kind == jig_model::VerdictKind::Pass);
            let (good, all) = (good.count(), tally.verdicts.len());
            let attempt = (all + 1).min(self.repeat as usize);
            return format!("attempt {attempt} of {}: {good} of {all} passed", self.repeat);
        }
        format!("{passed} passed, {failed} failed, {skipped} skipped")
    }

    fn run_event(&self, event: &RunEvent) {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            RunEvent::AttemptStarted { purpose, repetition, .. } => {
                tally.purpose = *purpose;
                tally.repetition = *repetition;
                tally.cases = [0; 3];
            }
            // The known-good image says nothing of what was asked for.
            RunEvent::Case { .. } | RunEvent::AttemptEnded { .. } if !tally.purpose.is_test() => {}
            RunEvent::Case { status, .. } => {
                let slot = match status {
                    CaseStatus::Pass => 0,
                    CaseStatus::Fail | CaseStatus::Unfinished => 1,
                    CaseStatus::Skip => 2,
                };
                tally.cases[slot] += 1;
            }
            RunEvent::AttemptEnded { verdict, .. } => {
                let again = if tally.repetition.is_some() && tally.repetition == tally.counted {
                    ", again"
                } else {
                    tally.verdicts.push(verdict.clone());
                    tally.counted = tally.repetition;
                    ""
                };
                if self.lines && self.repeat > 1 {
                    let (attempt, words) =
                        (tally.verdicts.len(), escape(verdict.summary.as_bytes()));
                    stderr_line(&format!(
                        "attempt {attempt} of {}{again}: {}: {words}",
                        self.repeat, verdict.kind
                    ));
                }
            }
            RunEvent::Recovery(recovery) => {
                if let RecoveryEvent::Ended { recovered_by: Some(_), .. } = recovery {
                    // The attempt that the rig spoiled is made again.
                    tally.verdicts.pop();
                    tally.counted = None;
                }
                if self.tells && !matches!(recovery, RecoveryEvent::Step { .. }) {
                    self.progress.clear();
                    stderr_line(&format!("jig: {}", one_line(&repair_words(recovery).0)));
                }
            }
            RunEvent::Injected { fault, detail } if self.told => {
                stderr_line(&format!("jig: injected {fault}: {}", escape(detail.as_bytes())));
            }
            RunEvent::Recognised { cause: Cause::NoOutput | Cause::Hang, text, .. }
                if self.show_console =>
            {
                stderr_line(&format!("jig: {}", escape(text.as_bytes())));
            }
            _ => return,
        }
        // The console's own lines are the progress where they are shown.
        if !self.show_console {
            self.progress.set(&self.line(&tally));
        }
    }
}

impl EventSink for LiveView {
    fn event(&self, event: CommandEvent) {
        match event {
            CommandEvent::Run { event } => self.run_event(&event),
            CommandEvent::Console { console, log } if self.show_console => {
                self.logs.show(&console, &log, LinePrinter::new(&self.screen));
            }
            other => self.screen.event(other),
        }
    }
}

/// Prints a log, escaped, and ends its last line. Each piece is shown at once: people wait for it.
pub(super) struct LinePrinter {
    screen: Screen,
    escaper: Escaper,
    line_open: bool,
}

impl LinePrinter {
    pub(super) fn new(screen: &Screen) -> Self {
        Self { screen: screen.clone(), escaper: Escaper::default(), line_open: false }
    }
}

impl LogPrinter for LinePrinter {
    fn print(&mut self, bytes: &[u8]) -> io::Result<()> {
        let text = self.escaper.escape(bytes);
        self.line_open = !text.is_empty() && !text.ends_with('\n');
        self.screen.out_bytes(text.as_bytes());
        self.screen.written()
    }

    fn finish(&mut self) {
        let rest = self.escaper.finish();
        if self.line_open || !rest.is_empty() {
            self.screen.out(&rest);
        }
    }
}
