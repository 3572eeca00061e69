//! Commands that go on without their caller.
//!
//! A job is a folder and a process: `jig worker --job FOLDER`. A process that may use the folder
//! can follow the job, give it input and cancel it, also after a break.
//!
//! ```text
//! jobs/<id>/
//!   job.json     the command, and who asked for it
//!   out.jsonl    what the worker says: an event a line, the answer last
//!   err.log      its standard error
//!   input        a FIFO: input, a line of JSON each
//!   cancel       a FIFO: any byte asks the worker to end in order
//!   lock         held by flock while the worker lives
//!   followed     shared by flock by each process that follows the job
//! ```
//!
//! # Design
//! *Files, not pipes.* A slow reader delays no worker, a reader that comes back continues at its
//! offset, and a server that is restarted loses nothing, because it holds nothing.
//!
//! *The caller names the job*, so that a start which is repeated after a lost connection starts
//! nothing twice: the rename of the folder decides.

mod cancel;
mod follow;
mod id;
mod input;
mod job;
mod store;
#[cfg(test)]
pub(crate) mod tests;

pub use cancel::JobCancellation;
pub use follow::{JobFollowError, JobFollower, JobNews};
pub use id::{JobId, NotJobId};
pub use input::{JobInputs, JobOrder, JobOrders, MOST_JOB_INPUT, SendOrderError};
pub use job::{Job, JobError, JobSpec};
pub use store::{JobStore, WorkerProgram};
