//! A rig behind a connection, used as one of this host.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jig_lab::{RigQuery, RigView};
use jig_model::command::{
    Command, CommandEvent, EventSink, Refusal, Reply, RunCommand, TestCommand, WorkerLine,
};
use jig_model::protocol::BoxFuture;
use jig_model::{Fault, LeaseId, RunId};
use jig_rig::workflow::CancelToken;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, mpsc};
use tokio::task::{JoinError, JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep};

use super::mirror::RunMirror;
use super::upload::{SentImage, read_images, send_images};
use super::{CallError, MirrorError, RigClient, UploadError};
use crate::jobs::{JobId, MOST_JOB_INPUT};
use crate::protocol::{
    CancelJob, FollowJob, Hello, HelloAnswer, JobEnd, JobInput, JobLine, OwnCaller, ReadJobOutput,
    RpcCall, StartJob, ViewRig, error_code,
};

/// Shortest and longest pause between two tries to connect again: a connection that was cut by accident
/// is there at once, and a host that restarts is not flooded.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_millis(500);

/// How long a host may hang up before it greets: one that has too many callers lets one in when others
/// have said nothing for 10 s.
const GREETED: Duration = Duration::from_secs(15);

/// How often a connection may be lost while the caller looks at something: a host that always hangs up at
/// the same question is not asked for ever.
const MOST_LOSSES: usize = 8;

/// What a process says of itself when it has ended by a panic.
const PANIC: &str = "panicked at";

/// Both directions of a connection.
pub struct Connected {
    /// From the host.
    pub from: Box<dyn AsyncRead + Send + Unpin>,
    /// To the host.
    pub to: Box<dyn AsyncWrite + Send + Unpin>,
}

/// Makes connections to a rig's host.
pub trait Connect: Send + Sync {
    /// Names the host, as the user did.
    fn host(&self) -> String;
    /// Makes a connection; a failure is ready to be shown.
    fn connect(&self) -> BoxFuture<'_, Result<Connected, Refusal>>;
    /// Tells whether another process serves the same rig, where this host stops and begins no command;
    /// later connections are made to that one.
    fn turns_away(&self) -> bool {
        false
    }
    /// Explains why a connection has ended by itself, if that is known.
    fn why_ended(&self) -> BoxFuture<'_, Option<Refusal>> {
        Box::pin(std::future::ready(None))
    }
}

/// How long a caller waits for a connection that was lost.
#[derive(Debug, Clone, Copy)]
pub struct Patience(pub Duration);

impl Default for Patience {
    fn default() -> Self {
        // A switch that restarts, or a laptop that changes its network.
        Self(Duration::from_secs(60))
    }
}

/// What goes on at a rig whose connection is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoesOn {
    /// A command.
    Job(JobId),
    /// A run.
    Run(RunId),
    /// Nothing: the caller was looking.
    Nothing,
}

/// Says why a command was not carried out at the rig, or how it ended is not known.
#[derive(Debug, thiserror::Error)]
pub enum RemoteRigError {
    /// The host cannot be reached.
    #[error("{}", .0.message)]
    Connect(Refusal),
    /// The connection is lost for longer than is waited.
    #[error("the connection to {host} is lost: {}", .refusal.message)]
    Gone {
        /// The host.
        host: String,
        /// What goes on there.
        what: GoesOn,
        /// Why it cannot be made again.
        refusal: Refusal,
    },
    /// The rig refuses.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The worker has ended without an answer.
    #[error("jig at {host} has ended without an answer{}", said(words))]
    Crashed {
        /// The host.
        host: String,
        /// The end of its standard error.
        words: String,
    },
    /// A command that was to go on has ended.
    #[error("the command at the rig has ended")]
    Ended {
        /// The command.
        what: GoesOn,
    },
    /// A call failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The host has another version of Jig, which does not know a call.
    #[error("jig {program} at {host} does not know {method}")]
    Unknown {
        /// The host.
        host: String,
        /// The version of its program.
        program: String,
        /// The call.
        method: &'static str,
    },
    /// An image was not sent.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// Reading the images ended in a panic.
    #[error("the images were not read")]
    Reader(#[source] JoinError),
    /// The run has ended, and is not all here.
    #[error("run {run} has ended at {host}, and was not copied")]
    Mirror {
        /// The run.
        run: RunId,
        /// The host.
        host: String,
        /// Why.
        source: MirrorError,
    },
    /// A file that the command wrote is not here.
    #[error("cannot write {}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// Why, in the system's words.
        source: std::io::Error,
    },
}

