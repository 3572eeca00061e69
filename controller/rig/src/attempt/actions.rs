//! Carries out the actions of a plan.
//!
//! A wait ends as soon as it is pointless, for example when the board is lost or the target has
//! crashed. Switching power, resetting and deploying are never cut short, because that would leave
//! the board in an unknown state.

mod before_switch;
mod boot;
mod console;
mod echo;
mod expect_reset;
mod host;
mod power;
mod quiet;
mod results;
mod serial_shell;
mod shell;
mod unmatched;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jig_model::image::{DeployReport, Image};
use jig_model::pattern::Pattern;
use jig_model::plan::{Action, ActionKind};
use jig_model::profile::BoardProfile;
use jig_model::protocol::{DriverError, Host, Protocols};
use jig_model::shell::TargetShell;
use jig_model::{Cause, ConsoleName, chain};
use tokio::sync::watch;
use tokio::time::sleep;

pub(super) use self::before_switch::{ends_boot, last_off};
pub(super) use self::power::lied;
pub(super) use self::quiet::LostSince;
use super::abort_condition::abort_condition;
use super::after_end::{AwaitedEnd, is_passive};
use super::board::{AttemptBoard, WatcherProgress};
use super::board_timeout::BoardTimeout;
use super::compiled_patterns::RunPatterns;
use crate::console::{ConsoleClock, Follower, PatternSet};
use crate::judge::CoreFinding;
use crate::store::RunDir;
use crate::workflow::{ActionFailure, CancelToken};

/// Everything actions work on.
pub(super) struct Actions<'a> {
    pub(super) board: Arc<AttemptBoard>,
    pub(super) profile: Arc<BoardProfile>,
    pub(super) protocols: Protocols,
    pub(super) host: &'a dyn Host,
    /// What to look for in the output.
    pub(super) patterns: &'a RunPatterns,
    /// Images by the name the plan gives them; `None` is the command line's.
    pub(super) images: &'a BTreeMap<Option<PathBuf>, Image>,
    pub(super) dir: &'a RunDir,
    pub(super) attempt: u32,
    /// Folder for what drivers leave as evidence.
    pub(super) evidence: &'a Path,
    pub(super) cancel: &'a CancelToken,
    /// The clock of the consoles' logs.
    pub(super) clock: &'a dyn ConsoleClock,
    /// How far each console's watcher is.
    pub(super) watched: BTreeMap<ConsoleName, watch::Receiver<WatcherProgress>>,
    pub(super) deployed: Option<DeployReport>,
    /// What earlier waits have consumed, per console, and in which boot.
    pub(super) cursors: BTreeMap<ConsoleName, (usize, Follower)>,
    /// The boot of the last complete report, and the number of reports of that boot so far.
    pub(super) heard: (usize, u32),
    /// The ends of reports that the present wait for results has seen.
    pub(super) ends: results::ReportEnds,
    /// Host commands so far; numbers their artefacts.
    pub(super) commands: u32,
    /// The shell of the target, if it is reached.
    pub(super) shell: Option<TargetShell>,
    /// Whether the last action watched the target for a while after what it waited for.
    pub(super) settled: bool,
    /// The console of the text that the plan has waited for, if nothing but pauses followed.
    pub(super) awaited: Option<ConsoleName>,
    /// The texts behind which the plan has ended a boot.
    pub(super) awaited_ends: Vec<AwaitedEnd>,
    /// What the plan has sent, the last texts of it.
    pub(super) sent: Vec<echo::SentText>,
    /// Where each console's log ended when the plan first sent something.
    pub(super) sent_from: BTreeMap<ConsoleName, u64>,
    /// How long the target is watched after what a plan waits for.
    pub(super) settle: Duration,
    /// Whether the board was halted, or may have been.
    pub(super) halted: bool,
    /// What was found of a core that stood in a fault before the plan ended the boot.
    pub(super) core: Option<CoreFinding>,
}

fn by_driver(error: &DriverError) -> ActionFailure {
    ActionFailure::new(error.cause, chain(error))
}

