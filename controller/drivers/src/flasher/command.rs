//! One run of a flasher, from the fork to the verdict on it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jig_model::Cause;
use jig_model::event::BoardEvent;
use jig_model::flasher::InstallHint;
use jig_model::image::{DeployReport, Image};
use jig_model::profile::{Deploy, DeployPart, FlashCommand};
use jig_model::protocol::{
    BindContext, BoxFuture, DriverError, Flasher, PartFactory, ProcessLedger, Protocols, SharedSink,
};
use jig_model::rig_file::CaptureClient;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::AccessFlags;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use super::arguments::{FlasherFill, arguments};
use super::error::{FlasherError, LastWords, PortFault};
use super::made::make_files;
use super::output::{FlasherOutput, OutputJudge};
use super::touch::{boot_loader_port, host_roots, kept_port};
use super::volume::VolumeFlasher;
use crate::discover::Roots;
use crate::process::{Ending, ManagedProcess, SpawnError, SpawnRequest};
use crate::serial::capture_service::release_port;

/// How long a flasher may take to end after it was asked to: enough to let go of a probe in
/// order, so that the next one can attach.
const GRACE: Duration = Duration::from_secs(2);

/// How long the output may stay open after the flasher has ended. The process group is gone
/// by then; only a child that left the group can hold the pipe, and it has nothing to say.
const REST: Duration = Duration::from_millis(500);

/// Most percentages that are passed on: a hostile or broken flasher must not flood the
/// event log.
const MAX_PROGRESS: u32 = 1000;

/// Flashes a board with a program of its own.
pub struct CommandFlasher {
    command: FlashCommand,
    fill: FlasherFill,
    sink: SharedSink,
    evidence: PathBuf,
    ledger: Arc<dyn ProcessLedger>,
    /// The capture service that may hold the port that the program opens, and that port.
    kept: Option<(CaptureClient, String)>,
    /// Where the port of a boot loader is looked for.
    pub(super) roots: Roots,
    /// How often it was run; numbers the logs.
    runs: u32,
}

/// Adds the flasher of a board that a program or a copy to a volume flashes, as its place or its
/// profile says.
pub struct CommandFlasherFactory;

impl PartFactory for CommandFlasherFactory {
    fn join(&self, context: &BindContext, mut built: Protocols) -> Result<Protocols, DriverError> {
        match context.profile.deploy_at(&context.place) {
            Some(Deploy::Command(command)) => {
                built.flasher = Some(Box::new(CommandFlasher::new(command, context)));
            }
            Some(Deploy::Volume(copy)) => {
                built.flasher = Some(Box::new(VolumeFlasher::new(copy, context)));
            }
            _ => {}
        }
        Ok(built)
    }
}

impl CommandFlasher {
    /// Builds a flasher for a place. Touches nothing yet.
    pub fn new(command: FlashCommand, context: &BindContext) -> Self {
        Self {
            command,
            fill: FlasherFill::of(&context.place, &context.profile),
            sink: Arc::clone(&context.sink),
            evidence: context.evidence.clone(),
            ledger: Arc::clone(&context.ledger),
            kept: kept_port(&context.place),
            roots: host_roots(),
            runs: 0,
        }
    }

    fn program(&self) -> &str {
        self.command.program()
    }

