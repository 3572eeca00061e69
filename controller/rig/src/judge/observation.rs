//! Everything a verdict may rest on, collected during one attempt.

use std::time::Duration;

use jig_model::result::TestReport;
use jig_model::{Cause, Evidence, Note};

use crate::workflow::ActionFailure;

/// Bytes of one console's log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ByteRange {
    /// The log's path relative to the run.
    pub file: String,
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// The text, lossy and bounded; hostile.
    pub text: String,
}

impl ByteRange {
    /// Converts the range into evidence.
    pub fn evidence(&self) -> Evidence {
        Evidence {
            file: self.file.clone(),
            start: self.start,
            end: self.end,
            note: self.text.clone(),
        }
    }
}

/// Something that happened to the board or on its console, unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// What.
    pub kind: IncidentKind,
    /// Where it shows, or where the console stood when it happened.
    pub range: ByteRange,
}

/// Names what can happen unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IncidentKind {
    /// The rig lost the board.
    Lost(Cause),
    /// The processor locked up.
    Lockup,
    /// The target did what its board cannot execute.
    Aborted,
    /// A recogniser named a cause on a console.
    Recognised(Cause),
    /// The driver saw the target's operating system panic.
    GuestPanic,
    /// A watchdog fired.
    Watchdog,
    /// The target reset itself.
    Reset,
    /// The target ended with an exit code.
    Exit(i32),
}

/// A place where console bytes are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Where.
    pub range: ByteRange,
    /// How many bytes, where known.
    pub lost: Option<u64>,
}

/// A build id that the target printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedId {
    /// In lower-case hex.
    pub hex: String,
    /// Where.
    pub range: ByteRange,
}

/// What is known of the image that ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The build id of the deployed image, if it carries one.
    pub deployed: Option<String>,
    /// Whether the image promises to print it.
    pub announces: bool,
    /// The id that this boot printed, if any.
    pub printed: Option<PrintedId>,
    /// What the board was found to hold after the deployment, if it was read back.
    pub read_back: Option<ReadBack>,
}

/// What a board was found to hold, beside what was put there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadBack {
    /// SHA-256 of what was read, in lower-case hex.
    pub found: String,
    /// SHA-256 of what was deployed, in lower-case hex.
    pub deployed: String,
}

/// A report that the plan waited for in a boot before the last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// The results console's output of that boot.
    pub output: ByteRange,
    /// What was reported.
    pub report: TestReport,
}

/// Everything observed in one attempt; all of it belongs to the last boot that was asked
/// for, except `earlier`, and `incidents` and `gaps`, which count over the whole attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observation {
    /// Somebody asked to stop.
    pub cancelled: bool,
    /// The results console's output of the last boot.
    pub output: ByteRange,
    /// The first bytes of that output that no text holds, or the first place behind characters
    /// that came with errors, if there are any.
    pub garbage: Option<ByteRange>,
    /// Whether another console printed in the last boot.
    pub printed_elsewhere: bool,
    /// What was reported there.
    pub report: TestReport,
    /// Reports of boots before, in order: a later boot does not undo them.
    pub earlier: Vec<Heard>,
    /// Whether the plan waits for results at all.
    pub results_wanted: bool,
    /// What happened unasked, in order.
    pub incidents: Vec<Incident>,
    /// Where bytes are missing.
    pub gaps: Vec<Gap>,
    /// The action that failed.
    pub failure: Option<ActionFailure>,
    /// How often a behaviour was started again.
    pub restarts: u32,
    /// Which image ran.
    pub identity: Identity,
    /// What the debug port found at the end, if it was asked and found something.
    pub post_mortem: Option<Finding>,
    /// The time that stood still.
    pub standstill: Standstill,
    /// What the rig had to do beside; decides nothing.
    pub notes: Vec<Note>,
}

/// Time that passed for everybody but the board. A target's clock runs on meanwhile, so its
/// watchdog and its own time-outs may fail it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standstill {
    /// For how long what runs the board was stopped, all in all.
    pub stopped: Duration,
    /// For how long Jig stood still at most at once: what stopped it may have stopped the board.
    pub latest: Duration,
}

/// What a debug port found out about a target that had gone wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The cause that the core's own state proves, if it proves one.
    pub proves: Option<Cause>,
    /// The file that holds all of it, with the one-line story as text.
    pub range: ByteRange,
}

impl Observation {
    /// Tells whether the target printed anything in the last boot, on any console.
    pub fn printed(&self) -> bool {
        self.printed_elsewhere || self.output.end > self.output.start
    }
}
