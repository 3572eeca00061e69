//! Programs that are run to their end on this host, in a sandbox where one is asked for.
//!
//! Owns what a program gets and what it prints. Knows no build, no agent and no git.
//!
//! # Design
//! *A process stands between Jig and each program that is not trusted* ([`serve_order`]), so that whatever the program
//! has started ends with it ([`crate::process`] says what holds where), and so that the
//! restrictions of a sandbox are its own. It ends the program when its socket to Jig ends, thus also
//! when Jig is killed.
//!
//! *Output goes through a pipe, not directly to its file.* The limit is exact, a full disk is
//! noticed, and the program can neither empty its output nor write into it twice.
//!
//! *A program has no terminal*: one that asks for a password there fails at once.
//!
//! *A sandbox inside of a sandbox*: a program in a sandbox can restrict itself further, but makes no
//! mounts, so that tools which need these (bubblewrap, container engines) do not run in one.

mod call_filter;
mod confine;
mod lookup;
mod output;
mod probe;
mod supervisor;
mod wire;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jig_model::program::{ProgramEnd, ProgramError, ProgramRequest, Programs, Sandbox};
use jig_model::protocol::{BoxFuture, NoLedger};
use nix::sys::signal::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use self::lookup::NoProgram;
use self::output::{OutputCopy, OutputStop};
pub use self::supervisor::serve_order;
use self::wire::{Confinement, ProgramOrder, SupervisorOrder, SupervisorReply};
use crate::process::{Ending, ManagedProcess, SpawnRequest};

/// Runs programs on this host.
#[derive(Debug, Clone)]
pub struct HostPrograms {
    jig_program: PathBuf,
}

impl HostPrograms {
    /// Names the `jig` program, which is started as the supervisor of each program.
    pub fn new(jig_program: PathBuf) -> Self {
        Self { jig_program }
    }

    async fn run_program(&self, request: ProgramRequest) -> Result<ProgramEnd, ProgramError> {
        let refused = |source| ProgramError::Refused { what: request.what.clone(), source };
        let program = found(&request)?;
        let (mut out, stdout) =
            OutputCopy::to(&request.stdout, request.most_output).map_err(refused)?;
        let (mut err, stderr) = match &request.stderr {
            Some(path) => {
                let (copy, file) = OutputCopy::to(path, request.most_output).map_err(refused)?;
                (Some(copy), file)
            }
            None => (None, stdout.try_clone().map_err(refused)?),
        };
        let output = (stdout, stderr);
        let mut running = if request.trusted && request.sandbox.is_none() {
            RunningProgram::Trusted(trusted(&request, &program, output).await.map_err(refused)?)
        } else {
            let order = order(&request, &program);
            let supervisor = Supervisor::start(&self.jig_program, Some(output), &order).await;
            RunningProgram::Supervised(supervisor.map_err(refused)?)
        };
        let stopped = {
            let copies = async {
                match &mut err {
                    Some(err) => tokio::try_join!(out.copy(), err.copy()).map(drop),
                    None => out.copy().await,
                }
            };
            tokio::select! {
                biased;
                copied = copies => copied,
                () = running.ended() => Ok(()),
            }
        };
        match stopped {
            Ok(()) => running.ended().await,
            Err(_) => running.end().await,
        }
        // All of it has ended, so what it printed is in the pipes.
        let mut stopped = stopped;
        for copy in [Some(out), err].into_iter().flatten() {
            stopped = stopped.and(copy.finish().await);
        }
        match stopped {
            Err(OutputStop::TooMuch) => return Ok(ProgramEnd::TooMuchOutput),
            Err(OutputStop::Failed(source)) => return Err(refused(source)),
            Ok(()) => {}
        }
        match running {
            RunningProgram::Supervised(mut supervisor) => {
                end_of(supervisor.reply().await.map_err(refused)?, &request)
            }
            RunningProgram::Trusted(mut process) => Ok(match process.ended().await {
                Ending::Exited(code) => ProgramEnd::Exited(code),
                Ending::Signalled(signal) => ProgramEnd::Signalled(signal as i32),
            }),
        }
    }
}

impl Programs for HostPrograms {
    fn run(&self, request: ProgramRequest) -> BoxFuture<'_, Result<ProgramEnd, ProgramError>> {
        Box::pin(self.run_program(request))
    }

    fn sandbox_gap(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async {
            let probed = async {
                let mut supervisor =
                    Supervisor::start(&self.jig_program, None, &SupervisorOrder::Probe).await?;
                supervisor.ended().await;
                supervisor.reply().await
            };
            match probed.await {
                Ok(SupervisorReply::Probed(gap)) => gap,
                Ok(other) => Some(format!("the probe of the sandbox was answered by {other:?}")),
                Err(error) => Some(format!("probe the sandbox: {error}")),
            }
        })
    }
}

/// Finds the program and its folder.
fn found(request: &ProgramRequest) -> Result<PathBuf, ProgramError> {
    let refused = |kind, why: String| {
        let (what, source) = (request.what.clone(), io::Error::new(kind, why));
        ProgramError::Refused { what, source }
    };
    if !request.cwd.is_dir() {
        let why = format!("there is no folder {}", request.cwd.display());
        return Err(refused(io::ErrorKind::NotFound, why));
    }
    lookup::find(&request.program, &request.cwd, &request.env).map_err(|error| match error {
        NoProgram::Missing(why) => missing(request, why),
        NoProgram::NotExecutable => {
            let why = format!("{} is not executable", request.program.display());
            refused(io::ErrorKind::PermissionDenied, why)
        }
    })
}

