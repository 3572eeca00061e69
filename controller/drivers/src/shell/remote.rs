//! A target's shell over SSH.
//!
//! # Design
//! *Each command has a connection of its own.* A target may reboot, change its keys or lose its network
//! at any time, and a connection that is kept would have to be distrusted before each command. A
//! connection costs 60 to 100 ms.
//!
//! *Why a connection ended is asked of the target.* Each command of a POSIX shell tells the boot it runs
//! in. If its connection is lost, the target is asked again for that: another boot is a reboot in the
//! middle, which is the target's; the same boot is a network that was lost.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jig_model::ConsoleName;
use jig_model::protocol::{
    BoxFuture, CopiedFile, DriverError, SharedSink, ShellPort, TargetCommandEnd,
};
use jig_model::shell::{HostKeyCheck, ShellKind, SshAccess, SshHost, TargetShell};
use sha2::{Digest as _, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep};

use super::console::{ShellOutput, shell_console};
use super::decode::OutputDecoder;
use super::error::ShellError;
use super::scripts::{self, ScriptAnswer};
use crate::ssh::{RemoteLine, SshAccount, SshEnding, SshError, SshOptions, SshPipe, SshTarget};

/// How long a target may say nothing before it is asked for an answer; after four times as long the
/// connection counts as lost. A board is on the next desk.
const ALIVE: Duration = Duration::from_secs(5);

/// How long a target is waited for whose connection was lost, to learn why: a Linux board boots in less.
const BACK: Duration = Duration::from_secs(60);

/// Pause between two connections to a server that does not answer: short against the time in which a
/// server starts.
const PAUSE: Duration = Duration::from_millis(200);

/// Longest boot id, and the like, that is read.
const SHORT: usize = 4 << 10;

/// Commands a target over SSH.
pub(super) struct SshShell {
    pub(super) shell: TargetShell,
    pub(super) access: SshAccess,
    pub(super) account: SshAccount,
    pub(super) sink: SharedSink,
    /// Where a forwarded port is reached.
    pub(super) address: Option<String>,
    /// How long a server is waited for.
    pub(super) ready_within: Duration,
    /// The console's other end, from the first command on.
    pub(super) output: Option<ShellOutput>,
}

/// How a script ended, and all that it has told.
struct ScriptEnd {
    ending: SshEnding,
    answer: ScriptAnswer,
}

impl SshShell {
    /// Attaches the console before its first byte.
    fn output(&mut self) -> &ShellOutput {
        let console: &ConsoleName = &self.access.console;
        let sink = &self.sink;
        self.output.get_or_insert_with(|| {
            let (output, transport) = shell_console();
            sink.attach(console, Box::new(transport));
            output
        })
    }

    fn is_forwarded(&self) -> bool {
        matches!(self.access.host, SshHost::Forwarded(_))
    }

    fn target(&self) -> Result<SshTarget, ShellError> {
        let at = match &self.access.host {
            SshHost::Named { host, port } if host.contains(':') && !host.starts_with('[') => {
                format!("[{host}]:{port}")
            }
            SshHost::Named { host, port } => format!("{host}:{port}"),
            SshHost::Forwarded(port) => {
                self.address.clone().ok_or_else(|| ShellError::NotForwarded(port.clone()))?
            }
        };
        let user = self.access.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        let target: Result<SshTarget, _> = format!("ssh://{user}{at}").parse();
        target.map_err(|source| ShellError::Address { at, source })
    }

    fn options(&self) -> Result<SshOptions, ShellError> {
        let home = |path: &PathBuf| match path.strip_prefix("~") {
            Ok(rest) => self.account.home.join(rest),
            Err(_) => path.clone(),
        };
        let mut options = SshOptions::new(self.target()?, Vec::new(), self.account.clone());
        options.identities = self.access.identity.iter().map(home).collect();
        options.known_hosts = self.access.known_hosts.iter().map(home).collect();
        options.accept_new = self.access.host_key == HostKeyCheck::AcceptNew;
        options.any_host_key = self.access.host_key == HostKeyCheck::Any;
        options.keepalive = Some(ALIVE);
        Ok(options)
    }

    /// Starts a script, as soon as the server answers.
    async fn start(
        &self,
        line: String,
        program: &str,
        merged: bool,
    ) -> Result<SshPipe, ShellError> {
        let options = self.options()?;
        let until = Instant::now() + self.ready_within;
        loop {
            let line = RemoteLine { line: line.clone(), program: program.to_owned(), merged };
            match SshPipe::open_line(options.clone(), line).await {
                Ok(pipe) => return Ok(pipe),
                Err(error) if error.may_pass() && Instant::now() < until => sleep(PAUSE).await,
                Err(error) => return Err(ShellError::connecting(error)),
            }
        }
    }