fn said(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {words}") }
}

impl RemoteRigError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Connect(refusal) | Self::Refused(refusal) => refusal.fault,
            Self::Gone { .. } | Self::Ended { .. } | Self::Unknown { .. } | Self::Output { .. } => {
                Fault::Lab
            }
            // Without a panic it was killed: by a person, or by a host without memory.
            Self::Crashed { words, .. } if !words.contains(PANIC) => Fault::Lab,
            Self::Crashed { .. } | Self::Reader(_) => Fault::Bug,
            Self::Call(error) => error.fault(),
            Self::Upload(error) => error.fault(),
            Self::Mirror { source, .. } => source.fault(),
        }
    }

    /// Tells whether another connection may bring an answer.
    fn is_lost(&self) -> bool {
        match self {
            Self::Call(error) => error.is_lost(),
            Self::Mirror { source, .. } => source.is_lost(),
            _ => false,
        }
    }

    /// Returns a refusal, which is ready to be shown.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Connect(refusal) | Self::Refused(refusal) => Some(refusal),
            Self::Call(error) | Self::Upload(UploadError::Call(error)) => error.refusal(),
            _ => None,
        }
    }
}

/// A rig of another host.
pub struct RemoteRig {
    connect: Arc<dyn Connect>,
    /// Folder of the copies of runs.
    runs: PathBuf,
    by: String,
    version: String,
    patience: Patience,
    /// The lease that commands name.
    lease: Option<LeaseId>,
    /// Whether the host carries commands out as this process would.
    own: Option<OwnCaller>,
    link: Mutex<Option<Link>>,
}

#[derive(Clone)]
pub(super) struct Link {
    pub(super) client: RigClient,
    pub(super) host: Arc<HelloAnswer>,
}

impl RemoteRig {
    /// Names a rig; nothing is connected yet. `by` says who calls, `version` is that of this program.
    pub fn new(connect: Arc<dyn Connect>, runs: PathBuf, by: String, version: &str) -> Self {
        let (version, patience) = (version.to_owned(), Patience::default());
        let (lease, own, link) = (None, None, Mutex::new(None));
        Self { connect, runs, by, version, patience, lease, own, link }
    }

