//! Child processes that cannot be left behind.
//!
//! Owns every child of Jig: each is the leader of its own process group, dies with Jig
//! (parent-death signal), is killed as a group and reaped. A [`DetachedProcess`] and one that is
//! started by [`start_unattended`] outlive Jig: they are a Jig themselves. [`supervise`] ends descendants, too,
//! in a process of its own. Refuses shells: a command is a program and a list of arguments. Standard
//! input is inherited by [`run_in_foreground`] alone, for a program of the user.

mod detached;
mod foreground;
mod fork;
mod managed;
mod run_time;
mod starved;
mod stillness;
mod stolen;
mod supervise;
mod unattended;

pub use detached::{DetachedEvent, DetachedProcess, DetachedRequest};
pub use foreground::{ForegroundRequest, run_in_foreground};
pub(crate) use fork::set_filter;
pub use managed::{Ending, ManagedProcess, SpawnError, SpawnRequest};
pub(crate) use run_time::RunTime;
pub use stillness::{Stillness, StillnessWatch};
pub(crate) use supervise::{NotSupervised, SupervisedEnd, SupervisedProgram, supervise};
pub use unattended::{UnattendedRequest, start_unattended};