    async fn end(mut pipe: SshPipe) -> ScriptEnd {
        let end = pipe.ended().await;
        ScriptEnd { answer: ScriptAnswer::read(&end.stderr), ending: end.ending }
    }

    /// Says why a connection was lost.
    async fn lost(&mut self, program: &str, boot: Option<String>, source: SshError) -> ShellError {
        let program = program.to_owned();
        let until = Instant::now() + BACK;
        let mut answers = false;
        // Each question fails by itself, so that the wait ends in time.
        let ready_within = std::mem::take(&mut self.ready_within);
        while Instant::now() < until {
            if let Ok(now) = self.ask_boot_id().await {
                answers = true;
                // A system that goes down may answer until its network does.
                if boot.as_ref().is_some_and(|boot| *boot != now) {
                    self.ready_within = ready_within;
                    return ShellError::Rebooted { program };
                }
                break;
            }
            sleep(PAUSE).await;
        }
        self.ready_within = ready_within;
        ShellError::Lost {
            program,
            answers,
            forwarded: self.is_forwarded(),
            source: Box::new(source),
        }
    }

    async fn ask_boot_id(&mut self) -> Result<String, ShellError> {
        const WHAT: &str = "the boot id";
        let line = scripts::boot_id(self.shell.kind)?;
        let mut pipe = self.start(line, WHAT, false).await?;
        let _ = pipe.shutdown().await;
        let mut text = Vec::new();
        let _ = (&mut pipe).take(SHORT as u64).read_to_end(&mut text).await;
        match Self::end(pipe).await.ending {
            SshEnding::Lost(source) => Err(ShellError::Unreachable { source }),
            SshEnding::Exited(_) | SshEnding::Signalled(_) => {
                let text = String::from_utf8_lossy(&text).trim().to_owned();
                let none = || ShellError::NoBootId { program: WHAT };
                Some(text).filter(|text| !text.is_empty()).ok_or_else(none)
            }
        }
    }

    async fn run(&mut self, argv: &[String]) -> Result<TargetCommandEnd, ShellError> {
        let line = scripts::exec(self.shell.kind, argv)?;
        let program = argv.first().map_or("", String::as_str);
        // A POSIX shell joins both itself, and tells of boot and status on standard error.
        let told = self.shell.kind == ShellKind::Sh;
        let mut pipe = self.start(line, program, !told).await?;
        // The command has no input. The script ends it where the input of the script ends.
        if !told {
            let _ = pipe.shutdown().await;
        }
        let mut decoder = OutputDecoder::new(self.shell.encoding);
        let output = self.output();
        let mut buf = vec![0; 16 << 10];
        // What a read fails with is told by the end, too.
        while let Ok(count) = pipe.read(&mut buf).await
            && count > 0
        {
            output.write(&decoder.decode(&buf[..count], false)).await;
        }
        output.write(&decoder.decode(&[], true)).await;
        let _ = pipe.shutdown().await;
        let ScriptEnd { ending, answer } = Self::end(pipe).await;
        match ending {
            SshEnding::Lost(source) => Err(self.lost(program, answer.boot, source).await),
            SshEnding::Signalled(signal) => Ok(TargetCommandEnd::Signalled(signal)),
            SshEnding::Exited(_) if told => match answer.status {
                Some(status) => Ok(TargetCommandEnd::Exited(status)),
                // A system that reboots ends its sessions before its network.
                None => {
                    let source = SshError::Refused { at: self.target()?.to_string() };
                    match self.lost(program, answer.boot, source).await {
                        ShellError::Rebooted { program } => Err(ShellError::Rebooted { program }),
                        _ => Err(ShellError::NoStatus { program: program.to_owned() }),
                    }
                }
            },
            SshEnding::Exited(status) => Ok(TargetCommandEnd::Exited(status)),
        }
    }

