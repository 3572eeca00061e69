//! One connection: reads calls, answers them, and streams.
//!
//! # Design
//! *Calls are answered side by side*, and all messages leave by one writer. A caller that does not
//! read delays its own streams only: what it has not read lies in files.
//!
//! *A session ends with its callers.* Behind the end of a connection its sessions (a console, a
//! server) are left running for a while, so that a caller who lost the connection can come back; then
//! those that no process follows are cancelled. Other commands go on.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jig_lab::CatalogueError;
use jig_model::command::Command;
use jig_model::{Fault, Identity, RunId, chain};
use jig_rig::identity::own_identity;
use jig_rig::store::RunDir;
use jig_rig::workflow::CancelToken;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use super::RigHost;
use super::cancels::Cancellation;
use super::file_store::Uploads;
use super::gate::AccessGate;
use super::input_queue::InputQueues;
use super::refusal::refused;
use super::run_files;
use super::run_places::RunPlaces;
use super::streams::{StreamOut, follow_file, follow_job};
use super::view::view;
use super::watch::watch_run;
use super::watchers::{WatchedWriter, WatcherSlot};
use crate::growing_file::read_at;
use crate::jobs::{
    Job, JobError, JobId, JobOrder, JobSpec, MOST_JOB_INPUT, SendOrderError, WorkerProgram,
};
use crate::protocol::{
    AskKnowledge, CallId, CancelJob, DescribeBoard, DescribePlace, DescribeRig, DescribeRun,
    EndCall, EnvelopeError, FollowFile, FollowJob, Hello, HelloAnswer, Incoming, JobInput,
    JobSummary, LineReadError, LineReader, ListJobs, MOST_CALLS, MOST_LINE, Nothing, OfferFile,
    OrderLease, Outgoing, OwnCaller, PROTOCOL, PlaceAnswer, PruneRuns, PutFile, ReadJobOutput,
    ReadRunFile, RequestError, RpcCall, RpcRequest, RunFileChunk, SharedFolder, StartJob, ViewRig,
    WatchRun, error_code, write_line,
};

/// Messages that may wait for the writer.
const WAITING: usize = 16;

/// How long a caller may take to greet: it does so before all else, and comes again if it was too slow.
const GREETING: Duration = Duration::from_secs(10);

/// How long a session goes on without a caller.
const GRACE: Duration = Duration::from_secs(10);

/// Serves a connection until its caller closes it; then ends its sessions. `identity` is as whom the
/// caller acts.
///
/// # Errors
/// The connection failed, or the caller does not keep to lines.
pub async fn serve(
    host: Arc<RigHost>,
    identity: Identity,
    from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Unpin + Send + 'static,
) -> Result<(), LineReadError> {
    let (out, lines) = mpsc::channel(WAITING);
    let watcher = WatcherSlot::of(&host.watchers);
    let writer = tokio::spawn(write(lines, WatchedWriter { to, slot: watcher.clone() }));
    let gate = Arc::new(AccessGate::new(Arc::clone(&host), identity.clone()));
    let connection = Arc::new(RpcConnection {
        host,
        identity,
        gate,
        greeted: Mutex::new(false),
        uploads: Mutex::default(),
        inputs: InputQueues::default(),
        streams: Mutex::default(),
        closed: CancelToken::new(),
        answered: Arc::default(),
        sessions: Mutex::default(),
        watcher,
        places: RunPlaces::default(),
    });
    let mut tasks = JoinSet::new();
    let ended = connection.read(from, &out, &mut tasks).await;
    // Streams end; what was asked before is still answered.
    connection.closed.cancel();
    while tasks.join_next().await.is_some() {}
    drop(out);
    // Answers that were given leave before the connection is closed.
    let _ = writer.await;
    connection.watcher.forget();
    connection.end_sessions().await;
    ended
}

async fn write(
    mut lines: mpsc::Receiver<Vec<u8>>,
    mut to: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    while let Some(line) = lines.recv().await {
        write_line(&mut to, &line).await?;
    }
    Ok(())
}

