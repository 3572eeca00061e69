//! The door to a rig: what a caller asks for, what it is told meanwhile, and the answer.
//!
//! The command line, a worker process, a daemon and a test all speak these types. Times are in
//! milliseconds, and paths are those of the host that carries the command out.

mod ask;
mod event;
mod line;
mod reply;
#[cfg(test)]
mod tests;

pub use ask::{
    CheckCommand, Command, ConsoleCommand, PlanText, PowerAction, PowerCommand, RecoverCommand,
    RecoverExtent, RecoverySteps, RunCommand, RunOptions, TestCommand,
};
pub use event::{CommandEvent, EventSink, SweptRun};
pub use line::{LineError, MOST_LINE, VERSION, WorkerLine, to_line};
pub use reply::{
    CheckReply, EmulatedPowerReply, PowerExplained, PowerReply, RecoveryStepsReply, Refusal, Reply,
    RunReply, SharedOutlet,
};