    /// Sets how long a lost connection is waited for.
    #[must_use]
    pub fn patient(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// Sets the lease that commands name.
    #[must_use]
    pub fn under(mut self, lease: Option<LeaseId>) -> Self {
        self.lease = lease;
        self
    }

    /// Has the host carry commands out as a process of this user in this folder would: files are named,
    /// not sent. Only for a host of the same user.
    #[must_use]
    pub fn as_own(mut self, own: OwnCaller) -> Self {
        self.own = Some(own);
        self
    }

    /// Returns the folder of the copies of runs.
    pub fn runs_dir(&self) -> &Path {
        &self.runs
    }

    /// Names the host, as the user did.
    pub fn host(&self) -> String {
        self.connect.host()
    }

    /// Connects, unless there is a connection.
    pub(super) async fn link(&self) -> Result<Link, RemoteRigError> {
        let mut kept = self.link.lock().await;
        if let Some(link) = kept.as_ref().filter(|link| !link.client.is_lost()) {
            return Ok(link.clone());
        }
        let (end, mut pause) = (Instant::now() + GREETED.min(self.patience.0), SHORTEST);
        loop {
            match self.greeted().await {
                Err(RemoteRigError::Call(error)) if error.is_lost() && Instant::now() < end => {}
                greeted => return Ok(kept.insert(greeted?).clone()),
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
        }
    }

    /// Connects and greets.
    async fn greeted(&self) -> Result<Link, RemoteRigError> {
        let Connected { from, to } =
            self.connect.connect().await.map_err(RemoteRigError::Connect)?;
        let client = RigClient::over(from, to);
        let hello = Hello::of(&self.version, &self.by);
        let host = match client.hello(&hello).await {
            Ok(host) => Arc::new(host),
            Err(CallError::Lost(why)) => {
                let ended = self.connect.why_ended().await;
                return Err(match ended {
                    Some(refusal) => RemoteRigError::Connect(refusal),
                    None => RemoteRigError::Call(CallError::Lost(why)),
                });
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Link { client, host })
    }

    pub(super) async fn link_again(&self, what: &GoesOn) -> Result<Link, RemoteRigError> {
        *self.link.lock().await = None;
        let host = self.connect.host();
        tracing::warn!(host, "the connection is lost; connecting again");
        let (end, mut pause) = (Instant::now() + self.patience.0, SHORTEST);
        loop {
            match self.link().await {
                Ok(link) => return Ok(link),
                Err(RemoteRigError::Connect(refusal)) if Instant::now() >= end => {
                    return Err(RemoteRigError::Gone { host, what: what.clone(), refusal });
                }
                Err(RemoteRigError::Connect(_)) => {}
                Err(RemoteRigError::Call(error)) if error.is_lost() && Instant::now() < end => {}
                Err(error) => return Err(error),
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
        }
    }

    /// Asks the rig's host something.
    ///
    /// # Errors
    /// The host cannot be reached, or refuses.
    pub async fn call<C: RpcCall>(&self, call: &C) -> Result<C::Answer, RemoteRigError> {
        let link = self.link().await?;
        match link.client.call(call).await {
            Err(CallError::Refused(error)) if error.code == error_code::UNKNOWN_METHOD => {
                let (host, program) = (self.connect.host(), link.host.program.clone());
                Err(RemoteRigError::Unknown { host, program, method: C::METHOD })
            }
            answer => Ok(answer?),
        }
    }

    /// Looks at the rig.
    ///
    /// # Errors
    /// The host cannot be reached, or refuses.
    pub async fn view(&self, query: RigQuery) -> Result<RigView, RemoteRigError> {
        self.call_again(&ViewRig { query }).await
    }

    /// Asks the rig's host something that may be asked twice: again, where the connection is lost.
    ///
    /// # Errors
    /// The host cannot be reached, or refuses.
    pub async fn call_again<C: RpcCall>(&self, call: &C) -> Result<C::Answer, RemoteRigError> {
        self.again(async || self.call(call).await).await
    }

    /// Does something again where the connection is lost meanwhile.
    pub(super) async fn again<T>(
        &self,
        mut work: impl AsyncFnMut() -> Result<T, RemoteRigError>,
    ) -> Result<T, RemoteRigError> {
        self.link().await?;
        for _ in 1..MOST_LOSSES {
            match work().await {
                Err(error) if error.is_lost() => self.link_again(&GoesOn::Nothing).await?,
                done => return done,
            };
        }
        work().await
    }

    /// Carries out a command at the rig; `input` goes to the console or channel that it is about. A
    /// run is copied into the folder of runs of this host.
    ///
    /// # Errors
    /// The command was not carried out, or how it ended is not known.
    pub async fn execute(
        &self,
        mut command: Command,
        input: mpsc::Receiver<Vec<u8>>,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Reply, RemoteRigError> {
        // Files of a command that is this process's own are named, not fetched.
        let outputs: Vec<PathBuf> = match self.own {
            None => command.files().outputs.into_iter().map(|path| path.clone()).collect(),
            Some(_) => Vec::new(),
        };
        let attached = command.is_session();
        let BegunJob { job, mut link, images } = self.begin(command, attached).await?;
        let goes_on = GoesOn::Job(job.clone());
        let mirror = RunMirror::new(self.runs.clone(), &link.host.runs, images);
        let sent = CallerInput { input: Some(input), unconfirmed: false };
        let cancellation = PassedCancellation { cancel, passed_on: Arc::default() };
        let mut session =
            JobSession { job: &job, offset: 0, events, mirror, sent, cancellation, last: None };
        let end = loop {
            match session.follow(&link.client).await {
                Err(error) if error.is_lost() => {
                    link = self.link_again(&goes_on).await?;
                    match session.mirror.go_on(&link.client).await {
                        Err(error) if !error.is_lost() => {
                            tracing::warn!(%error, "console logs are copied at the end");
                        }
                        Ok(()) | Err(_) => {}
                    }
                }
                ended => break ended?,
            }
        };
        let host = self.connect.host();
        let mut reply = match (session.last.take(), end.crashed) {
            (Some(WorkerLine::Reply(reply)), _) => reply,
            (Some(WorkerLine::Refused(refusal)), _) => {
                return Err(RemoteRigError::Refused(refusal));
            }
            (_, words) => {
                let words = words.unwrap_or_default();
                return Err(RemoteRigError::Crashed { host, words });
            }
        };
        if let Reply::Run(run) = &mut reply {
            loop {
                match session.mirror.finish(&link.client).await {
                    Ok(dir) => {
                        run.dir = dir.unwrap_or(std::mem::take(&mut run.dir));
                        break;
                    }
                    Err(error) if error.is_lost() => link = self.link_again(&goes_on).await?,
                    Err(source) => {
                        return Err(RemoteRigError::Mirror { run: run.run.clone(), host, source });
                    }
                }
            }
        }
        for (number, path) in outputs.iter().enumerate() {
            fetch(&link.client, &job, number, path).await?;
        }
        if let (Reply::Dumped(dump), Some(path)) = (&mut reply, outputs.first()) {
            dump.core.clone_from(path);
        }
        Ok(reply)
    }
}

impl RemoteRig {
    /// Has a command begun as a job; its images are sent before. `attached` says whether it ends when its
    /// callers have gone.
    pub(super) async fn begin(
        &self,
        mut command: Command,
        attached: bool,
    ) -> Result<BegunJob, RemoteRigError> {
        let (own, sends) = (self.own.clone(), self.own.is_none());
        // A server that is on its way is not waited for to read files, nor the other way round.
        let read = spawn_blocking(move || {
            let images = if sends { read_images(&mut command) } else { Ok(Vec::new()) };
            (images, command)
        });
        let (link, read) = tokio::join!(self.link(), read);
        let (images, command) = read.map_err(RemoteRigError::Reader)?;
        // What is wrong here is told first.
        let (images, mut link) = (Arc::new(images?), link?);
        let job = JobId::random(jiff::Timestamp::now());
        let goes_on = GoesOn::Job(job.clone());
        let lease = self.lease.clone();
        let mut request = StartJob { job: job.clone(), command, attached, lease, own };
        loop {
            match start(&link.client, &images, &request).await {
                Err(RemoteRigError::Call(CallError::Refused(error)))
                    if error.code == error_code::STOPPING && self.connect.turns_away() =>
                {
                    link = self.link_again(&goes_on).await?;
                }
                Err(
                    RemoteRigError::Call(error) | RemoteRigError::Upload(UploadError::Call(error)),
                ) if error.is_lost() => {
                    link = self.link_again(&goes_on).await?;
                }
                // An older host knows no session of a command, and refuses before anything is begun.
                Err(RemoteRigError::Call(CallError::Refused(error)))
                    if error.code == error_code::INVALID_PARAMS
                        && without_session(&mut request.command) =>
                {
                    let (host, program) = (self.connect.host(), &link.host.program);
                    tracing::info!(host, program, "asked again without the name of the session");
                }
                started => {
                    started?;
                    return Ok(BegunJob { job, link, images });
                }
            }
        }
    }
}

/// Removes what only newer hosts know of a command: the session that asks for it, by which records are found
/// and which changes nothing of what is carried out. Tells whether there was any.
fn without_session(command: &mut Command) -> bool {
    match command {
        Command::Run(RunCommand { options, .. }) | Command::Test(TestCommand { options, .. }) => {
            options.asked.take().is_some()
        }
        _ => false,
    }
}

/// A job that was begun.
pub(super) struct BegunJob {
    pub(super) job: JobId,
    pub(super) link: Link,
    pub(super) images: Arc<Vec<SentImage>>,
}

async fn start(
    client: &RigClient,
    images: &[SentImage],
    request: &StartJob,
) -> Result<(), RemoteRigError> {
    let mut request = request.clone();
    if request.own.is_none() {
        send_images(client, images, &mut request.command).await?;
    }
    client.call(&request).await?;
    Ok(())
}

/// A job that is followed.
struct JobSession<'a> {
    job: &'a JobId,
    offset: u64,
    events: Arc<dyn EventSink>,
    mirror: RunMirror,
    sent: CallerInput,
    cancellation: PassedCancellation,
    last: Option<WorkerLine>,
}

/// The caller's cancellation on its way to the job.
struct PassedCancellation {
    cancel: CancelToken,
    /// Whether the host has it.
    passed_on: Arc<AtomicBool>,
}

impl PassedCancellation {
    /// Passes it on when it comes, beside whatever else the caller waits for: a task of its own, because
    /// who takes in events may stop this one. Ends with what is returned.
    fn pass_on(&self, client: &RigClient, job: &JobId) -> JoinSet<()> {
        let (cancel, passed_on) = (self.cancel.clone(), Arc::clone(&self.passed_on));
        let (client, job) = (client.clone(), job.clone());
        let mut task = JoinSet::new();
        task.spawn(async move {
            cancel.cancelled().await;
            if passed_on.load(Ordering::Acquire) {
                return;
            }
            match client.call(&CancelJob { job }).await {
                // Passed on again by the next connection.
                Err(error) if error.is_lost() => {}
                told => {
                    passed_on.store(true, Ordering::Release);
                    if let Err(error) = told {
                        tracing::warn!(%error, "the command was not cancelled");
                    }
                }
            }
        });
        task
    }
}

/// What the caller sends to the job.
struct CallerInput {
    /// Nothing once it has ended.
    input: Option<mpsc::Receiver<Vec<u8>>>,
    /// Whether the host has not said that it has got all of what was taken from `input`.
    unconfirmed: bool,
}

impl CallerInput {
    /// Passes on input as it comes, until its end or until the connection is lost.
    async fn pass_on(&mut self, client: &RigClient, job: &JobId) -> Result<(), CallError> {
        while let Some(input) = &mut self.input {
            let bytes = input.recv().await;
            let end = bytes.is_none();
            if end {
                self.input = None;
            }
            self.unconfirmed = true;
            for piece in bytes.unwrap_or_default().chunks(MOST_JOB_INPUT) {
                let data = BASE64_STANDARD.encode(piece);
                client.call(&JobInput { job: job.clone(), data, end: false }).await?;
            }
            if end {
                let data = String::new();
                client.call(&JobInput { job: job.clone(), data, end }).await?;
            }
            self.unconfirmed = false;
        }
        Ok(())
    }
}

impl JobSession<'_> {
    /// Tells what the job says, until it has ended or the connection is lost.
    async fn follow(&mut self, client: &RigClient) -> Result<JobEnd, CallError> {
        let ended = self.follow_until_lost(client).await;
        if ended.is_err() && std::mem::take(&mut self.sent.unconfirmed) {
            let why = "the connection was lost while input was sent".to_owned();
            self.events.event(CommandEvent::InputFailed { why });
        }
        ended
    }

    async fn follow_until_lost(&mut self, client: &RigClient) -> Result<JobEnd, CallError> {
        let Self { job, offset, events, mirror, sent, cancellation, last } = self;
        let _cancels = cancellation.pass_on(client, job);
        let call = FollowJob { job: job.clone(), offset: *offset };
        let mut stream = client.stream(&call).await?;
        let mut passes_on = pin!(sent.pass_on(client, job));
        let mut passing = true;
        loop {
            let item = tokio::select! {
                item = stream.next() => item,
                // A job that has ended takes no input, and a lost connection is seen by the stream.
                _ = &mut passes_on, if passing => {
                    passing = false;
                    continue;
                }
            };
            let Some(item) = item else { return stream.answer::<FollowJob>().await };
            let JobLine { next, line, .. } = serde_json::from_value(item)
                .map_err(|source| CallError::Stranger { method: "job.follow", source })?;
            match line {
                WorkerLine::Event(event) => {
                    let event = match mirror.take_in(client, event.clone()).await {
                        Ok(event) => event,
                        Err(MirrorError::Call(error)) if error.is_lost() => return Err(error),
                        Err(error) => {
                            tracing::warn!(%error, "the run is not copied as it goes on");
                            event
                        }
                    };
                    events.event(event);
                }
                answer => {
                    // Nothing follows it but the end of its process, which is not waited for.
                    *last = Some(answer);
                    return Ok(JobEnd { crashed: None });
                }
            }
            *offset = next;
        }
    }
}

/// Fetches a file that a job has written.
async fn fetch(
    client: &RigClient,
    job: &JobId,
    number: usize,
    path: &Path,
) -> Result<(), RemoteRigError> {
    let failed = |source| RemoteRigError::Output { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    loop {
        let offset = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let read = ReadJobOutput { job: job.clone(), number, offset };
        let piece = BASE64_STANDARD.decode(client.call(&read).await?.data);
        let piece = piece.map_err(|error| failed(std::io::Error::other(error)))?;
        if piece.is_empty() {
            return std::fs::write(path, bytes).map_err(failed);
        }
        bytes.extend_from_slice(&piece);
    }
}
