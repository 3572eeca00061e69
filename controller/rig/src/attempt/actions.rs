//! Does what a plan's actions say.
//!
//! A wait ends as soon as it is pointless: with the board lost or the target crashed
//! nobody has to sit out a time-out. Switching power, resetting and deploying are never
//! cut short, because half of them done is a state nobody knows.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jig_model::event::RunEvent;
use jig_model::image::{DeployReport, Image};
use jig_model::pattern::Pattern;
use jig_model::plan::{Action, ActionKind, Assertion, PowerOp};
use jig_model::profile::{BoardProfile, StageProbe};
use jig_model::protocol::{CommandEnd, DriverError, Host, PowerState, Protocols};
use jig_model::{Cause, ConsoleName};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::board::Board;
use super::trouble::{exit, trouble};
use super::watcher::Progress;
use crate::console::{ExpectError, Follower, Matched, PatternSet, expect, find_all};
use crate::judge::Passage;
use crate::store::RunDir;
use crate::workflow::ActionFailure;

/// How long the driver may take to say why a console's wire has ended. It learns of the
/// emulator's end within a millisecond of the wire; a loaded host may take a thousand.
const REASON: Duration = Duration::from_secs(5);

/// Bytes of the last output that a failure quotes: about three lines.
const QUOTE: u64 = 200;

/// Everything actions work on.
pub(super) struct Actions<'a> {
    pub(super) board: Arc<Board>,
    pub(super) profile: Arc<BoardProfile>,
    pub(super) protocols: Protocols,
    pub(super) host: &'a dyn Host,
    /// Images by the name the plan gives them; `None` is the command line's.
    pub(super) images: &'a BTreeMap<Option<PathBuf>, Image>,
    pub(super) dir: &'a RunDir,
    pub(super) attempt: u32,
    pub(super) progress: watch::Receiver<Progress>,
    pub(super) deployed: Option<DeployReport>,
    /// What earlier waits have consumed, per console, and in which boot.
    pub(super) cursors: BTreeMap<ConsoleName, (usize, Follower)>,
    /// Host commands so far; numbers their artefacts.
    pub(super) commands: u32,
    /// Whether the last action watched the target for a while after what it waited for.
    pub(super) settled: bool,
}

/// Says an error with everything below it, once each.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(source) = below {
        let words = source.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        below = source.source();
    }
    text
}

fn by_driver(error: &DriverError) -> ActionFailure {
    ActionFailure::new(error.cause, chain(error))
}