fn missing(request: &ProgramRequest, why: String) -> ProgramError {
    ProgramError::Missing { program: request.program.to_string_lossy().into_owned(), why }
}

fn order(request: &ProgramRequest, program: &Path) -> SupervisorOrder {
    let confinement = |sandbox: &Sandbox| Confinement {
        writable: sandbox.writable.iter().map(|path| request.cwd.join(path).into()).collect(),
        network: sandbox.network,
    };
    SupervisorOrder::Run(ProgramOrder {
        program: program.into(),
        name: request.program.clone(),
        args: request.args.clone(),
        cwd: request.cwd.clone().into(),
        env: request.env.clone(),
        confinement: request.sandbox.as_ref().map(confinement),
    })
}

fn end_of(reply: SupervisorReply, request: &ProgramRequest) -> Result<ProgramEnd, ProgramError> {
    let refused = |source| ProgramError::Refused { what: request.what.clone(), source };
    let all_ended = |all_ended: bool| {
        if !all_ended {
            tracing::warn!(what = request.what, "a process of another user is left behind");
        }
    };
    match reply {
        SupervisorReply::Exited { code, all_ended: all } => {
            all_ended(all);
            Ok(ProgramEnd::Exited(code))
        }
        SupervisorReply::Signalled { signal, all_ended: all } => {
            all_ended(all);
            Ok(ProgramEnd::Signalled(signal))
        }
        SupervisorReply::NotStarted { errno, message } => {
            let error =
                errno.map_or_else(|| io::Error::other(message), io::Error::from_raw_os_error);
            Err(match lookup::not_started(error) {
                Ok(NoProgram::Missing(why)) => missing(request, why),
                Ok(NoProgram::NotExecutable) => refused(io::ErrorKind::PermissionDenied.into()),
                Err(error) => refused(error),
            })
        }
        SupervisorReply::NotConfined(why) => {
            Err(ProgramError::NoSandbox { what: request.what.clone(), why })
        }
        SupervisorReply::Probed(_) => Err(refused(io::Error::other("its supervisor only probed"))),
    }
}

/// Starts a program without a supervisor. Dropping it ends its process group.
async fn trusted(
    request: &ProgramRequest,
    program: &Path,
    (stdout, stderr): (OwnedFd, OwnedFd),
) -> io::Result<ManagedProcess> {
    let spawn = SpawnRequest {
        program: program.into(),
        args: request.args.clone(),
        cwd: Some(request.cwd.clone()),
        env: Some(request.env.clone()),
        stdin: None,
        stdout: Some(File::from(stdout)),
        stderr: Some(File::from(stderr)),
        inherit: Vec::new(),
        exits_for_target: false,
        ends_itself: false,
        what: request.what.clone(),
    };
    ManagedProcess::spawn(spawn, Arc::new(NoLedger)).await.map_err(io::Error::other)
}

/// A program that was started, and what ends it.
enum RunningProgram {
    Supervised(Supervisor),
    Trusted(ManagedProcess),
}

impl RunningProgram {
    async fn ended(&mut self) {
        match self {
            Self::Supervised(supervisor) => supervisor.ended().await,
            Self::Trusted(process) => {
                process.ended().await;
            }
        }
    }

    /// Ends the program and what it has started.
    async fn end(&mut self) {
        match self {
            Self::Supervised(supervisor) => supervisor.end().await,
            Self::Trusted(process) => {
                process.signal(Signal::SIGKILL);
                process.ended().await;
            }
        }
    }
}

/// A supervisor. Dropping it ends what it supervises.
struct Supervisor {
    socket: UnixStream,
    process: ManagedProcess,
}

impl Supervisor {
    /// Starts a supervisor whose output is that of its program.
    async fn start(
        jig_program: &Path,
        output: Option<(OwnedFd, OwnedFd)>,
        order: &SupervisorOrder,
    ) -> io::Result<Self> {
        let (mut socket, far) = UnixStream::pair()?;
        let far = far.into_std()?;
        far.set_nonblocking(false)?;
        let (stdout, stderr) = output.unzip();
        let temporary = ("TMPDIR".into(), std::env::temp_dir().into());
        let spawn = SpawnRequest {
            program: jig_program.into(),
            args: vec!["supervise".into()],
            cwd: None,
            env: Some(vec![temporary]),
            stdin: Some(File::from(OwnedFd::from(far))),
            stdout: stdout.map(File::from),
            stderr: stderr.map(File::from),
            inherit: Vec::new(),
            exits_for_target: false,
            ends_itself: true,
            what: "supervisor".to_owned(),
        };
        let process =
            ManagedProcess::spawn(spawn, Arc::new(NoLedger)).await.map_err(io::Error::other)?;
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        // One that has ended already says why by its end.
        let _ = socket.write_all(&line).await;
        Ok(Self { socket, process })
    }

    async fn ended(&mut self) {
        self.process.ended().await;
    }

    /// Ends the program and all that it has started.
    async fn end(&mut self) {
        let _ = self.socket.shutdown().await;
        self.ended().await;
    }

    /// Returns the reply of a supervisor that has ended.
    async fn reply(&mut self) -> io::Result<SupervisorReply> {
        let mut line = Vec::new();
        self.socket.read_to_end(&mut line).await?;
        serde_json::from_slice(&line).map_err(|_| {
            let how = match self.process.ending() {
                Some(Ending::Exited(code)) => format!("with the code {code}"),
                Some(Ending::Signalled(signal)) => format!("by {signal}"),
                None => "early".to_owned(),
            };
            io::Error::other(format!("its supervisor ended {how} and did not say why"))
        })
    }
}
