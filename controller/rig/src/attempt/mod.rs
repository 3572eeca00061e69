//! One attempt: a plan run once on one board.
//!
//! Owns the board's consoles for the attempt, watches them while actions run, and hands
//! what was observed to the judge. Refuses to know what implements the protocols.
//!
//! # Design
//! Three parties share one [`board::Board`] and only report to it; [`facts::Facts::fold`] is the one
//! place where a report changes what is known. The driver reports events and transports into it, a [`watcher::Watcher`] per console reads
//! the log (faults, boot loops, floods, results, build id), and the [`actions::Actions`]
//! do what the plan says and stop waiting as soon as the facts say it is pointless.
//!
//! *Incidents belong to the attempt, results to the last boot that was asked for.* Output of an
//! earlier boot can fail a run and never pass it.
//!
//! *Tests own the time.* Their clock advances to the next deadline when no task is left to do, and
//! stands still while a log's disk thread works (`console::Clock::under_way`).

mod abort_condition;
mod actions;
mod board;
mod board_timeout;
mod bound;
mod compiled_patterns;
mod consoles;
mod drain;
mod error;
mod facts;
mod garbage;
mod identity;
mod perform;
mod post_mortem;
#[cfg(test)]
mod tests;
mod transport_watch;
mod watcher;
mod watching;

pub use board::EventSink;
pub use bound::{BindRequest, Bound};
pub use compiled_patterns::RunPatterns;
pub use error::AttemptError;
pub use perform::{AttemptEnd, AttemptRequest, perform};
#[cfg(test)]
pub(crate) use tests::fake;