impl Actions<'_> {
    /// Carries out one action; returns what was observed, in a few words.
    pub(super) async fn perform(&mut self, action: &Action) -> Result<String, ActionFailure> {
        let waited = BoardTimeout::new(&self.board, action.timeout);
        let done = self.carry_out(action).await;
        if done.is_ok() && waits(&action.kind) {
            waited.met(&self.board);
        }
        done
    }

    async fn carry_out(&mut self, action: &Action) -> Result<String, ActionFailure> {
        let timeout = action.timeout;
        self.settled = false;
        self.run_on().await?;
        if ends_boot(&action.kind) {
            self.look_before_switch().await?;
            self.note_awaited_end();
        }
        if !is_passive(&action.kind) {
            self.awaited = match &action.kind {
                ActionKind::Expect { console, .. } => {
                    Some(console.as_ref().unwrap_or(&self.board.primary).clone())
                }
                _ => None,
            };
        }
        match &action.kind {
            ActionKind::Power { op } => self.power(*op, timeout).await,
            ActionKind::Reset => self.reset(timeout).await,
            ActionKind::ExpectReset { console, begins } => {
                let board_timeout = BoardTimeout::new(&self.board, timeout);
                self.expect_reset(console.as_ref(), begins.as_ref(), board_timeout).await
            }
            ActionKind::Deploy { image } => self.deploy(image, timeout).await,
            ActionKind::Boot { until } => self.boot(until.as_deref(), timeout).await,
            ActionKind::Expect { console, any, reject, echo } => {
                if *echo {
                    self.forget_sent(console.as_ref());
                }
                let board_timeout = BoardTimeout::new(&self.board, timeout);
                let matched = self.expect(console.as_ref(), any, reject, board_timeout).await?;
                Ok(format!("`{}` at offset {}", any[matched.pattern], matched.start))
            }
            ActionKind::Send { console, bytes } => {
                self.send(console.as_ref(), bytes, timeout).await
            }
            ActionKind::WaitForResults { .. } => self.wait_for_results(timeout).await,
            ActionKind::Exec { argv, exit_code, via } => {
                self.exec(argv, *exit_code, *via, timeout).await
            }
            ActionKind::Upload { from, to, mode, via } => {
                self.upload((from, to, *mode), *via, timeout).await
            }
            ActionKind::Download { from, to, via } => self.download(from, to, *via, timeout).await,
            ActionKind::Reboot { via } => self.reboot(*via, timeout).await,
            ActionKind::HostCommand { argv, exit_code } => {
                self.host_command(action, argv, *exit_code).await
            }
            ActionKind::Assert { console, pattern, assertion } => {
                self.assert(console.as_ref(), pattern, *assertion, timeout).await
            }
            ActionKind::Sleep { duration } => {
                let board = Arc::clone(&self.board);
                tokio::select! {
                    biased;
                    failure = abort_condition(&board) => Err(failure),
                    () = sleep(*duration) => Ok("slept".to_owned()),
                }
            }
        }
    }
}

/// Tells whether an action waits for something that the target does.
fn waits(kind: &ActionKind) -> bool {
    matches!(
        kind,
        ActionKind::Expect { .. }
            | ActionKind::ExpectReset { .. }
            | ActionKind::Boot { .. }
            | ActionKind::WaitForResults { .. }
            | ActionKind::Send { .. }
            | ActionKind::Exec { .. }
            | ActionKind::Upload { .. }
            | ActionKind::Download { .. }
            | ActionKind::Reboot { .. }
    )
}

impl Actions<'_> {
    /// Says what an action has missed that was cut off after this time; nothing of an action that waits
    /// neither for text nor for a reset.
    pub(super) async fn cut_off(
        &mut self,
        kind: &ActionKind,
        after: Duration,
    ) -> Option<ActionFailure> {
        match kind {
            ActionKind::Expect { console, any, .. } => {
                let missed = self.cut_off_wait(console.as_ref(), any, after).await;
                Some(missed.unwrap_or_else(|failure| failure))
            }
            ActionKind::ExpectReset { console, begins } => {
                Some(self.cut_off_reset(console.as_ref(), begins.as_ref(), after))
            }
            ActionKind::WaitForResults { .. } => self.repeated_reports(),
            _ => None,
        }
    }
}

fn compile(patterns: &[Pattern]) -> Result<PatternSet, ActionFailure> {
    // The plan was checked, so only a set that is too large as a whole can fail here.
    PatternSet::new(patterns)
        .map_err(|error| ActionFailure::new(Cause::AssertFailed, chain(&error)))
}
