//! What a caller asks a rig to do.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    AttachCommand, BoardResetCommand, ConsoleCommand, DebugCommand, EraseCommand,
    FlashImageCommand, HoldCommand, LineControlCommand, ServeProbeCommand, ShellCommand,
};
use crate::pattern::Pattern;
use crate::recovery::RecoveryStep;
use crate::{ConsoleName, PlaceName, SessionTrace, Strictness};

/// Names everything that touches a board. Each variant says when it is legal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Deploys an image, boots the board and judges what it reports. Legal at a place that is in
    /// service; waits for a real board that another process uses.
    Run(RunCommand),
    /// Runs a test plan. Legal as [`Command::Run`], at a board that has what the plan requires.
    Test(TestCommand),
    /// Boots a board and passes bytes between its console and the caller until the input ends.
    /// Legal as [`Command::Run`].
    Console(ConsoleCommand),
    /// Passes bytes between the caller and a console that is captured, or used by a run. Without
    /// input legal at any time; with input while the console is captured.
    Attach(AttachCommand),
    /// Controls the serial line of a console. Legal while it is captured and not lent to a run.
    LineControl(LineControlCommand),
    /// Proves that a place works, or takes recovery steps until it does. Legal at any place, also
    /// one that is out of service.
    Recover(RecoverCommand),
    /// Tells the recovery steps of a place as they stand there. Legal at any time: touches
    /// nothing.
    RecoverySteps(RecoverySteps),
    /// Switches the power of a place, or asks for it. Legal while no other process uses the
    /// place or one on the same outlet; asking is legal at any time.
    Power(PowerCommand),
    /// Runs the health checks of a place and notes what they show. Legal while no other process
    /// uses the place.
    Check(CheckCommand),
    /// Puts an image on a board, by its debug probe or by what flashes it otherwise. Legal while
    /// no other process uses the place.
    Flash(FlashImageCommand),
    /// Erases a board's flash. Legal as [`Command::Flash`], at a place with a debug probe.
    Erase(EraseCommand),
    /// Resets a board by what the place has for it. Legal as [`Command::Flash`].
    Reset(BoardResetCommand),
    /// Debugs a board. Legal as [`Command::Flash`], at a place with a debug probe; what leaves a
    /// core halted or running needs a board that outlives the command.
    Debug(DebugCommand),
    /// Serves the debug port of an emulated board. Legal as [`Command::Flash`].
    ServeProbe(ServeProbeCommand),
    /// Runs a command on a target that runs an operating system, or copies a file. Boots an emulated
    /// board for it; leaves the power of a real one alone. Legal as [`Command::Run`], at a place that
    /// reaches a shell.
    Shell(ShellCommand),
    /// Keeps a board powered for the commands of other processes until it is cancelled. Legal as
    /// [`Command::Flash`].
    Hold(HoldCommand),
}

impl Command {
    /// Returns the place that the command is about.
    pub fn place(&self) -> &PlaceName {
        match self {
            Self::Run(run) => &run.place,
            Self::Test(test) => &test.place,
            Self::Console(console) => &console.place,
            Self::Attach(attach) => &attach.place,
            Self::LineControl(line) => &line.place,
            Self::Recover(recover) => &recover.place,
            Self::RecoverySteps(steps) => &steps.place,
            Self::Power(power) => &power.place,
            Self::Check(check) => &check.place,
            Self::Flash(flash) => &flash.place,
            Self::Erase(erase) => &erase.place,
            Self::Reset(reset) => &reset.place,
            Self::Debug(debug) => &debug.place,
            Self::ServeProbe(serve) => &serve.place,
            Self::Hold(hold) => &hold.place,
            Self::Shell(shell) => &shell.place,
        }
    }
}

