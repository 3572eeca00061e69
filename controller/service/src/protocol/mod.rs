//! What a caller and a rig's host say to each other: JSON-RPC 2.0, one message a line.
//!
//! # Format
//! A line is UTF-8, ends with `\n` and has at most [`MOST_LINE`] bytes. The first call is
//! [`Hello`], which settles the version; within a version, unknown methods and unknown parameters
//! are refused. A call that streams sends notifications that name it by its id, and its response is
//! the last message of the stream; [`EndCall`] ends it early. Bytes travel in base64.

mod calls;
mod envelope;
mod line;
mod rig_calls;
#[cfg(test)]
mod tests;

pub use calls::{
    CancelJob, DescribePlace, DescribeRun, EndCall, FollowFile, FollowJob, FollowedFile, Hello,
    HelloAnswer, JobEnd, JobInput, JobLine, JobSummary, ListJobs, Nothing, OfferFile, OfferedFile,
    OrderLease, OwnCaller, PROTOCOL, PlaceAnswer, PutFile, ReadJobOutput, ReadRunFile, RpcCall,
    RunFile, RunFileChunk, RunFiles, SharedFolder, StartJob,
};
pub use envelope::{
    CallId, EnvelopeError, Incoming, Notification, Outgoing, RequestError, RpcRequest, error_code,
};
pub use line::{LineReadError, LineReader, MOST_LINE, write_line};
pub use rig_calls::{
    AskKnowledge, DescribeBoard, DescribeRig, EVENTS, PruneRuns, RunPiece, ViewRig, WatchRun,
};

/// Most calls of a connection that are answered side by side; further ones are refused.
pub const MOST_CALLS: usize = 64;

/// Most bytes of a file in one message.
pub const MOST_CHUNK: usize = 256 << 10;
