//! The calls, their parameters and answers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jig_model::command::{Command, WorkerLine};
use jig_model::lease::{LeaseAnswer, LeaseOrder};
use jig_model::{BoardId, ConsoleName, LeaseId, PlaceName, RunId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::jobs::JobId;

/// Version of the protocol.
pub const PROTOCOL: u32 = 1;

/// A call: its name, and what answers it.
pub trait RpcCall: Serialize + DeserializeOwned + Send + Sync {
    /// Name of the method.
    const METHOD: &'static str;
    /// What answers it.
    type Answer: Serialize + DeserializeOwned + Send;
}

macro_rules! calls {
    ($($call:ident $method:literal -> $answer:ty;)*) => {
        $(impl RpcCall for $call {
            const METHOD: &'static str = $method;
            type Answer = $answer;
        })*
    };
}

calls! {
    Hello "hello" -> HelloAnswer;
    StartJob "job.start" -> Nothing;
    FollowJob "job.follow" -> JobEnd;
    JobInput "job.input" -> Nothing;
    CancelJob "job.cancel" -> Nothing;
    ReadJobOutput "job.read" -> RunFileChunk;
    ListJobs "job.list" -> Vec<JobSummary>;
    DescribePlace "rig.place" -> PlaceAnswer;
    OrderLease "rig.lease" -> LeaseAnswer;
    OfferFile "file.offer" -> OfferedFile;
    PutFile "file.put" -> Nothing;
    DescribeRun "run.files" -> RunFiles;
    ReadRunFile "run.read" -> RunFileChunk;
    FollowFile "run.follow" -> Nothing;
    EndCall "rpc.end" -> Nothing;
}

/// An answer without content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Begins a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`PROTOCOL`] of the caller.
    pub protocol: u32,
    /// Version of the caller's program.
    pub program: String,
    /// Who calls, for records: `user@host`. Untrusted text.
    pub by: String,
}

impl Hello {
    /// Greets as a program of a version, on behalf of a caller.
    pub fn of(program: &str, by: &str) -> Self {
        Self { protocol: PROTOCOL, program: program.to_owned(), by: by.to_owned() }
    }
}

/// What the rig's host says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HelloAnswer {
    /// [`PROTOCOL`] of the host.
    pub protocol: u32,
    /// Version of its program.
    pub program: String,
    /// Name of the host.
    pub host: String,
    /// As whom the caller acts.
    pub identity: String,
    /// Its folder of runs; where the caller sees the same folder, nothing is copied.
    pub runs: SharedFolder,
}

/// A folder, by which two processes find out that they see the same one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedFolder {
    /// Its absolute path.
    pub path: String,
    /// Number of its device and its inode; nothing where it does not exist yet.
    pub inode: Option<(u64, u64)>,
    /// Identity of this start of the kernel.
    pub boot: String,
}

/// Starts a command as a job, which goes on without its caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartJob {
    /// Its name, chosen by the caller: a start that is repeated after a lost connection is one job.
    pub job: JobId,
    /// The command. Its images are paths of [`OfferedFile`]; files that it writes are read by
    /// [`ReadJobOutput`].
    pub command: Command,
    /// Whether it is cancelled when its callers have been gone for a while.
    pub attached: bool,
    /// The lease to use the place under; any lease of the caller if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseId>,
    /// Has the command carried out as from a process of the caller. Refused unless the caller is the
    /// user whom the host's process runs as. The command then names files as that process would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnCaller>,
}

/// What a command of the user whom the host's process runs as has of the process that it was typed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnCaller {
    /// The folder that paths of the command are relative to.
    pub folder: PathBuf,
    /// Variables of the environment by which programs and agents are found. The host takes those of
    /// [`OwnCaller::VARIABLES`].
    pub variables: BTreeMap<String, String>,
}

