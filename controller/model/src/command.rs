//! The door to a rig: what a caller asks for, what it is told meanwhile, and the answer.
//!
//! The command line, a worker process, a daemon and a test all speak these types. Times are in
//! milliseconds, and paths are those of the host that carries the command out.

mod ask;
mod attach;
mod debug;
mod event;
mod files;
mod hex_bytes;
mod hold;
mod holder_order;
mod line;
mod reply;
mod shell_command;
#[cfg(test)]
mod tests;

pub use ask::{
    CheckCommand, Command, PlanText, PowerAction, PowerCommand, RecoverCommand, RecoverExtent,
    RecoverySteps, RunCommand, RunOptions, TestCommand,
};
pub use attach::{
    AttachCommand, AttachFollow, AttachInput, ConsoleCommand, ConsoleLogEvent, ConsoleLogItem,
    ConsoleLogSource, InputLoss, LineControlCommand,
};
pub use debug::{
    BacktraceReply, BoardResetCommand, BreakpointOutcome, BreakpointReply, CodeLocation, CoreReply,
    DebugAction, DebugCommand, DeployReply, DumpReply, EndedReply, EraseCommand, EraseReply,
    FlashBy, FlashImageCommand, FlashReply, ListenAt, MemoryReadReply, MemoryWrittenReply,
    NotListenAt, ProbeAccess, ProbeFlash, RegistersReply, ResetBy, ResetMethod, ResetReply,
    ServeProbeCommand,
};
pub use event::{CommandEvent, EventSink, RttChannelInfo, SweptRun};
pub use files::CommandFiles;
pub use hold::HoldCommand;
pub use holder_order::{HeldBoardFacts, HolderOrder};
pub use line::{LineError, MOST_LINE, VERSION, WorkerLine, to_line};
pub use reply::{
    CheckReply, EmulatedPowerReply, PowerExplained, PowerReply, RecoveryStepsReply, Refusal, Reply,
    RunReply, SharedOutlet,
};
pub use shell_command::{ShellCommand, ShellTask};