struct RpcConnection {
    host: Arc<RigHost>,
    identity: Identity,
    gate: Arc<AccessGate>,
    greeted: Mutex<bool>,
    uploads: Mutex<Uploads>,
    inputs: InputQueues,
    /// Cancelled when the caller says nothing any more.
    closed: CancelToken,
    /// Tells streams that a job of the caller has answered.
    answered: Arc<Notify>,
    /// Calls under way that stream, and can be ended.
    streams: Mutex<HashMap<CallId, AbortHandle>>,
    /// Jobs of this caller that end with their callers.
    sessions: Mutex<BTreeSet<JobId>>,
    /// Counted once the caller has begun or follows a job: a stop of the service leaves it time to fetch
    /// the end.
    watcher: WatcherSlot,
    places: RunPlaces,
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RpcConnection {
    async fn read(
        self: &Arc<Self>,
        from: impl AsyncRead + Unpin,
        out: &mpsc::Sender<Vec<u8>>,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), LineReadError> {
        let mut lines = LineReader::new(from);
        let greeting = Instant::now() + GREETING;
        loop {
            let greeted = *lock(&self.greeted);
            let line = tokio::select! {
                line = lines.next() => line?,
                // It takes the place of one that has something to say.
                () = sleep_until(greeting), if !greeted => return Ok(()),
                // The writer has failed: the caller has gone.
                () = out.closed() => return Ok(()),
            };
            let Some(line) = line else { return Ok(()) };
            self.watcher.moved();
            while tasks.try_join_next().is_some() {}
            let request = match Incoming::from_line(&line) {
                Ok(Incoming::Request(request)) => request,
                // This host asks nothing, so it awaits no answer.
                Ok(Incoming::Response(..) | Incoming::Notification(_)) => continue,
                Err(error) => {
                    let (id, code) = match &error {
                        EnvelopeError::Malformed(_) => (0, error_code::PARSE),
                        EnvelopeError::Shape { id } => {
                            (id.unwrap_or(0), error_code::INVALID_REQUEST)
                        }
                    };
                    answer(out, id, Err(RequestError::misunderstood(code, chain(&error)))).await;
                    continue;
                }
            };
            let id = request.id;
            if tasks.len() >= MOST_CALLS {
                let words = format!("more than {MOST_CALLS} calls at a time");
                answer(out, id, Err(RequestError::refused(Fault::Usage, words, None))).await;
                continue;
            }
            // Input is queued in the order in which it comes, whatever becomes of other calls.
            if request.method == JobInput::METHOD {
                let queued = match self.gate.admit(&request).await {
                    Ok(()) => self.queue(request).await,
                    Err(refused) => Err(refused),
                };
                let out = out.clone();
                tasks.spawn(async move {
                    let told = match queued {
                        Ok(told) => told
                            .await
                            .unwrap_or(Ok(()))
                            .map_err(|error| refused(&error, Fault::Lab)),
                        Err(error) => Err(error),
                    };
                    answer(&out, id, told.map(|()| Value::Object(serde_json::Map::new()))).await;
                });
                continue;
            }
            if request.method == Hello::METHOD {
                // Before any call behind it.
                let told = request.params().and_then(|hello| self.hello(&hello));
                answer(out, id, done::<Hello>(told)).await;
                continue;
            }
            let (this, to) = (
                Arc::clone(self),
                StreamOut {
                    call: id,
                    out: out.clone(),
                    closed: self.closed.clone(),
                    answered: Arc::clone(&self.answered),
                },
            );
            let streaming = [FollowJob::METHOD, FollowFile::METHOD, WatchRun::METHOD];
            let streams = streaming.contains(&request.method.as_str());
            let task = tasks.spawn(async move {
                let told = this.carry_out(request, &to).await;
                lock(&this.streams).remove(&id);
                answer(&to.out, id, told).await;
            });
            if streams && !task.is_finished() {
                lock(&self.streams).insert(id, task);
            }
        }
    }

    async fn carry_out(&self, request: RpcRequest, to: &StreamOut) -> Result<Value, RequestError> {
        let greeted = *lock(&self.greeted);
        if !greeted {
            let words = format!("the first call is {}", Hello::METHOD);
            return Err(RequestError::misunderstood(error_code::INVALID_REQUEST, words));
        }
        self.gate.admit(&request).await?;
        match request.method.as_str() {
            StartJob::METHOD => done::<StartJob>(self.start(request.params()?)),
            FollowJob::METHOD => {
                let FollowJob { job, offset } = request.params()?;
                let job = self.job(&job)?;
                self.watcher.count();
                if job.spec().is_ok_and(|spec| spec.attached) {
                    lock(&self.sessions).insert(job.id().clone());
                }
                done::<FollowJob>(follow_job(&job, offset, to).await)
            }
            CancelJob::METHOD => {
                let CancelJob { job } = request.params()?;
                done::<CancelJob>(self.cancel(self.job(&job)?, "its caller asks").await)
            }
            ReadJobOutput::METHOD => done::<ReadJobOutput>(self.output(&request.params()?)),
            ListJobs::METHOD => {
                let ListJobs {} = request.params()?;
                done::<ListJobs>(self.list())
            }
            OrderLease::METHOD => {
                let OrderLease { order } = request.params()?;
                let catalogue = self.gate.catalogue()?;
                let work = move || catalogue.order_lease(&order);
                let answered = tokio::task::spawn_blocking(work).await;
                let answered = answered.map_err(|error| refused(&error, Fault::Bug))?;
                done::<OrderLease>(
                    answered
                        .map_err(|error| RequestError::of_refusal((self.host.refuse_lease)(error))),
                )
            }
            AskKnowledge::METHOD => {
                let AskKnowledge { order } = request.params()?;
                let (catalogue, host) = (self.gate.catalogue()?, Arc::clone(&self.host));
                let work = move || {
                    let answered = host.knowledge.carry_out_for(&catalogue, order);
                    answered.map_err(|e| RequestError::of_refusal((host.refuse_knowledge)(e)))
                };
                let answered = tokio::task::spawn_blocking(work).await;
                done::<AskKnowledge>(answered.map_err(|error| refused(&error, Fault::Bug))?)
            }
            PruneRuns::METHOD => {
                let PruneRuns { limits } = request.params()?;
                let catalogue = self.gate.catalogue()?;
                let work = move || catalogue.prune_runs(limits);
                let pruned = tokio::task::spawn_blocking(work).await;
                let pruned = pruned.map_err(|error| refused(&error, Fault::Bug))?;
                done::<PruneRuns>(pruned.map_err(|error| {
                    let help = error.help().map(str::to_owned);
                    RequestError::refused(error.fault(), chain(&error), help)
                }))
            }
            DescribePlace::METHOD => done::<DescribePlace>(self.place(&request.params()?)),
            DescribeBoard::METHOD => {
                let DescribeBoard { place } = request.params()?;
                let told = self.gate.catalogue()?.board_facts(&place);
                done::<DescribeBoard>(told.map_err(|error| refused(&error, error.fault())))
            }
            DescribeRig::METHOD => {
                let DescribeRig {} = request.params()?;
                let (catalogue, config) = (self.gate.catalogue()?, self.gate.config());
                let work = move || catalogue.described(&config);
                let told = tokio::task::spawn_blocking(work).await;
                let told = told.map_err(|error| refused(&error, Fault::Bug))?;
                done::<DescribeRig>(told.map_err(|error| refused(&error, error.fault())))
            }
            OfferFile::METHOD => {
                let offer: OfferFile = request.params()?;
                let offered = self.host.files.offer(&mut lock(&self.uploads), &offer);
                done::<OfferFile>(offered.map_err(|error| refused(&error, error.fault())))
            }
            PutFile::METHOD => done::<PutFile>(self.put(&request.params()?)),
            DescribeRun::METHOD => {
                let DescribeRun { run } = request.params()?;
                let dir = self.run(&run)?;
                let listed = tokio::task::spawn_blocking(move || run_files::describe(&dir)).await;
                let listed = listed.map_err(|error| refused(&error, Fault::Bug))?;
                done::<DescribeRun>(listed.map_err(|error| refused(&error, error.fault())))
            }
            ReadRunFile::METHOD => done::<ReadRunFile>(self.read_run(&request.params()?)),
            FollowFile::METHOD => {
                let follow: FollowFile = request.params()?;
                done::<FollowFile>(follow_file(&self.run(&follow.run)?, follow, to).await)
            }
            WatchRun::METHOD => {
                let watch: WatchRun = request.params()?;
                done::<WatchRun>(watch_run(&self.run(&watch.run)?, watch, to).await)
            }
            ViewRig::METHOD => {
                let ViewRig { query } = request.params()?;
                done::<ViewRig>(view((&self.host, &self.gate), query).await)
            }
            EndCall::METHOD => {
                let EndCall { call } = request.params()?;
                if let Some(task) = lock(&self.streams).remove(&call) {
                    task.abort();
                }
                done::<EndCall>(Ok(Nothing {}))
            }
            other => {
                let name: String = other.chars().take(100).collect();
                let words = format!("there is no method {name:?} in protocol {PROTOCOL}");
                Err(RequestError::misunderstood(error_code::UNKNOWN_METHOD, words))
            }
        }
    }

    fn hello(&self, hello: &Hello) -> Result<HelloAnswer, RequestError> {
        let RigHost { runs, name, version, .. } = &*self.host;
        if hello.protocol != PROTOCOL {
            let words = format!(
                "{name} speaks protocol {PROTOCOL} (jig {version}), and the caller speaks {}",
                hello.protocol
            );
            let help = "install the same version of jig on both hosts; until then, log in to the rig's host and \
                        run jig there".to_owned();
            return Err(RequestError::refused(Fault::Lab, words, Some(help)));
        }
        *lock(&self.greeted) = true;
        tracing::info!(by = hello.by, program = hello.program, "a caller");
        Ok(HelloAnswer {
            protocol: PROTOCOL,
            program: version.clone(),
            host: name.clone(),
            identity: self.identity.name.to_string(),
            runs: SharedFolder::of(runs),
        })
    }

    fn place(&self, asked: &DescribePlace) -> Result<PlaceAnswer, RequestError> {
        let told = |error: CatalogueError| refused(&error, error.fault());
        let catalogue = self.gate.catalogue()?;
        let (_, board) = catalogue.place(&asked.place).map_err(told)?;
        Ok(PlaceAnswer {
            board: board.id.clone(),
            primary: board.primary_console().clone(),
            consoles: board.consoles.iter().map(|console| console.name.clone()).collect(),
        })
    }

    fn job(&self, id: &JobId) -> Result<Job, RequestError> {
        self.host.jobs.open(id).map_err(|error| refused(&error, error.fault()))
    }

    fn run(&self, run: &RunId) -> Result<RunDir, RequestError> {
        let found = self.places.find(&self.host.runs, run);
        found.map_err(|error| refused(&error, error.fault()))
    }

    fn start(&self, start: StartJob) -> Result<Nothing, RequestError> {
        let StartJob { job, mut command, attached, lease, own } = start;
        let worker = match own {
            Some(own) => self.own_worker(own)?,
            None => {
                self.name_files(&job, &mut command)?;
                self.host.worker.clone()
            }
        };
        if attached {
            lock(&self.sessions).insert(job.clone());
        }
        self.watcher.count();
        let spec = JobSpec { command, by: self.identity.clone(), attached, lease };
        let begun = self.host.jobs.begin(&job, &spec, &worker);
        begun.map(|_| Nothing {}).map_err(|error| {
            let told = refused(&error, error.fault());
            let code = match error {
                JobError::Closed => error_code::STOPPING,
                _ => told.code,
            };
            RequestError { code, ..told }
        })
    }

    /// Names the files of a command as this host does.
    fn name_files(&self, job: &JobId, command: &mut Command) -> Result<(), RequestError> {
        let files = command.files();
        for image in files.images {
            // `FILE.bin@ADDRESS` names a file, too.
            let text = image.to_string_lossy().into_owned();
            let file = text.split_once('@').map_or(text.as_str(), |(file, _)| file);
            if !self.host.files.has(file.as_ref()) {
                let words = format!("{text:?} is no file that was sent to this host");
                let help = "files are named by the caller and sent with `file.offer`".to_owned();
                return Err(RequestError::refused(Fault::Usage, words, Some(help)));
            }
        }
        for (number, output) in files.outputs.into_iter().enumerate() {
            *output = self.host.jobs.output(job, &number.to_string());
        }
        Ok(())
    }

    /// Returns what carries out a command of this process's own user as the caller's process would.
    fn own_worker(&self, own: OwnCaller) -> Result<WorkerProgram, RequestError> {
        if self.identity.name != own_identity().name {
            let words = format!("{} is not the user that serves this rig", self.identity.name);
            return Err(RequestError::refused(Fault::Usage, words, None));
        }
        let OwnCaller { folder, variables } = own;
        let taken = variables.into_iter();
        let taken = taken.filter(|(name, _)| OwnCaller::VARIABLES.contains(&name.as_str()));
        // From another folder other files might be found to describe the rig.
        let catalogue = self.gate.catalogue()?;
        let mut worker = self.host.worker.clone();
        worker.set("--state", catalogue.state());
        worker.set("--runs", catalogue.runs_dir());
        if let Some(file) = catalogue.rig_files.first() {
            worker.set("--rig", file.clone());
        }
        let variables = taken.map(|(name, value)| (name.into(), value.into())).collect();
        Ok(WorkerProgram { folder: Some(folder), variables, ..worker })
    }

    fn output(&self, read: &ReadJobOutput) -> Result<RunFileChunk, RequestError> {
        let path = self.host.jobs.output(self.job(&read.job)?.id(), &read.number.to_string());
        chunk(&path, read.offset)
    }

    fn list(&self) -> Result<Vec<JobSummary>, RequestError> {
        let jobs = self.host.jobs.list().map_err(|error| refused(&error, error.fault()))?;
        let summary = |job: Job| {
            let spec = job.spec().ok().filter(|spec| self.gate.sees_job(spec))?;
            let (run, by) = (job.run(), spec.by.name.to_string());
            Some(JobSummary { alive: job.is_alive(), by, run, job: job.id().clone() })
        };
        Ok(jobs.into_iter().filter_map(summary).collect())
    }

    fn put(&self, put: &PutFile) -> Result<Nothing, RequestError> {
        let bytes = BASE64_STANDARD.decode(&put.data).map_err(|error| {
            let words = format!("data of {}: {error}", PutFile::METHOD);
            RequestError::misunderstood(error_code::INVALID_PARAMS, words)
        })?;
        let stored = self.host.files.put(&mut lock(&self.uploads), &put.sha256, put.offset, &bytes);
        stored.map(|()| Nothing {}).map_err(|error| refused(&error, error.fault()))
    }

    fn read_run(&self, read: &ReadRunFile) -> Result<RunFileChunk, RequestError> {
        let told = |error: run_files::RunFileError| refused(&error, error.fault());
        let dir = self.run(&read.run)?;
        let file = run_files::open(dir.path(), &read.path).map_err(told)?;
        let bytes = read_at(&file, read.offset).map_err(|error| refused(&error, Fault::Lab))?;
        Ok(RunFileChunk { data: BASE64_STANDARD.encode(bytes) })
    }

    /// Asks a job to end, and notes who did and why.
    async fn cancel(&self, job: Job, why: &'static str) -> Result<Nothing, RequestError> {
        let ended = |error: SendOrderError| refused(&error, Fault::Lab);
        if !job.is_alive() {
            return Err(ended(SendOrderError::Ended));
        }
        let (host, identity, noted) = (Arc::clone(&self.host), self.identity.clone(), job.clone());
        let note = move || {
            // A job whose file cannot be read has no place to be noted with.
            if let Ok(spec) = noted.spec() {
                let cancellation =
                    Cancellation { host: &host, identity: &identity, job: &noted, spec: &spec };
                cancellation.accepted(why);
            }
        };
        let note = tokio::task::spawn_blocking(note).await;
        note.map_err(|error| refused(&error, Fault::Bug))?;
        job.cancel().await.map(|()| Nothing {}).map_err(ended)
    }

    /// Puts input behind what the caller has sent before.
    async fn queue(
        &self,
        request: RpcRequest,
    ) -> Result<oneshot::Receiver<Result<(), SendOrderError>>, RequestError> {
        let JobInput { job, data, end } = request.params()?;
        let bytes = BASE64_STANDARD.decode(&data).map_err(|error| {
            let words = format!("data of {}: {error}", JobInput::METHOD);
            RequestError::misunderstood(error_code::INVALID_PARAMS, words)
        })?;
        if bytes.len() > MOST_JOB_INPUT {
            let words = format!("{} bytes of input at once", bytes.len());
            return Err(RequestError::refused(Fault::Usage, words, None));
        }
        let order = if end { JobOrder::End } else { JobOrder::Input(bytes) };
        Ok(self.inputs.put(&self.job(&job)?, order).await)
    }

    /// Cancels the sessions that no process follows any more.
    async fn end_sessions(&self) {
        let sessions = std::mem::take(&mut *lock(&self.sessions));
        let jobs = sessions.iter().filter_map(|id| self.host.jobs.open(id).ok());
        let jobs: Vec<Job> = jobs.filter(Job::is_alive).collect();
        if jobs.is_empty() {
            return;
        }
        sleep(GRACE).await;
        for job in jobs.into_iter().filter(|job| job.is_alive() && !job.is_followed()) {
            tracing::info!(job = %job.id(), "a session without a caller is cancelled");
            if let Err(error) = self.cancel(job, "its caller has gone").await {
                tracing::warn!(%error, "a session was not cancelled");
            }
        }
    }
}

/// Writes an answer as JSON.
fn done<C: RpcCall>(answer: Result<C::Answer, RequestError>) -> Result<Value, RequestError> {
    serde_json::to_value(answer?).map_err(|error| refused(&error, Fault::Bug))
}

async fn answer(out: &mpsc::Sender<Vec<u8>>, id: CallId, told: Result<Value, RequestError>) {
    let line = Outgoing::response(id, told).and_then(|line| match line.len() > MOST_LINE {
        false => Ok(line),
        true => {
            let words = format!("the answer has {} bytes, {MOST_LINE} at most", line.len());
            let help = "ask for less, such as for one place".to_owned();
            Outgoing::response(id, Err(RequestError::refused(Fault::Usage, words, Some(help))))
        }
    });
    match line {
        // The caller may have gone.
        Ok(line) => drop(out.send(line).await),
        Err(error) => tracing::error!(%error, "an answer cannot be written"),
    }
}

/// Reads bytes of a file that a job has written.
fn chunk(path: &Path, offset: u64) -> Result<RunFileChunk, RequestError> {
    let read = jig_rig::store::open_regular(path).and_then(|file| read_at(&file, offset));
    let bytes = read.map_err(|error| refused(&error, Fault::Lab))?;
    Ok(RunFileChunk { data: BASE64_STANDARD.encode(bytes) })
}

impl SharedFolder {
    /// Tells what folder a path is.
    pub fn of(path: &Path) -> Self {
        let inode = std::fs::metadata(path).ok().map(|about| (about.dev(), about.ino()));
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Self { path: path.display().to_string(), inode, boot: boot.trim().to_owned() }
    }
}