impl OwnCaller {
    /// The variables that a host takes from its own user.
    pub const VARIABLES: [&'static str; 2] = ["PATH", "SSH_AUTH_SOCK"];
}

/// Streams what a job says, as [`JobLine`], from an offset on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowJob {
    /// The job.
    pub job: JobId,
    /// Where to begin, in bytes: 0, or `next` of the last [`JobLine`].
    pub offset: u64,
}

/// A line of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobLine {
    /// The call that follows the job.
    pub call: u64,
    /// Where the next line begins.
    pub next: u64,
    /// The line.
    pub line: WorkerLine,
}

/// The end of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobEnd {
    /// What its process wrote to standard error last, if it ended without an answer.
    pub crashed: Option<String>,
}

/// Input for the console or channel of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobInput {
    /// The job.
    pub job: JobId,
    /// The bytes, in base64.
    pub data: String,
    /// Whether the input ends behind them.
    pub end: bool,
}

/// Asks a job to end in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelJob {
    /// The job.
    pub job: JobId,
}

/// Reads bytes of a file that a job has written for its caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadJobOutput {
    /// The job.
    pub job: JobId,
    /// Number of the file among those that its command writes.
    pub number: usize,
    /// Where to begin, in bytes.
    pub offset: u64,
}

/// Lists the jobs that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListJobs {}

/// A job of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSummary {
    /// The job.
    pub job: JobId,
    /// Whether its process lives.
    pub alive: bool,
    /// Who started it; may hold any text.
    pub by: String,
    /// Its run, once it has one.
    pub run: Option<RunId>,
}

/// Asks what a place has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribePlace {
    /// The place.
    pub place: PlaceName,
}

/// What a place has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlaceAnswer {
    /// The kind of its board.
    pub board: BoardId,
    /// The console that is meant where none is named.
    pub primary: ConsoleName,
    /// Its consoles.
    pub consoles: Vec<ConsoleName>,
}

/// Asks something of the leases of the rig, as whom the caller acts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderLease {
    /// What.
    pub order: LeaseOrder,
}

/// Asks whether the host has a file, by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfferFile {
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
    /// Length in bytes.
    pub size: u64,
    /// Its name, for records: one component of a path.
    pub name: String,
}

/// What the host has of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfferedFile {
    /// The path by which commands name it there.
    pub path: String,
    /// How many of its bytes are there.
    pub have: u64,
}

/// Sends bytes of an offered file; they follow each other without gaps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PutFile {
    /// The file.
    pub sha256: String,
    /// Where the bytes begin.
    pub offset: u64,
    /// The bytes, in base64.
    pub data: String,
}

/// Lists the files of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribeRun {
    /// The run.
    pub run: RunId,
}

/// The files of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFiles {
    /// Whether the run is under way.
    pub live: bool,
    /// The files.
    pub files: Vec<RunFile>,
}

/// A file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFile {
    /// Its path within the run, with `/`.
    pub path: String,
    /// Length in bytes.
    pub size: u64,
    /// SHA-256 of its bytes; nothing while the run is under way.
    pub sha256: Option<String>,
}

/// Reads bytes of a file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadRunFile {
    /// The run.
    pub run: RunId,
    /// Path of the file within the run, with `/`.
    pub path: String,
    /// Where to begin, in bytes.
    pub offset: u64,
}

/// Bytes of a file; none at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFileChunk {
    /// The bytes, in base64.
    pub data: String,
}

/// Streams a file of a run, as [`FollowedFile`], until the run has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowFile {
    /// The run.
    pub run: RunId,
    /// Path of the file within the run, with `/`.
    pub path: String,
    /// Where to begin, in bytes.
    pub offset: u64,
}

/// The next bytes of a file that is followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowedFile {
    /// The call that follows the file.
    pub call: u64,
    /// Where the bytes begin.
    pub offset: u64,
    /// The bytes, in base64.
    pub data: String,
}

/// Ends a call that streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndCall {
    /// The call.
    pub call: u64,
}
