//! The one stream out: everything that happens in a run, as data.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::image::DeployReport;
use crate::post_mortem::PostMortem;
use crate::protocol::{CheckReport, CopiedFile, TargetCommandEnd};
use crate::recovery::RecoveryEvent;
use crate::result::{CaseStatus, ResultFormat};
use crate::verdict::Verdict;
use crate::{Cause, ConsoleName};

pub use crate::protocol::BoardEvent;

/// What an attempt is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// What was asked for: it counts.
    #[default]
    Test,
    /// The known-good image, to tell the rig from the firmware. Says nothing about what was
    /// asked for.
    Canary,
    /// The test's own image is put back where the known-good image ran last.
    Restore,
}

impl Purpose {
    /// Tells whether it is what was asked for.
    pub fn is_test(&self) -> bool {
        *self == Self::Test
    }
}

/// Everything that can happen in a run, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// An attempt begins.
    AttemptStarted {
        /// Counts from 1.
        attempt: u32,
        /// What it is for.
        #[serde(default, skip_serializing_if = "Purpose::is_test")]
        purpose: Purpose,
        /// Which repetition of the test it belongs to, where there are several. Counts from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repetition: Option<u32>,
    },
    /// An image is on the board.
    Deployed(DeployReport),
    /// Something happened to the board.
    Board(BoardEvent),
    /// The fault injector struck: what follows is no natural run.
    Injected {
        /// What was asked for, written in full: `pause-emulator=3s@2s`.
        fault: String,
        /// What was done.
        detail: String,
    },
    /// A new boot begins; its output starts at this offset of the primary console.
    Boot {
        /// Counts from 1 within the attempt.
        boot: u32,
        /// Offset in the primary console's log.
        offset: u64,
    },
    /// The workflow machine moved, or refused to.
    Workflow {
        /// State before.
        from: String,
        /// The event's name, such as `START_STEP`.
        trigger: String,
        /// State after; equal to `from` and `refused` where the pair is not in the table.
        to: String,
        /// Whether the pair was refused.
        refused: bool,
    },
    /// An action begins.
    ActionStarted {
        /// Path of names, `stage/step/behaviour/action`.
        path: String,
        /// What it does, in one line.
        what: String,
    },
    /// An action ended.
    ActionEnded {
        /// Path of names.
        path: String,
        /// The cause it failed with, or nothing.
        failed: Option<Cause>,
        /// What was seen; may quote the target.
        detail: String,
        /// How long it took.
        duration_ms: u64,
    },
    /// A result format was recognised.
    FormatFound {
        /// The format.
        format: ResultFormat,
    },
    /// A test case was decided.
    Case {
        /// Its name; hostile text.
        name: String,
        /// How it ended.
        status: CaseStatus,
    },
    /// A recogniser saw something: fault banner, boot loop, flood, silence.
    Recognised {
        /// The cause it stands for.
        cause: Cause,
        /// The console.
        console: ConsoleName,
        /// Offset of the first byte.
        start: u64,
        /// Offset one past the last.
        end: u64,
        /// The range, lossy; hostile text.
        text: String,
    },
    /// Console bytes were lost.
    Gap {
        /// The console.
        console: ConsoleName,
        /// Offset in the log where they are missing.
        at: u64,
        /// How many, where known.
        lost: Option<u64>,
        /// Why.
        reason: String,
    },
    /// Console characters came with a wrong stop or parity bit.
    Garbled {
        /// The console.
        console: ConsoleName,
        /// Offset in the log that they stand before.
        at: u64,
        /// How many.
        count: u64,
    },
    /// A health check ran.
    Health(CheckReport),
    /// A command on the target ended.
    TargetCommand {
        /// The argument list, as the plan has it.
        argv: Vec<String>,
        /// How it ended.
        end: TargetCommandEnd,
        /// The console that has its output.
        console: ConsoleName,
        /// Where the output begins in the console's log.
        from: u64,
        /// Where it ends.
        to: u64,
    },
    /// A file was copied to the target, or from it.
    FileCopied {
        /// Whether the target has got it.
        to_target: bool,
        /// The path on the target.
        path: String,
        /// The file here: of the host, or an artefact relative to the run.
        file: String,
        /// Size and hash.
        copied: CopiedFile,
    },
    /// A host command wrote its output to an artefact.
    HostCommand {
        /// The argument list, as the plan has it.
        argv: Vec<String>,
        /// Exit code, if it ended by itself.
        code: Option<i32>,
        /// Artefact with its output, relative to the run.
        artefact: String,
    },
    /// A debug port explained why the target failed.
    PostMortem {
        /// File that holds the same, relative to the run.
        artefact: String,
        /// What was found; its names are hostile text.
        report: PostMortem,
    },
    /// An attempt ended.
    AttemptEnded {
        /// Counts from 1.
        attempt: u32,
        /// Its verdict.
        verdict: Verdict,
    },
    /// The rig is being recovered.
    Recovery(RecoveryEvent),
    /// Something worth telling people that no other event says.
    Note {
        /// One line.
        text: String,
    },
}

/// An event with its place in time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StampedEvent {
    /// Counts from 0 within the run, without holes.
    pub seq: u64,
    /// Nanoseconds since the run began, on the monotonic clock.
    pub mono_ns: u64,
    /// Wall-clock time.
    pub wall: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub event: RunEvent,
}