    async fn send(
        &mut self,
        from: &Path,
        to: &str,
        mode: Option<u32>,
    ) -> Result<CopiedFile, ShellError> {
        let local = |source| ShellError::Local { what: "read", path: from.to_owned(), source };
        let mut file = File::open(from).await.map_err(local)?;
        let meta = file.metadata().await.map_err(local)?;
        if !meta.is_file() {
            return Err(local(std::io::Error::other("it is no file")));
        }
        use std::os::unix::fs::PermissionsExt as _;
        let mode = mode.unwrap_or(meta.permissions().mode() & 0o777);
        let name = from.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let line = scripts::upload(self.shell.kind, (to, &name), mode)?;
        let mut pipe = self.start(line, "the copy", false).await?;
        let (mut hash, mut bytes) = (Sha256::new(), 0);
        let mut buf = vec![0; 64 << 10];
        loop {
            let count = file.read(&mut buf).await.map_err(local)?;
            if count == 0 {
                break;
            }
            hash.update(&buf[..count]);
            bytes += count as u64;
            // A script that has failed reads no more; its end says why.
            if pipe.write_all(&buf[..count]).await.is_err() {
                break;
            }
        }
        let _ = pipe.shutdown().await;
        let _ = tokio::io::copy(&mut (&mut pipe).take(SHORT as u64), &mut tokio::io::sink()).await;
        let ScriptEnd { ending, answer } = Self::end(pipe).await;
        let sent = hex(hash);
        let (path, said) = (to.to_owned(), answer.last_line.clone());
        match (ending, &answer.sha256) {
            (SshEnding::Lost(source), _) => Err(self.lost("the copy", None, source).await),
            (_, Some(found)) if *found == sent => Ok(CopiedFile { bytes, sha256: sent }),
            (_, Some(found)) => Err(ShellError::Differs { path, found: found.clone(), sent }),
            (SshEnding::Exited(status), None) if answer.has_no_room(status) => {
                Err(ShellError::NoRoom { path, said })
            }
            (SshEnding::Exited(_) | SshEnding::Signalled(_), None) => {
                Err(ShellError::File { what: "write", path, said })
            }
        }
    }

    async fn fetch(&mut self, from: &str, to: &Path) -> Result<CopiedFile, ShellError> {
        let local = |source| ShellError::Local { what: "write", path: to.to_owned(), source };
        let line = scripts::download(self.shell.kind, from)?;
        let mut pipe = self.start(line, "the copy", false).await?;
        let _ = pipe.shutdown().await;
        let mut file = File::create_new(to).await.map_err(local)?;
        let (mut hash, mut bytes) = (Sha256::new(), 0);
        let mut buf = vec![0; 64 << 10];
        while let Ok(count) = pipe.read(&mut buf).await
            && count > 0
        {
            hash.update(&buf[..count]);
            bytes += count as u64;
            file.write_all(&buf[..count]).await.map_err(local)?;
        }
        file.flush().await.map_err(local)?;
        let ScriptEnd { ending, answer } = Self::end(pipe).await;
        match ending {
            SshEnding::Lost(source) => Err(self.lost("the copy", None, source).await),
            _ if answer.status == Some(0) => Ok(CopiedFile { bytes, sha256: hex(hash) }),
            SshEnding::Exited(_) | SshEnding::Signalled(_) => {
                let (path, said) = (from.to_owned(), answer.last_line);
                Err(ShellError::File { what: "read", path, said })
            }
        }
    }

    async fn ask_reboot(&mut self) -> Result<(), ShellError> {
        let line = scripts::exec_detached(self.shell.kind, &self.shell.reboot)?;
        let mut pipe = self.start(line, "the reboot", false).await?;
        let _ = pipe.shutdown().await;
        let mut text = Vec::new();
        let _ = (&mut pipe).take(SHORT as u64).read_to_end(&mut text).await;
        let ScriptEnd { ending, answer } = Self::end(pipe).await;
        let status = match ending {
            SshEnding::Exited(status) => answer.status.unwrap_or(status),
            // It has gone.
            SshEnding::Lost(_) | SshEnding::Signalled(_) => 0,
        };
        match status {
            0 => Ok(()),
            status => {
                let text = String::from_utf8_lossy(&text).trim().to_owned();
                Err(ShellError::RebootRefused { status, text })
            }
        }
    }
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl ShellPort for SshShell {
    fn forwarded(&mut self, address: &str) {
        self.address = Some(address.to_owned());
    }

    fn ready_within(&mut self, time: Duration) {
        self.ready_within = time;
    }

    fn exec<'a>(
        &'a mut self,
        argv: &'a [String],
    ) -> BoxFuture<'a, Result<TargetCommandEnd, DriverError>> {
        Box::pin(async move { Ok(self.run(argv).await?) })
    }

    fn upload<'a>(
        &'a mut self,
        from: &'a Path,
        to: &'a str,
        mode: Option<u32>,
    ) -> BoxFuture<'a, Result<CopiedFile, DriverError>> {
        Box::pin(async move { Ok(self.send(from, to, mode).await?) })
    }

    fn download<'a>(
        &'a mut self,
        from: &'a str,
        to: &'a Path,
    ) -> BoxFuture<'a, Result<CopiedFile, DriverError>> {
        Box::pin(async move { Ok(self.fetch(from, to).await?) })
    }

    fn boot_id(&mut self) -> BoxFuture<'_, Result<String, DriverError>> {
        Box::pin(async { Ok(self.ask_boot_id().await?) })
    }

    fn reboot(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async { Ok(self.ask_reboot().await?) })
    }
}
