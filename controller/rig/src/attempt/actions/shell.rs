//! Commands on a target that runs an operating system: run, copy, reboot.
//!
//! # Design
//! *A command is judged by its status, and its output like that of any console.* The output goes to a
//! console, so results, crashes and failures in it count. The status is the plan's proof.
//!
//! *A reboot is another boot, not a port that answers.* A system that goes down answers until its network
//! does. So the target is asked which boot this is before and after. Where a driver tells of resets, or
//! the profile knows what a boot prints first, the output has to show the boot, too.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jig_model::protocol::{
    BoardSink as _, BoxFuture, CopiedFile, DriverError, ShellPort, TargetCommandEnd,
};
use jig_model::shell::{ShellWay, SshHost};
use jig_model::{Cause, ConsoleName, RunEvent};
use tokio::time::{Instant, sleep_until};

use super::{Actions, by_driver};
use crate::attempt::abort_condition::abort_condition;
use crate::attempt::board::AttemptBoard;
use crate::attempt::board_timeout::BoardTimeout;
use crate::judge::ByteRange;
use crate::workflow::ActionFailure;

/// How long an SSH server is waited for behind a boot that the plan has begun: the time-out of the
/// action ends the wait before.
const BOOTING: Duration = Duration::from_secs(600);

/// How long a connection may take to fail while a target reboots.
const PROBE: Duration = Duration::from_secs(2);

/// Pause between two questions for the boot: short against a boot.
const PAUSE: Duration = Duration::from_millis(250);

/// What a copy is called that takes too long, and the cause that it makes.
const COPY: (Cause, &str) = (Cause::TransferFailed, "the copy");

/// Waits for the answer of a driver, no longer than an action may take.
async fn limited<T>(
    board: &AttemptBoard,
    limit: BoardTimeout,
    (late, what): (Cause, &str),
    work: BoxFuture<'_, Result<T, DriverError>>,
) -> Result<T, ActionFailure> {
    tokio::select! {
        biased;
        failure = abort_condition(board) => Err(failure),
        done = work => done.map_err(|error| by_driver(&error)),
        () = limit.run_out(board) => {
            let detail = format!("{what} did not end within {:?}", limit.asked());
            Err(limit.judged(board, ActionFailure::new(late, detail)))
        }
    }
}

