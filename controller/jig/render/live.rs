//! Shows a run while it happens: the console as it comes, and a progress line.
//!
//! Each console is shown by a thread of its own that follows the log, so a terminal that
//! is slow or stopped holds up nobody but itself.

use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use jig_model::recovery::RecoveryEvent;
use jig_model::result::CaseStatus;
use jig_model::{Cause, ConsoleName, Purpose, RunEvent, RunId, Verdict};
use jig_rig::console::{ConsoleHandle, Escaper, Follow, escape};
use jig_rig::session::Observer;

use super::{Progress, Screen, one_line, repair_words};

/// Bytes shown at once.
const STRIDE: usize = 16 << 10;

/// Shows one run.
pub(crate) struct LiveView {
    show_console: bool,
    /// Whether what the fault injector does is told.
    told: bool,
    /// Whether progress is told in lines, because it is no terminal that would show it.
    lines: bool,
    /// Whether people are told of recoveries.
    tells: bool,
    repeat: u32,
    tally: Mutex<Tally>,
    progress: Progress,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Tally {
    cases: [u32; 3],
    /// Of attempts that count so far.
    verdicts: Vec<Verdict>,
    /// What the attempt under way is for.
    purpose: Purpose,
}

impl LiveView {
    /// Prepares to show a run of so many attempts. Console output is shown where it is
    /// the only thing on standard output, and for a single attempt.
    pub(crate) fn new(screen: &Screen, repeat: u32) -> Self {
        Self {
            show_console: !screen.json() && !screen.quiet() && repeat == 1,
            told: !screen.quiet(),
            lines: !screen.quiet() && !screen.is_terminal(),
            tells: !screen.quiet(),
            repeat,
            tally: Mutex::default(),
            progress: screen.progress(),
            threads: Mutex::default(),
        }
    }

    /// Waits until everything has been shown.
    pub(crate) fn finish(&self) {
        self.progress.clear();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A view that panicked has shown what it could.
            let _ = thread.join();
        }
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
}

impl Observer for LiveView {
    fn began(&self, run: &RunId, dir: &Path) {
        tracing::info!(run = %run, dir = %dir.display(), "run");
    }

    fn event(&self, event: &RunEvent) {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            RunEvent::AttemptStarted { purpose, .. } => {
                tally.purpose = *purpose;
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
                tally.verdicts.push(verdict.clone());
                if self.lines && self.repeat > 1 {
                    let (attempt, words) =
                        (tally.verdicts.len(), escape(verdict.summary.as_bytes()));
                    eprintln!("attempt {attempt} of {}: {}: {words}", self.repeat, verdict.kind);
                }
            }
            RunEvent::Recovery(recovery) => {
                if let RecoveryEvent::Ended { recovered_by: Some(_), .. } = recovery {
                    // The attempt that the rig spoiled is made again.
                    tally.verdicts.pop();
                }
                if self.tells && !matches!(recovery, RecoveryEvent::Step { .. }) {
                    self.progress.clear();
                    eprintln!("jig: {}", one_line(&repair_words(recovery).0));
                }
            }
            RunEvent::Injected { fault, detail } if self.told => {
                eprintln!("jig: injected {fault}: {}", escape(detail.as_bytes()));
            }
            RunEvent::Recognised { cause: Cause::NoOutput | Cause::Hang, text, .. }
                if self.show_console =>
            {
                eprintln!("jig: {}", escape(text.as_bytes()));
            }
            _ => return,
        }
        // The console's own lines are the progress where they are shown.
        if !self.show_console {
            self.progress.set(&self.line(&tally));
        }
    }

    fn console(&self, console: &ConsoleName, handle: &ConsoleHandle) {
        if !self.show_console {
            return;
        }
        let runtime = tokio::runtime::Handle::current();
        let (name, handle) = (console.clone(), handle.clone());
        let shown = std::thread::Builder::new()
            .name("jig-view".to_owned())
            .spawn(move || runtime.block_on(show(&name, &handle)));
        if let Ok(thread) = shown {
            self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
    }
}

/// Shows a console until it is closed.
async fn show(console: &ConsoleName, handle: &ConsoleHandle) {
    let Ok(mut follower) = handle.follow(0, 0) else { return };
    let mut state = handle.state();
    let (mut buf, mut escaper) = (vec![0; STRIDE], Escaper::default());
    let mut line_open = false;
    loop {
        match follower.next(&mut buf).await {
            Ok(Follow::Bytes { len, .. }) => {
                let text = escaper.escape(&buf[..len]);
                line_open = !text.is_empty() && !text.ends_with('\n');
                if print(&text).is_err() {
                    return;
                }
            }
            Ok(Follow::Ended { .. }) => {
                let seen = follower.cursor();
                let more = state.wait_for(|s| s.len > seen || s.closed).await.map(|s| s.len > seen);
                if !matches!(more, Ok(true)) {
                    break;
                }
            }
            Err(error) => {
                let words = escape(error.to_string().as_bytes());
                tracing::warn!(%console, "console not shown any further: {words}");
                break;
            }
        }
    }
    let rest = escaper.finish();
    if line_open || !rest.is_empty() {
        let _ = print(&format!("{rest}\n"));
    }
}

/// Prints at once: output is read by people who wait for it.
fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