    async fn flash(&mut self, image: &Image) -> Result<DeployReport, FlasherError> {
        let began = Instant::now();
        let judge = OutputJudge::of(&self.command)?;
        self.command.takes(image.format.kind()).map_err(FlasherError::Format)?;
        // The program is started in another folder than that of the user.
        let path = std::path::absolute(&image.path).unwrap_or_else(|_| image.path.clone());
        let image = &Image { path, ..image.clone() };
        self.runs += 1;
        let make = |fill: &FlasherFill| -> Result<_, FlasherError> {
            let made = make_files(&self.command, image, fill, &self.evidence, self.runs)?;
            Ok(arguments(&self.command.argv, image, fill, &made)?)
        };
        let args = make(&self.fill)?;
        let log = format!("flasher-{}.log", self.runs);
        let path = self.evidence.join(&log);
        let unwritten = |source| FlasherError::Log { path: path.clone(), source };
        let mut output = FlasherOutput::new(judge, open_log(&path).map_err(unwritten)?);
        let _closed = match &self.kept {
            Some((client, port)) => release_port(client, port).await.map_err(|source| {
                let (port, program) = (port.clone(), self.program().to_owned());
                FlasherError::Port { port, program, source }
            })?,
            None => None,
        };
        let args = match (self.command.touch, &self.fill.port) {
            (Some(limit), Some(port)) => {
                let port = Some(boot_loader_port(&self.roots, port, limit).await?);
                make(&FlasherFill { port, ..self.fill.clone() })?
            }
            _ => args,
        };
        let (mut process, mut pipe) = self.start(args).await?;
        let mut told = 0;
        let mut progress = |percent| {
            told += 1;
            if told <= MAX_PROGRESS {
                self.sink.event(BoardEvent::Deploying { percent });
            }
        };
        let idle = self.command.idle_timeout;
        let followed = follow(&mut process, &mut pipe, &mut output, &mut progress, idle);
        let followed = timeout(self.command.timeout, followed).await;
        let end = followed.unwrap_or(Ok(FlasherEnd::TimedOut));
        if !matches!(end, Ok(FlasherEnd::Ended(_))) {
            process.stop(GRACE).await;
        }
        let end = end.map_err(unwritten)?;
        let question = output.question();
        output.end(&mut progress).map_err(unwritten)?;
        self.judge(end, question, &output, log)?;
        Ok(DeployReport {
            method: self.program().to_owned(),
            image: image.name.clone(),
            sha256: image.sha256.clone(),
            build_id: image.build_id.clone(),
            bytes: image.payload_bytes,
            verified: output.verified,
            duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..DeployReport::default()
        })
    }

    async fn start(&self, args: Vec<OsString>) -> Result<(ManagedProcess, Receiver), FlasherError> {
        let failed = |source| FlasherError::Pipe { program: self.program().to_owned(), source };
        let (near, far) = pipe().map_err(failed)?;
        let far = File::from(far);
        let mut args = args.into_iter();
        let request = SpawnRequest {
            program: args.next().unwrap_or_default(),
            args: args.collect(),
            cwd: Some(self.evidence.clone()),
            stdin: None,
            stdout: Some(far.try_clone().map_err(failed)?),
            stderr: Some(far),
            inherit: Vec::new(),
            exits_for_target: false,
            env: self.command.preset.is_some().then(plain_language),
            ends_itself: false,
            what: self.program().to_owned(),
        };
        tracing::debug!(program = self.program(), args = ?request.args, "flashing");
        let near = Receiver::from_owned_fd(near).map_err(failed)?;
        let process = ManagedProcess::spawn(request, Arc::clone(&self.ledger)).await;
        Ok((process.map_err(|error| self.not_started(error))?, near))
    }

    /// Adds the command that installs a program to an error that says that it is missing.
    fn not_started(&self, error: SpawnError) -> FlasherError {
        let install = self.command.install.as_ref().and_then(InstallHint::command);
        match (error, install) {
            (SpawnError::NotFound { program }, Some(install)) => {
                FlasherError::NotInstalled { program, install }
            }
            (error, _) => FlasherError::Start(error),
        }
    }

    /// Says why a flasher did not flash, if so.
    pub(super) fn judge(
        &self,
        end: FlasherEnd,
        question: Option<String>,
        output: &FlasherOutput,
        log: String,
    ) -> Result<(), FlasherError> {
        let Some(error) = self.failed(end, question, output, log.clone()) else { return Ok(()) };
        let known = output.known.as_ref().and_then(|(index, line)| {
            Some((self.command.known_failures.get(*index)?, line.clone()))
        });
        let Some((known, line)) = known else { return Err(error) };
        // A boot loader that does not answer at a port that cannot be opened was never asked: not every
        // program tells one from the other.
        if known.cause == Cause::TargetUnresponsive
            && let Some((port, fault)) = self.port_fault()
        {
            return Err(FlasherError::NoPort {
                program: self.program().to_owned(),
                port,
                fault,
                line: line.into(),
                log,
                source: Box::new(error),
            });
        }
        let FlasherFill { serial, port, chip } = &self.fill;
        Err(FlasherError::Known {
            program: self.program().to_owned(),
            cause: known.cause,
            why: known.why.clone(),
            line: line.into(),
            help: known.help_for(port.as_deref(), serial.as_deref(), chip.as_deref()).into(),
            log,
            source: Box::new(error),
        })
    }

