//! One run of a flasher, from the fork to the verdict on it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jig_model::event::BoardEvent;
use jig_model::image::{DeployReport, Image};
use jig_model::profile::{Deploy, FlashCommand};
use jig_model::protocol::{
    BindContext, BoxFuture, DriverError, Flasher, PartFactory, ProcessLedger, Protocols, SharedSink,
};
use jig_model::rig_file::{CaptureClient, Place};
use nix::fcntl::OFlag;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use super::arguments::{FlasherFill, arguments};
use super::error::{FlasherError, LastWords};
use super::output::{FlasherOutput, OutputJudge};
use crate::process::{Ending, ManagedProcess, SpawnRequest};
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
    /// How often it was run; numbers the logs.
    runs: u32,
}

/// Adds the flasher of a board that a program flashes, as its place or its profile says.
pub struct CommandFlasherFactory;

impl PartFactory for CommandFlasherFactory {
    fn join(&self, context: &BindContext, mut built: Protocols) -> Result<Protocols, DriverError> {
        if let Some(Deploy::Command(command)) = context.profile.deploy_at(&context.place) {
            built.flasher = Some(Box::new(CommandFlasher::new(command, context)));
        }
        Ok(built)
    }
}

/// Returns the port that a flasher is told, and the capture service that may hold it as a console
/// of the place.
fn kept_port(place: &Place) -> Option<(CaptureClient, String)> {
    let client = place.consoles.iter().find_map(|console| console.capture.clone())?;
    Some((client, place.flasher_port()?.to_owned()))
}

impl CommandFlasher {
    /// Builds a flasher for a place. Touches nothing yet.
    pub fn new(command: FlashCommand, context: &BindContext) -> Self {
        Self {
            command,
            fill: FlasherFill::of(&context.place),
            sink: Arc::clone(&context.sink),
            evidence: context.evidence.clone(),
            ledger: Arc::clone(&context.ledger),
            kept: kept_port(&context.place),
            runs: 0,
        }
    }

    fn program(&self) -> &str {
        self.command.argv.first().map_or("", String::as_str)
    }

    async fn flash(&mut self, image: &Image) -> Result<DeployReport, FlasherError> {
        let began = Instant::now();
        let args = arguments(&self.command.argv, image, &self.fill)?;
        let judge = OutputJudge::of(&self.command)?;
        self.runs += 1;
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
        let (mut process, mut pipe) = self.start(args).await?;
        let mut told = 0;
        let mut progress = |percent| {
            told += 1;
            if told <= MAX_PROGRESS {
                self.sink.event(BoardEvent::Deploying { percent });
            }
        };
        let followed = follow(&mut process, &mut pipe, &mut output, &mut progress);
        let followed = timeout(self.command.timeout, followed).await;
        if !matches!(followed, Ok(Ok(_))) {
            process.stop(GRACE).await;
        }
        output.end(&mut progress).map_err(unwritten)?;
        let ending = followed.ok().transpose().map_err(unwritten)?;
        self.judge(ending, &output, log)?;
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

    async fn start(
        &self,
        args: Vec<std::ffi::OsString>,
    ) -> Result<(ManagedProcess, Receiver), FlasherError> {
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
            env: None,
            ends_itself: false,
            what: self.program().to_owned(),
        };
        tracing::debug!(program = self.program(), args = ?request.args, "flashing");
        let near = Receiver::from_owned_fd(near).map_err(failed)?;
        let process = ManagedProcess::spawn(request, Arc::clone(&self.ledger)).await?;
        Ok((process, near))
    }

    /// Says why a flasher that has ended did not flash, if so. No ending means that its time
    /// was over.
    fn judge(
        &self,
        ending: Option<Ending>,
        output: &FlasherOutput,
        log: String,
    ) -> Result<(), FlasherError> {
        let program = self.program().to_owned();
        let said = LastWords { words: output.last_words(), log };
        Err(match ending {
            None => FlasherError::TimedOut { program, timeout: self.command.timeout, said },
            Some(Ending::Signalled(signal)) => FlasherError::Signalled { program, signal, said },
            Some(Ending::Exited(code)) if !self.command.success_codes.contains(&code) => {
                FlasherError::Exited { program, code, said }
            }
            Some(Ending::Exited(code)) => match output.failure.clone() {
                None => return Ok(()),
                Some((line, pattern)) => FlasherError::Said { program, code, line, pattern },
            },
        })
    }
}

impl Flasher for CommandFlasher {
    fn deploy<'a>(
        &'a mut self,
        image: &'a Image,
    ) -> BoxFuture<'a, Result<DeployReport, DriverError>> {
        Box::pin(async { Ok(self.flash(image).await?) })
    }
}

/// Reads what the flasher says until it has ended and said all.
async fn follow(
    process: &mut ManagedProcess,
    pipe: &mut Receiver,
    output: &mut FlasherOutput,
    progress: &mut impl FnMut(u8),
) -> io::Result<Ending> {
    let mut bytes = vec![0; 16 << 10];
    let ending = loop {
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
        }
    };
    Ok(ending)
}

/// Makes a pipe whose ends no other child inherits.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(nix::unistd::pipe2(OFlag::O_CLOEXEC)?)
}

fn open_log(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).open(path)
}