/// Runs an image with the built-in plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunCommand {
    /// The place.
    pub place: PlaceName,
    /// The image, as `FILE` or `FILE.bin@ADDRESS`; none where the board boots by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<PathBuf>,
    /// How often the target is expected to reset itself before that.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resets: u8,
    /// The first line of the boot behind such a reset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_boot: Option<Pattern>,
    /// Passes as soon as the console shows this; no test results are needed then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Pattern>,
    /// The console on which that text or the report is awaited; the primary one if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub console: Option<ConsoleName>,
    /// Output that fails the run, on whatever console.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reject: Vec<Pattern>,
    /// Lines that are harmless, though they look like a failed test or a crash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Pattern>,
    /// How long the report is waited for, in milliseconds.
    pub timeout_ms: u64,
    /// How the run is made.
    #[serde(default)]
    pub options: RunOptions,
}

fn is_zero(count: &u8) -> bool {
    *count == 0
}

/// Runs a test plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestCommand {
    /// The place.
    pub place: PlaceName,
    /// The plan.
    pub plan: PlanText,
    /// The image that `deploy = true` of the plan puts on the board.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<PathBuf>,
    /// How the run is made.
    #[serde(default)]
    pub options: RunOptions,
}

/// A test plan as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanText {
    /// Where it comes from, for messages and the record: a path.
    pub origin: String,
    /// Its TOML.
    pub text: String,
}

/// How a run is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunOptions {
    /// How many attempts to make; at least one is made.
    #[serde(default = "once")]
    pub repeat: u32,
    /// How often the rig may be recovered on the way; as the profile says if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recoveries: Option<u32>,
    /// How long the board is watched behind the end, in milliseconds; as the plan says if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle_ms: Option<u64>,
    /// Which output has to be known; what plan or place says counts if it is stricter.
    #[serde(default, skip_serializing_if = "Strictness::is_off")]
    pub strict: Strictness,
    /// Faults to inject, each as `NAME[=ARG][@WHEN][,every]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inject: Vec<String>,
    /// Whether the lines that are executed are found out and kept with the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub coverage: bool,
    /// Whether it is also found out which tests execute them. The emulator is several times slower.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub coverage_by_test: bool,
    /// The session that asks for it, if one does; kept in the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<SessionTrace>,
}

fn once() -> u32 {
    1
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            repeat: once(),
            recoveries: None,
            settle_ms: None,
            strict: Strictness::Off,
            inject: Vec::new(),
            coverage: false,
            coverage_by_test: false,
            asked: None,
        }
    }
}

/// Proves that a place works, or recovers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoverCommand {
    /// The place.
    pub place: PlaceName,
    /// How far to go.
    pub extent: RecoverExtent,
}

/// Says how far a recovery goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RecoverExtent {
    /// The place is only asked whether it works.
    Prove,
    /// Steps are taken if it does not prove to work.
    Recover,
    /// Steps are taken from this one on, whether it works or not.
    From(RecoveryStep),
}

/// Asks for the recovery steps of a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoverySteps {
    /// The place.
    pub place: PlaceName,
    /// The first step, if not the gentlest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<RecoveryStep>,
}

/// Switches the power of a place, or asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerCommand {
    /// The place.
    pub place: PlaceName,
    /// What to do.
    pub action: PowerAction,
    /// How long a cycle stays off, in milliseconds, if not as the rig file says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_ms: Option<u64>,
    /// Switches although places on the same outlet are in use.
    #[serde(default)]
    pub force: bool,
    /// How long to wait for each place that another process uses, in milliseconds.
    #[serde(default)]
    pub wait_ms: u64,
}

/// What to do with the power of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerAction {
    /// Switch it on.
    On,
    /// Switch it off.
    Off,
    /// Switch it off, wait, and switch it on.
    Cycle,
    /// Ask the device.
    Status,
    /// Ask the device, and what senses the power beside it.
    Verify,
    /// Tell what would be switched, how, and which places share it. Touches nothing.
    Explain,
}

impl PowerAction {
    /// Returns the stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Cycle => "cycle",
            Self::Status => "status",
            Self::Verify => "verify",
            Self::Explain => "explain",
        }
    }
}

/// Runs the health checks of a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckCommand {
    /// The place.
    pub place: PlaceName,
    /// How long to wait for a real board that another process uses, in milliseconds. Without it
    /// nothing is waited for, and `jig serve` is not told that another process waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}
