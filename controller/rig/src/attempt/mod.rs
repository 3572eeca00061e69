//! One attempt: a plan run once on one board.
//!
//! Owns the board's consoles for the attempt, watches them while actions run, and hands
//! what was observed to the judge. Refuses to know what implements the protocols.
//!
//! # Design
//! Three parties share one [`board::AttemptBoard`] and only report to it; only
//! [`facts::BoardFacts::fold`] changes the facts. The driver reports events and transports, a
//! [`watcher::ConsoleWatcher`] per console reads the log (faults, boot loops, floods, results,
//! build id), and the [`actions::Actions`] carry out the plan and stop waiting as soon as the facts
//! make it pointless.
//!
//! *Incidents belong to the attempt, results to the last boot that the plan started.* Output of an
//! earlier boot can fail a run and never pass it.
//!
//! *Unit tests run on a virtual clock.* It advances to the next deadline when no task is ready, and
//! stops while the disk thread of a log works (`console::ConsoleClock::under_way`).

mod abort_condition;
mod actions;
mod after_end;
mod asked_of_target;
mod awaited_line;
mod begins_again;
mod begun_runs;
mod board;
mod board_timeout;
mod bound;
mod compiled_patterns;
mod consoles;
mod drain;
mod error;
mod exact_timer;
mod expected_resets;
mod facts;
mod failed_results;
mod garbage;
mod identity;
mod log_search;
mod perform;
mod post_mortem;
mod result_like;
#[cfg(test)]
mod tests;
mod transport_watch;
mod unaccounted;
mod watcher;
mod watching;

pub use board::RunEventSink;
pub use bound::{BindRequest, Bound};
pub use compiled_patterns::RunPatterns;
pub use error::AttemptError;
pub use perform::{AttemptEnd, AttemptRequest, Believed, perform};
#[cfg(test)]
pub(crate) use tests::fake;