    /// Says why this user cannot open the port that the program was told, if so.
    fn port_fault(&self) -> Option<(String, PortFault)> {
        let told = [DeployPart::Port, DeployPart::PortIfAny];
        let port = self.fill.port.as_ref();
        let port = port.filter(|_| told.iter().any(|part| self.command.uses(part)))?;
        let access = nix::unistd::access(port.as_str(), AccessFlags::R_OK | AccessFlags::W_OK);
        let fault = match access.err()? {
            Errno::ENOENT | Errno::ENOTDIR => PortFault::Missing,
            Errno::EACCES | Errno::EPERM => PortFault::Forbidden,
            _ => return None,
        };
        Some((port.clone(), fault))
    }

    /// Says how a flasher failed, if it did, as far as its end and its output tell by themselves.
    fn failed(
        &self,
        end: FlasherEnd,
        question: Option<String>,
        output: &FlasherOutput,
        log: String,
    ) -> Option<FlasherError> {
        let program = self.program().to_owned();
        let said = LastWords { words: output.last_words(), log: log.clone() };
        Some(match (end, question) {
            (FlasherEnd::Idle | FlasherEnd::TimedOut, Some(question)) => {
                FlasherError::Asks { program, question, log }
            }
            (FlasherEnd::Idle, None) => {
                let idle = self.command.idle_timeout.unwrap_or(self.command.timeout);
                FlasherError::Idle { program, idle, said }
            }
            (FlasherEnd::TimedOut, None) => {
                FlasherError::TimedOut { program, timeout: self.command.timeout, said }
            }
            (FlasherEnd::Ended(Ending::Signalled(signal)), _) => {
                FlasherError::Signalled { program, signal, said }
            }
            (FlasherEnd::Ended(Ending::Exited(code)), _)
                if !self.command.success_codes.contains(&code) =>
            {
                FlasherError::Exited { program, code, said }
            }
            (FlasherEnd::Ended(Ending::Exited(code)), _) => {
                match (&output.failure, &self.command.success_pattern) {
                    (Some((line, pattern)), _) => {
                        let (line, pattern) = (line.clone(), pattern.clone());
                        FlasherError::Said { program, code, line, pattern }
                    }
                    (None, Some(pattern)) if !output.succeeded => FlasherError::NoSuccess {
                        program,
                        code,
                        pattern: pattern.to_string(),
                        said,
                    },
                    (None, _) => return None,
                }
            }
        })
    }
}

/// How following a flasher ended.
#[derive(Debug, Clone, Copy)]
pub(super) enum FlasherEnd {
    /// It has ended.
    Ended(Ending),
    /// It printed nothing for too long.
    Idle,
    /// It took too long.
    TimedOut,
}

impl Flasher for CommandFlasher {
    fn deploy<'a>(
        &'a mut self,
        image: &'a Image,
    ) -> BoxFuture<'a, Result<DeployReport, DriverError>> {
        Box::pin(async { Ok(self.flash(image).await?) })
    }
}

/// Reads what the flasher says until it has ended and said all, or has said nothing for too long.
async fn follow(
    process: &mut ManagedProcess,
    pipe: &mut Receiver,
    output: &mut FlasherOutput,
    progress: &mut impl FnMut(u8),
    idle: Option<Duration>,
) -> io::Result<FlasherEnd> {
    let mut bytes = vec![0; 16 << 10];
    let ending = loop {
        // Begins anew with each read.
        let silence = async {
            match idle {
                Some(idle) => tokio::time::sleep(idle).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            read = pipe.read(&mut bytes) => match read? {
                // It closed its output, which says nothing of its end.
                0 => break process.ended().await,
                len => output.take(&bytes[..len], &mut *progress)?,
            },
            ending = process.ended() => {
                let rest = async {
                    loop {
                        match pipe.read(&mut bytes).await? {
                            0 => return io::Result::Ok(()),
                            len => output.take(&bytes[..len], &mut *progress)?,
                        }
                    }
                };
                if let Ok(read) = timeout(REST, rest).await {
                    read?;
                }
                break ending;
            }
            () = silence => return Ok(FlasherEnd::Idle),
        }
    };
    Ok(FlasherEnd::Ended(ending))
}

/// Returns the environment of this process with messages in English, which the words of the presets
/// are. A program of the user's own speaks as it does in the user's terminal.
fn plain_language() -> Vec<(OsString, OsString)> {
    let own = std::env::vars_os().filter(|(name, _)| name != "LC_ALL" && name != "LANGUAGE");
    own.chain([("LC_ALL".into(), "C.UTF-8".into())]).collect()
}

/// Makes a pipe whose ends no other child inherits.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(nix::unistd::pipe2(OFlag::O_CLOEXEC)?)
}

fn open_log(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).open(path)
}