impl Actions<'_> {
    /// Runs a program on the target.
    pub(super) async fn exec(
        &mut self,
        argv: &[String],
        expected: Option<i32>,
        via: Option<ShellWay>,
        timeout: Duration,
    ) -> Result<String, ActionFailure> {
        let limit = BoardTimeout::new(&self.board, timeout);
        let program = argv.first().map_or("", String::as_str).to_owned();
        let (console, from, to, end) = match self.shell_way(via)? {
            ShellWay::Ssh => {
                let console = self.command_console()?;
                let board = Arc::clone(&self.board);
                let from = end_of(&board, &console);
                let port = self.shell_port()?;
                let end =
                    limited(&board, limit, (Cause::CommandFailed, &program), port.exec(argv)).await;
                board.drained().await;
                (console.clone(), from, end_of(&board, &console), end?)
            }
            ShellWay::Serial => {
                let done = self.exec_serial(argv, limit).await;
                let (console, output, status) = done.map_err(|failure| match failure.cause {
                    Cause::Hang => ActionFailure { cause: Cause::CommandFailed, ..failure },
                    _ => failure,
                })?;
                (console, output.start, output.end, TargetCommandEnd::Exited(status))
            }
        };
        let told = (argv.to_vec(), end.clone(), console.clone());
        let (argv, end_told, console_told) = told;
        let event =
            RunEvent::TargetCommand { argv, end: end_told, console: console_told, from, to };
        self.board.emit(event);
        let wanted = |status| expected.is_none_or(|expected| expected == status);
        if matches!(end, TargetCommandEnd::Exited(status) if wanted(status)) {
            return Ok(end.to_string());
        }
        let file = self.board.lines.get(&console).map(|line| line.file.clone());
        let text = format!("output of {program}");
        let range = ByteRange { file: file.unwrap_or_default(), start: from, end: to, text };
        let detail = match end {
            TargetCommandEnd::Exited(status) => {
                format!(
                    "{program} on the target ended with status {status}, not {}",
                    expected.unwrap_or_default()
                )
            }
            TargetCommandEnd::Signalled(signal) => {
                format!("{program} on the target was ended by {signal}")
            }
        };
        let evidence = vec![range.evidence()];
        Err(ActionFailure { cause: Cause::CommandFailed, detail, evidence })
    }

    /// Copies a file of this host to the target.
    pub(super) async fn upload(
        &mut self,
        (from, to, mode): (&Path, &str, Option<u32>),
        via: Option<ShellWay>,
        timeout: Duration,
    ) -> Result<String, ActionFailure> {
        let limit = BoardTimeout::new(&self.board, timeout);
        let copied = match self.shell_way(via)? {
            ShellWay::Ssh => {
                let board = Arc::clone(&self.board);
                let port = self.shell_port()?;
                limited(&board, limit, COPY, port.upload(from, to, mode)).await?
            }
            ShellWay::Serial => self.upload_serial((from, to, mode), limit).await?,
        };
        let seen = format!("{} bytes to {to}", copied.bytes);
        let (path, file) = (to.to_owned(), from.display().to_string());
        self.board.emit(RunEvent::FileCopied { to_target: true, path, file, copied });
        Ok(seen)
    }

    /// Copies a file of the target into the run.
    pub(super) async fn download(
        &mut self,
        from: &str,
        to: &str,
        via: Option<ShellWay>,
        timeout: Duration,
    ) -> Result<String, ActionFailure> {
        let limit = BoardTimeout::new(&self.board, timeout);
        self.commands += 1;
        let name = format!("file-{}-{}-{to}", self.attempt, self.commands);
        let path = self.dir.artefact_path(&name);
        let file = self.dir.relative(&path).unwrap_or(name);
        let copied: CopiedFile = match self.shell_way(via)? {
            ShellWay::Ssh => {
                let board = Arc::clone(&self.board);
                let port = self.shell_port()?;
                limited(&board, limit, COPY, port.download(from, &path)).await?
            }
            ShellWay::Serial => self.download_serial(from, &path, limit).await?,
        };
        let seen = format!("{} bytes to {file}", copied.bytes);
        let path = from.to_owned();
        self.board.emit(RunEvent::FileCopied { to_target: false, path, file, copied });
        Ok(seen)
    }

    /// Reboots the target, and waits until it runs again.
    pub(super) async fn reboot(
        &mut self,
        via: Option<ShellWay>,
        timeout: Duration,
    ) -> Result<String, ActionFailure> {
        let board = Arc::clone(&self.board);
        let limit = BoardTimeout::new(&board, timeout);
        let way = self.shell_way(via)?;
        if way == ShellWay::Ssh {
            // A server that is about to start is waited for.
            self.shell_port()?;
        }
        let before = self.boot_id(way, limit).await?;
        match way {
            ShellWay::Ssh => {
                let port = self.shell_port()?;
                limited(&board, limit, (Cause::RebootFailed, "the reboot"), port.reboot()).await?;
            }
            ShellWay::Serial => self.reboot_serial(limit).await?,
        }
        let shown = self.protocols.control.is_some()
            || (self.profile.boot_banner.is_some() && !self.is_of_commands(&board.primary));
        if shown {
            let part = limit.part(&board, timeout);
            let shown = self.expect_reset(None, None, part).await;
            shown.map_err(|failure| match failure.cause {
                Cause::ExpectMissed => ActionFailure { cause: Cause::RebootFailed, ..failure },
                _ => failure,
            })?;
        }
        let mut why = "it still answers from the boot before".to_owned();
        loop {
            let asked = Instant::now();
            if let Some(port) = self.protocols.shell.as_deref_mut() {
                port.ready_within(PROBE);
            }
            match self.boot_id(way, limit).await {
                Ok(now) if now != before => break,
                Ok(_) => {}
                // The end of the time says less than what was seen before.
                Err(failure) if is_away(failure.cause) => {
                    if !limit.is_over(&board) {
                        why = failure.detail;
                    }
                }
                Err(failure) => return Err(failure),
            }
            if limit.is_over(&board) {
                let detail =
                    format!("the target did not come back within {timeout:?} of its reboot: {why}");
                let failure = ActionFailure::new(Cause::RebootFailed, detail);
                return Err(limit.judged(&board, failure));
            }
            let next = (asked + PAUSE).min(limit.until(&board));
            tokio::select! {
                biased;
                failure = abort_condition(&board) => return Err(failure),
                () = sleep_until(next) => {}
            }
        }
        if !shown {
            board.claim_reset();
            board.drained().await;
            let ends = board.lines.keys().map(|name| (name.clone(), end_of(&board, name)));
            let boot = ends.collect();
            board.begin_boot_at(boot);
        }
        Ok("rebooted".to_owned())
    }

    async fn boot_id(
        &mut self,
        way: ShellWay,
        limit: BoardTimeout,
    ) -> Result<String, ActionFailure> {
        match way {
            ShellWay::Ssh => {
                let board = Arc::clone(&self.board);
                let port = self.shell_port_as_is()?;
                limited(
                    &board,
                    limit,
                    (Cause::RebootFailed, "the question for the boot"),
                    port.boot_id(),
                )
                .await
            }
            ShellWay::Serial => self.boot_id_serial(limit).await,
        }
    }

    /// Returns the way that a command takes.
    fn shell_way(&self, via: Option<ShellWay>) -> Result<ShellWay, ActionFailure> {
        let shell = self.shell.as_ref();
        shell.and_then(|shell| shell.way(via)).ok_or_else(|| {
            let way = via.map(|way| format!(" over {way}")).unwrap_or_default();
            let detail = format!(
                "this place does not reach a shell of its board{way} (add `host` or `prompt` to \
                 [place.shell])"
            );
            ActionFailure::new(Cause::ShellRefused, detail)
        })
    }

    fn command_console(&self) -> Result<ConsoleName, ActionFailure> {
        let access = self.shell.as_ref().and_then(|shell| shell.ssh.as_ref());
        let console = access.map(|access| access.console.clone());
        console.ok_or_else(|| ActionFailure::new(Cause::ShellRefused, "there is no SSH access"))
    }

    /// Tells whether a console has the output of commands.
    pub(super) fn is_of_commands(&self, console: &ConsoleName) -> bool {
        self.command_console().is_ok_and(|name| name == *console)
    }

    /// Returns the driver of the shell, which waits for a server that is about to start.
    fn shell_port(&mut self) -> Result<&mut dyn ShellPort, ActionFailure> {
        let booted = self.board.boots() > 0;
        let port = self.shell_port_as_is()?;
        if booted {
            port.ready_within(BOOTING);
        }
        Ok(port)
    }

    fn shell_port_as_is(&mut self) -> Result<&mut dyn ShellPort, ActionFailure> {
        let access = self.shell.as_ref().and_then(|shell| shell.ssh.as_ref());
        let address = match access.map(|access| &access.host) {
            Some(SshHost::Forwarded(port)) => self.board.facts().forwards.get(port).cloned(),
            _ => None,
        };
        let Some(port) = self.protocols.shell.as_deref_mut() else {
            return Err(ActionFailure::new(Cause::ShellRefused, "the place has no SSH driver"));
        };
        if let Some(address) = address {
            port.forwarded(&address);
        }
        Ok(port)
    }
}

/// Tells whether a target that reboots may fail so for a while.
fn is_away(cause: Cause) -> bool {
    matches!(cause, Cause::ShellUnreachable | Cause::ShellLost | Cause::Hang | Cause::RebootFailed)
}

/// Returns the length of a console's log.
pub(super) fn end_of(board: &AttemptBoard, console: &ConsoleName) -> u64 {
    board.lines.get(console).map_or(0, |line| line.handle.state().borrow().len)
}