impl Actions<'_> {
    /// Does one action; returns what was seen, in a few words.
    pub(super) async fn perform(&mut self, action: &Action) -> Result<String, ActionFailure> {
        let within = action.timeout;
        self.settled = false;
        match &action.kind {
            ActionKind::Power { op } => self.power(*op, within).await,
            ActionKind::Reset => self.reset(within).await,
            ActionKind::Deploy { image } => self.deploy(image, within).await,
            ActionKind::Boot { until } => self.boot(until.as_deref(), within).await,
            ActionKind::Expect { console, any, reject } => {
                let deadline = Instant::now() + within;
                let matched = self.expect(console.as_ref(), any, reject, deadline).await?;
                Ok(format!("`{}` at offset {}", any[matched.pattern], matched.start))
            }
            ActionKind::Send { console, bytes } => self.send(console.as_ref(), bytes, within).await,
            ActionKind::WaitForResults { .. } => self.wait_for_results(within).await,
            ActionKind::HostCommand { argv, exit_code } => {
                self.host_command(action, argv, *exit_code).await
            }
            ActionKind::Assert { console, pattern, assertion } => {
                self.assert(console.as_ref(), pattern, *assertion).await
            }
            ActionKind::Sleep { duration } => {
                let board = Arc::clone(&self.board);
                tokio::select! {
                    biased;
                    failure = trouble(&board) => Err(failure),
                    () = sleep(*duration) => Ok("slept".to_owned()),
                }
            }
        }
    }

    async fn power(&mut self, op: PowerOp, within: Duration) -> Result<String, ActionFailure> {
        let Some(power) = &mut self.protocols.power else {
            return Err(ActionFailure::new(Cause::PowerFailed, "this place has no power control"));
        };
        let switch = async {
            match op {
                PowerOp::On => power.on().await,
                PowerOp::Off => power.off().await,
                PowerOp::Cycle => {
                    power.off().await?;
                    power.on().await
                }
            }
        };
        match timeout(within, switch).await {
            Ok(Ok(())) => Ok(format!("power {op:?}").to_lowercase()),
            Ok(Err(error)) => Err(by_driver(&error)),
            Err(_) => {
                let detail = format!("the board's power could not be switched within {within:?}");
                Err(ActionFailure::new(Cause::PowerFailed, detail))
            }
        }
    }

    async fn reset(&mut self, within: Duration) -> Result<String, ActionFailure> {
        let Some(reset) = &mut self.protocols.reset else {
            return Err(ActionFailure::new(Cause::PowerFailed, "this place has no reset"));
        };
        match timeout(within, reset.reset()).await {
            Ok(Ok(())) => Ok("reset".to_owned()),
            Ok(Err(error)) => Err(by_driver(&error)),
            Err(_) => {
                let detail = format!("the board could not be reset within {within:?}");
                Err(ActionFailure::new(Cause::PowerFailed, detail))
            }
        }
    }

    async fn deploy(
        &mut self,
        image: &Option<PathBuf>,
        within: Duration,
    ) -> Result<String, ActionFailure> {
        let Some(flasher) = &mut self.protocols.flasher else {
            return Err(ActionFailure::new(Cause::DeployFailed, "this place cannot deploy images"));
        };
        let Some(image) = self.images.get(image) else {
            // The session resolves every image before the first attempt.
            return Err(ActionFailure::new(
                Cause::DeployFailed,
                "the plan names an image that was not read",
            ));
        };
        match timeout(within, flasher.deploy(image)).await {
            Ok(Ok(report)) => {
                self.board.emit(RunEvent::Deployed(report.clone()));
                let short = report.sha256.get(..12).unwrap_or_default();
                let seen = format!("{} by {}", short, report.method);
                self.deployed = Some(report);
                Ok(seen)
            }
            Ok(Err(error)) => Err(by_driver(&error)),
            Err(_) => {
                let detail = format!("the image could not be deployed within {within:?}");
                Err(ActionFailure::new(Cause::DeployFailed, detail))
            }
        }
    }

    async fn boot(
        &mut self,
        until: Option<&str>,
        within: Duration,
    ) -> Result<String, ActionFailure> {
        let deadline = Instant::now() + within;
        let profile = Arc::clone(&self.profile);
        let mut reached = Vec::new();
        for stage in &profile.stages {
            let deadline = deadline.min(Instant::now() + stage.timeout);
            let began = Instant::now();
            match &stage.probe {
                StageProbe::Console(pattern) => {
                    let wanted = std::slice::from_ref(pattern);
                    self.expect(None, wanted, &[], deadline).await.map_err(|mut failed| {
                        failed.detail = format!("boot stage {}: {}", stage.name, failed.detail);
                        failed
                    })?;
                }
                StageProbe::Banner { port, pattern } => {
                    self.banner(&stage.name, port, pattern, deadline).await?;
                }
            }
            reached.push(format!("{} {:.1} s", stage.name, began.elapsed().as_secs_f64()));
            if until == Some(stage.name.as_str()) {
                break;
            }
        }
        Ok(reached.join(", "))
    }

    async fn banner(
        &mut self,
        stage: &str,
        port: &str,
        pattern: &Pattern,
        deadline: Instant,
    ) -> Result<(), ActionFailure> {
        let address = self.board.facts().forwards.get(port).cloned();
        let Some(address) = address else {
            let detail = format!("boot stage {stage}: the board forwards no port {port}");
            return Err(ActionFailure::new(Cause::PowerFailed, detail));
        };
        let set = compile(std::slice::from_ref(pattern))?;
        let board = Arc::clone(&self.board);
        let banner = tokio::select! {
            biased;
            failure = trouble(&board) => return Err(failure),
            banner = timeout_at(deadline, self.host.banner(&address)) => banner,
        };
        let Ok(banner) = banner else {
            let detail = format!("boot stage {stage}: {address} said nothing in time");
            return Err(ActionFailure::new(Cause::ExpectMissed, detail));
        };
        let mut scanner = crate::console::Scanner::new(&set, None);
        if scanner.scan(&banner).hits.is_empty() && scanner.finish().is_empty() {
            let words = String::from_utf8_lossy(&banner);
            let detail = format!("boot stage {stage}: {address} said {words:?}, not `{pattern}`");
            return Err(ActionFailure::new(Cause::ExpectMissed, detail));
        }
        Ok(())
    }

    fn console(&self, name: Option<&ConsoleName>) -> ConsoleName {
        name.unwrap_or(&self.board.primary).clone()
    }

    /// Returns the reader of a console, behind what earlier waits of this boot consumed.
    fn cursor(&mut self, console: &ConsoleName) -> Result<&mut Follower, ActionFailure> {
        let storage = |error: crate::console::FollowError| {
            ActionFailure::new(Cause::StorageFailed, chain(&error))
        };
        let Some(line) = self.board.lines.get(console) else {
            return Err(no_console(console));
        };
        let (boots, start) = {
            let facts = self.board.facts();
            let start = facts.boots.last().and_then(|boot| boot.get(console)).copied();
            (facts.boots.len(), start.unwrap_or_default())
        };
        let fresh = (boots, line.handle.follow(start, start).map_err(storage)?);
        let (seen, follower) = self.cursors.entry(console.clone()).or_insert(fresh);
        if *seen != boots {
            *seen = boots;
            follower.begin_boot(start);
        }
        Ok(follower)
    }

    async fn expect(
        &mut self,
        console: Option<&ConsoleName>,
        any: &[Pattern],
        reject: &[Pattern],
        deadline: Instant,
    ) -> Result<Matched, ActionFailure> {
        let console = self.console(console);
        let (any, reject) = (compile(any)?, compile(reject)?);
        let board = Arc::clone(&self.board);
        let file = board.lines.get(&console).map(|line| line.file.clone()).unwrap_or_default();
        let follower = self.cursor(&console)?;
        let outcome = tokio::select! {
            biased;
            failure = trouble(&board) => return Err(failure),
            outcome = expect(follower, &any, &reject, deadline) => outcome,
        };
        let error = match outcome {
            Ok(matched) => return Ok(matched),
            Err(error) => error,
        };
        let at = follower.cursor();
        let cause = match &error {
            ExpectError::TimedOut { .. } => Cause::ExpectMissed,
            ExpectError::Rejected { .. } => Cause::AssertFailed,
            ExpectError::Ended { .. } => {
                Self::board_is_off(&board).await;
                Cause::ExpectMissed
            }
            ExpectError::Storage(_) => Cause::StorageFailed,
        };
        let (start, end) = match &error {
            ExpectError::Rejected { matched, .. } => (matched.start, matched.end),
            _ => (at, board.lines.get(&console).map_or(at, |l| l.handle.state().borrow().len)),
        };
        let detail = chain(&error);
        let passage = Passage { file, start, end, text: detail.clone() };
        Err(ActionFailure { cause, detail, evidence: vec![passage.evidence()] })
    }

    /// Waits until the driver has said why the board went off, so that the judge knows.
    async fn board_is_off(board: &Board) {
        let mut changes = board.changes();
        let off = async {
            loop {
                changes.borrow_and_update();
                if board.facts().power != Some(PowerState::On) {
                    return;
                }
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // Without word of the driver the wire's end stands for itself.
        let _ = timeout(REASON, off).await;
    }

    async fn send(
        &mut self,
        console: Option<&ConsoleName>,
        bytes: &[u8],
        within: Duration,
    ) -> Result<String, ActionFailure> {
        let console = self.console(console);
        let board = Arc::clone(&self.board);
        let Some(line) = board.lines.get(&console) else {
            return Err(no_console(&console));
        };
        let sent = tokio::select! {
            biased;
            failure = trouble(&board) => return Err(failure),
            sent = timeout(within, line.handle.send(bytes)) => sent,
        };
        match sent {
            Ok(Ok(())) => Ok(format!("{} bytes", bytes.len())),
            Ok(Err(error)) => {
                Self::board_is_off(&board).await;
                let off = board.facts().power != Some(PowerState::On);
                let cause = if off { Cause::ExpectMissed } else { Cause::ConsoleLost };
                Err(ActionFailure::new(cause, format!("send to {console}: {}", chain(&error))))
            }
            Err(_) => {
                let n = bytes.len();
                let detail =
                    format!("the target did not take {n} bytes on {console} in {within:?}");
                Err(ActionFailure::new(Cause::ExpectMissed, detail))
            }
        }
    }

    async fn wait_for_results(&mut self, within: Duration) -> Result<String, ActionFailure> {
        let board = Arc::clone(&self.board);
        let boots = board.boots();
        let deadline = Instant::now() + within;
        let mut progress = self.progress.clone();
        // An error means that the watcher broke off; the attempt fails by that.
        let ended = async { drop(progress.wait_for(|p| p.boots == boots && p.ended).await) };
        let end = tokio::select! {
            biased;
            failure = trouble(&board) => return Err(failure),
            () = ended => ReportEnd::Marker,
            code = exit(&board) => ReportEnd::Exit(code),
            () = tokio::time::sleep_until(deadline) => ReportEnd::Overdue,
        };
        match end {
            ReportEnd::Overdue => return Err(self.hang(within)),
            ReportEnd::Exit(code) => {
                self.looked_at_everything().await;
                return Ok(format!("the target ended with code {code}"));
            }
            ReportEnd::Marker => {}
        }
        self.settle().await?;
        Ok("end marker seen".to_owned())
    }

    /// Watches the target a little longer: a fault often comes right behind the last "OK".
    pub(super) async fn settle(&mut self) -> Result<(), ActionFailure> {
        let board = Arc::clone(&self.board);
        let off = board.facts().power != Some(PowerState::On);
        if std::mem::replace(&mut self.settled, true) || off {
            return Ok(());
        }
        tokio::select! {
            biased;
            failure = trouble(&board) => Err(failure),
            _ = exit(&board) => {
                self.looked_at_everything().await;
                Ok(())
            }
            () = sleep(self.profile.limits.settle) => Ok(()),
        }
    }

    /// Waits until the watcher has read all that the ended target printed.
    async fn looked_at_everything(&mut self) {
        let board = Arc::clone(&self.board);
        let Some(line) = board.lines.get(&board.primary) else { return };
        let len = line.handle.state().borrow().len;
        // An error means that the watcher has ended, which it says itself.
        let _ = timeout(REASON, self.progress.wait_for(|p| p.processed >= len)).await;
    }

    fn hang(&mut self, within: Duration) -> ActionFailure {
        let console = self.board.primary.clone();
        let reporting = self.progress.borrow().reporting;
        let what = if reporting { "the report did not end" } else { "no report was seen" };
        let (file, len) = match self.board.lines.get(&console) {
            Some(line) => (line.file.clone(), line.handle.state().borrow().len),
            None => (String::new(), 0),
        };
        let (start, last) = self.last_bytes(&console, len);
        let detail = format!("{what} within {within:?}; the last output is {last:?}");
        let passage = Passage { file, start, end: len, text: "last output".to_owned() };
        ActionFailure { cause: Cause::Hang, detail, evidence: vec![passage.evidence()] }
    }

    fn last_bytes(&mut self, console: &ConsoleName, len: u64) -> (u64, String) {
        let start = len.saturating_sub(QUOTE);
        let Ok(follower) = self.cursor(console) else { return (start, String::new()) };
        let start = start.max(follower.floor());
        let mut bytes = vec![0; len.saturating_sub(start) as usize];
        let read = follower.read_at(start, &mut bytes).unwrap_or_default();
        (start, String::from_utf8_lossy(&bytes[..read]).into_owned())
    }

    async fn host_command(
        &mut self,
        action: &Action,
        argv: &[String],
        expected: i32,
    ) -> Result<String, ActionFailure> {
        self.commands += 1;
        let name = format!("command-{}-{}-{}.log", self.attempt, self.commands, action.name);
        let path = self.dir.artefact_path(&name);
        let artefact = self.dir.relative(&path).unwrap_or(name);
        let board = Arc::clone(&self.board);
        let end = tokio::select! {
            biased;
            failure = trouble(&board) => return Err(failure),
            end = self.host.command(argv, action.timeout, &path) => end,
        };
        let end = end.map_err(|error| by_driver(&error))?;
        let code = match end {
            CommandEnd::Exited(code) => Some(code),
            CommandEnd::Signalled(_) | CommandEnd::TimedOut => None,
        };
        let argv = argv.to_vec();
        let program = argv.first().cloned().unwrap_or_default();
        self.board.emit(RunEvent::HostCommand { argv, code, artefact: artefact.clone() });
        let words = match end {
            CommandEnd::Exited(code) if code == expected => return Ok(format!("exit code {code}")),
            CommandEnd::Exited(code) => format!("ended with code {code}, not {expected}"),
            CommandEnd::Signalled(signal) => format!("was ended by signal {signal}"),
            CommandEnd::TimedOut => format!("did not end within {:?}", action.timeout),
        };
        let end = std::fs::metadata(&path).map_or(0, |m| m.len());
        let text = "its output".to_owned();
        let passage = Passage { file: artefact, start: 0, end, text };
        Err(ActionFailure {
            cause: Cause::HostCommandFailed,
            detail: format!("host command {program} {words}"),
            evidence: vec![passage.evidence()],
        })
    }

    async fn assert(
        &mut self,
        console: Option<&ConsoleName>,
        pattern: &Pattern,
        assertion: Assertion,
    ) -> Result<String, ActionFailure> {
        use jig_model::protocol::BoardSink as _;
        let console = self.console(console);
        self.board.drained().await;
        let set = compile(std::slice::from_ref(pattern))?;
        let start = self.cursor(&console)?.floor();
        let Some(line) = self.board.lines.get(&console) else {
            return Err(no_console(&console));
        };
        let storage = |error| ActionFailure::new(Cause::StorageFailed, chain(&error));
        let end = line.handle.state().borrow().len;
        let reader = line.handle.follow(start, start).map_err(storage)?;
        let limit = match assertion {
            Assertion::AtLeast(n) => n as usize,
            Assertion::Absent => 1,
        };
        let found = find_all(&reader, &set, start..end, limit).await.map_err(storage)?;
        let file = line.file.clone();
        match assertion {
            Assertion::Absent => match found.first() {
                None => Ok(format!("no `{pattern}`")),
                Some(matched) => {
                    let detail = format!("`{pattern}` was printed, but must not be");
                    let (start, end) = (matched.start, matched.end);
                    let passage = Passage { file, start, end, text: detail.clone() };
                    let evidence = vec![passage.evidence()];
                    Err(ActionFailure { cause: Cause::AssertFailed, detail, evidence })
                }
            },
            Assertion::AtLeast(n) if found.len() as u64 >= u64::from(n) => {
                Ok(format!("`{pattern}` {n} times"))
            }
            Assertion::AtLeast(n) => {
                let seen = found.len();
                let detail = format!("`{pattern}` was printed {seen} times, not {n}");
                let passage = Passage { file, start, end, text: detail.clone() };
                let evidence = vec![passage.evidence()];
                Err(ActionFailure { cause: Cause::AssertFailed, detail, evidence })
            }
        }
    }
}

fn no_console(console: &ConsoleName) -> ActionFailure {
    ActionFailure::new(Cause::ConsoleLost, format!("the board has no console {console}"))
}

/// What ended a wait for results.
enum ReportEnd {
    Marker,
    Exit(i32),
    Overdue,
}

fn compile(patterns: &[Pattern]) -> Result<PatternSet, ActionFailure> {
    // The plan was checked; only a set that is too large as a whole can fail here.
    PatternSet::new(patterns)
        .map_err(|error| ActionFailure::new(Cause::AssertFailed, chain(&error)))
}
