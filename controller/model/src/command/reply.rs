//! What a caller is answered.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    BacktraceReply, BreakpointReply, CoreReply, DeployReply, DumpReply, EndedReply, EraseReply,
    FlashReply, MemoryReadReply, MemoryWrittenReply, PowerAction, RegistersReply, ResetReply,
};
use crate::power::{Confirmation, PlaceSense};
use crate::protocol::{CheckReport, PowerState};
use crate::recovery::Rung;
use crate::{DeviceName, Fault, LocatedProblem, PlaceName, RunId, Verdict};

/// The answer to a command that was carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// A run, a test, a console session or a recovery has ended.
    Run(RunReply),
    /// The recovery steps of a place.
    RecoverySteps(RecoveryStepsReply),
    /// The power of a real board was switched, or asked for.
    Power(PowerReply),
    /// The power of an emulated board was asked for.
    EmulatedPower(EmulatedPowerReply),
    /// What would be switched, and how.
    PowerExplained(PowerExplained),
    /// The health checks of a place have been run.
    Checked(CheckReply),
    /// A debug probe has put an image on the board.
    Flashed(FlashReply),
    /// Another part has put an image on the board.
    Deployed(DeployReply),
    /// Flash was erased.
    Erased(EraseReply),
    /// The board was reset by another part than a debug probe.
    Reset(ResetReply),
    /// The core was reset, halted, resumed or stepped by a debug probe.
    Core(CoreReply),
    /// Registers were read.
    Registers(RegistersReply),
    /// Memory was read.
    MemoryRead(MemoryReadReply),
    /// Memory was written.
    MemoryWritten(MemoryWrittenReply),
    /// A breakpoint was hit, or not.
    Breakpoint(BreakpointReply),
    /// The core was looked at.
    Backtrace(BacktraceReply),
    /// A core dump was written.
    Dumped(DumpReply),
    /// A session with the board has ended.
    Ended(EndedReply),
}

/// A run that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunReply {
    /// The run.
    pub run: RunId,
    /// Its directory: record, events, console logs, reports.
    pub dir: PathBuf,
    /// What it amounts to.
    pub verdict: Verdict,
    /// The exit code of a program that only makes this run.
    pub exit_code: u8,
    /// The injected faults that did not strike, as they were written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_struck: Vec<String>,
}

/// The recovery steps of a place, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoveryStepsReply {
    /// The place.
    pub place: PlaceName,
    /// The steps.
    pub steps: Vec<Rung>,
    /// How long they may take together, in milliseconds.
    pub timeout_ms: u64,
}

/// The power of a real board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerReply {
    /// The place.
    pub place: PlaceName,
    /// The device that switches it.
    pub device: DeviceName,
    /// The kind of the device.
    pub driver: String,
    /// Its outlet; empty where it has only one.
    pub outlet: String,
    /// What was done.
    pub action: PowerAction,
    /// The state now; nothing where nothing can tell.
    pub state: Option<PowerState>,
    /// How the state is known; nothing where the device was only asked.
    pub confirmation: Option<Confirmation>,
    /// What was asked beside the device, in words, if anything was.
    pub sense: Option<String>,
    /// The other places on the outlet.
    pub shared_with: Vec<PlaceName>,
    /// How long a cycle stayed off, in milliseconds.
    pub off_ms: Option<u64>,
    /// How long the command took, in milliseconds.
    pub duration_ms: u64,
}

/// The power of an emulated board: it has some while a command runs its emulator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmulatedPowerReply {
    /// The place.
    pub place: PlaceName,
    /// What was asked for.
    pub action: PowerAction,
    /// The state.
    pub state: PowerState,
    /// The command that runs its emulator; may hold any text.
    pub in_use_by: Option<String>,
}

/// How the power of a place is switched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerExplained {
    /// The place.
    pub place: PlaceName,
    /// The device.
    pub device: DeviceName,
    /// Its kind.
    pub driver: String,
    /// Its outlet; empty where it has only one.
    pub outlet: String,
    /// The device as it is understood; names secrets only by where they are kept.
    pub about: serde_json::Value,
    /// The file that declares it.
    pub declared_in: String,
    /// Least time between two commands to it, in milliseconds.
    pub min_interval_ms: u64,
    /// How long an answer is waited for, in milliseconds.
    pub timeout_ms: u64,
    /// How long it may take until it reads back as switched, in milliseconds.
    pub settle_ms: u64,
    /// How long a cycle stays off, in milliseconds.
    pub off_ms: u64,
    /// The other places on the outlet, and their users.
    pub shared_with: Vec<SharedOutlet>,
    /// What senses the power beside the device.
    pub sense: PlaceSense,
    /// The hub of the place.
    pub hub: Option<DeviceName>,
    /// The other places on the hub.
    pub hub_neighbours: Vec<PlaceName>,
    /// The file by which processes keep their commands to the device apart.
    pub lock: PathBuf,
}

/// Another place on the same outlet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedOutlet {
    /// The place.
    pub place: PlaceName,
    /// Its user; may hold any text.
    pub in_use_by: Option<String>,
}

/// What the health checks of a place have shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckReply {
    /// The place.
    pub place: PlaceName,
    /// What each check said.
    pub checks: Vec<CheckReport>,
    /// The health of the place now, by its name: `healthy`.
    pub state: String,
    /// Whether the place is fit for use.
    pub usable: bool,
    /// Who uses the place, which was then not checked; may hold any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_use: Option<String>,
}

/// Why a command was not carried out, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// Who is to blame.
    pub fault: Fault,
    /// What happened; may quote hostile text.
    pub message: String,
    /// What to do next, preferably a command to paste.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The problems of the documents that are wrong, such as a plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<LocatedProblem>,
}
