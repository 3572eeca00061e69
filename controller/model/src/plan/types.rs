//! The lowered plan: every pattern compiles, every reference resolves, every wait ends.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::pattern::Pattern;
use crate::profile::Arch;
use crate::result::ResultFormat;
use crate::shell::ShellWay;
use crate::{ActionName, BoardId, ConsoleName, Strictness};

/// A test plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Its name; the test suite's name in reports.
    pub name: ActionName,
    /// What it is to show, for people and planners.
    pub goal: String,
    /// What it needs of a board.
    pub requires: Requirements,
    /// How long one attempt of the whole plan may take.
    pub timeout: Duration,
    /// Texts that stand for results, where the firmware speaks no known format.
    pub markers: Option<Markers>,
    /// Output that is harmless although it looks like a failed test, or like a crash behind the end
    /// of a green report.
    pub allow_output: Vec<Pattern>,
    /// Which output has to be part of a report, expected or allowed.
    pub strict: Strictness,
    /// Output that fails the run, on whatever console, until the board is stopped.
    pub reject: Vec<Pattern>,
    /// Consoles whose test reports do not count, unless the plan waits for results there.
    pub ignore_reports_on: BTreeSet<ConsoleName>,
    /// How long the board has to be quiet behind the end; as the profile says if nothing.
    pub settle: Option<Duration>,
    /// Stages, in order. Never empty.
    pub stages: Vec<Stage>,
    /// Where the plan came from: a path, or `built-in`.
    pub origin: String,
}

impl Plan {
    /// Tells whether an action runs a program of the rig's host, or reads a file there: an image that
    /// the plan names itself.
    pub fn reaches_host(&self) -> bool {
        let steps = self.stages.iter().flat_map(|stage| &stage.steps);
        let mut actions = steps.flat_map(|step| &step.behaviors).flat_map(|b| &b.actions);
        actions.any(|action| match &action.kind {
            ActionKind::HostCommand { .. } | ActionKind::Upload { .. } => true,
            ActionKind::Deploy { image } => image.is_some(),
            _ => false,
        })
    }
}

impl Plan {
    /// Tells whether a plan commands a system that runs, and neither boots its board nor deploys to
    /// it: then the power of a real board is none of its business.
    pub fn only_commands(&self) -> bool {
        let steps = self.stages.iter().flat_map(|stage| &stage.steps);
        let mut actions = steps.flat_map(|step| &step.behaviors).flat_map(|b| &b.actions);
        actions.all(|action| {
            matches!(
                action.kind,
                ActionKind::Exec { .. }
                    | ActionKind::Upload { .. }
                    | ActionKind::Download { .. }
                    | ActionKind::Reboot { .. }
                    | ActionKind::HostCommand { .. }
                    | ActionKind::Expect { .. }
                    | ActionKind::Assert { .. }
                    | ActionKind::WaitForResults { .. }
                    | ActionKind::Sleep { .. }
            )
        })
    }
}

/// What a plan needs of a board. Empty sets ask for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Requirements {
    /// The board must be one of these.
    pub boards: BTreeSet<BoardId>,
    /// The board's processor family must be one of these.
    pub arch: Vec<Arch>,
    /// The board must have all of these features.
    pub features: BTreeSet<String>,
    /// The board must have all of these consoles.
    pub consoles: BTreeSet<ConsoleName>,
}

/// Texts that stand for results. A capture group called `name` names the case, one called
/// `count` the number of planned cases, one called `message` the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Markers {
    /// A case begins.
    pub start: Option<Pattern>,
    /// A case passed.
    pub pass: Pattern,
    /// A case failed.
    pub fail: Pattern,
    /// A case was skipped.
    pub skip: Option<Pattern>,
    /// How many cases are planned.
    pub planned: Option<Pattern>,
    /// The report is complete.
    pub end: Pattern,
}

/// A stage of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stage {
    /// Its name, unique in the plan.
    pub name: ActionName,
    /// What it is to reach.
    pub goal: String,
    /// Steps, in order. Never empty.
    pub steps: Vec<Step>,
}

/// A step of a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Its name, unique in the stage.
    pub name: ActionName,
    /// What it is to reach.
    pub goal: String,
    /// How often a behaviour of it may be started before the step fails; at least 1. A step
    /// that needed more than one makes the verdict flaky, never a plain pass.
    pub attempts: u32,
    /// Behaviours, in order. Never empty.
    pub behaviors: Vec<Behavior>,
}

/// A behaviour of a step: actions that are started again together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Behavior {
    /// Its name, unique in the step.
    pub name: ActionName,
    /// Actions, in order. Never empty.
    pub actions: Vec<Action>,
}

/// One action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Action {
    /// Its name, unique in the behaviour.
    pub name: ActionName,
    /// How long it may take.
    pub timeout: Duration,
    /// What it does.
    pub kind: ActionKind,
}

/// What to do with a board's power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerOp {
    /// On.
    On,
    /// Off.
    Off,
    /// Off, then on.
    Cycle,
}

/// What an assertion says of the output of this boot so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Assertion {
    /// At least this many matches, one or more.
    AtLeast(u32),
    /// No match at all.
    Absent,
}

/// What an action does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum ActionKind {
    /// Switches power. On begins a new boot.
    Power {
        /// How.
        op: PowerOp,
    },
    /// Resets the board. Begins a new boot.
    Reset,
    /// Waits until the target has reset itself, once, and the boot behind that has begun to print.
    ExpectReset {
        /// The console on which that boot begins, or the primary one.
        console: Option<ConsoleName>,
        /// What that boot prints first; else the boot banner of the profile, or what this boot has
        /// printed first.
        begins: Option<Pattern>,
    },
    /// Puts an image on the board; it runs from the next power-on.
    Deploy {
        /// The image, or the one the command line names.
        image: Option<PathBuf>,
    },
    /// Waits for the board's boot stages, in order, up to and including one.
    Boot {
        /// The last stage to wait for, or all.
        until: Option<String>,
    },
    /// Waits until one of the patterns matches output that no earlier action consumed.
    Expect {
        /// The console, or the primary one.
        console: Option<ConsoleName>,
        /// Any of these ends the wait well.
        any: Vec<Pattern>,
        /// Any of these ends it badly.
        reject: Vec<Pattern>,
        /// A text counts that the console only repeats of what was sent.
        echo: bool,
    },
    /// Sends bytes to a console.
    Send {
        /// The console, or the primary one.
        console: Option<ConsoleName>,
        /// What to send, line end included.
        bytes: Vec<u8>,
    },
    /// Waits for a complete result report and the settle time after it.
    WaitForResults {
        /// The console, or the primary one.
        console: Option<ConsoleName>,
        /// Only this format counts; else the first one recognised.
        format: Option<ResultFormat>,
    },
    /// Runs a program on the target.
    Exec {
        /// Program and arguments.
        argv: Vec<String>,
        /// The exit status that is expected, or any.
        exit_code: Option<i32>,
        /// The way to the shell, or the board's own.
        via: Option<ShellWay>,
    },
    /// Copies a file of this host to the target.
    Upload {
        /// The file.
        from: PathBuf,
        /// The path on the target.
        to: String,
        /// Its permissions there, or those that it has here.
        mode: Option<u32>,
        /// The way to the shell, or the board's own.
        via: Option<ShellWay>,
    },
    /// Copies a file of the target into the run.
    Download {
        /// The path on the target.
        from: String,
        /// The name in the run.
        to: String,
        /// The way to the shell, or the board's own.
        via: Option<ShellWay>,
    },
    /// Reboots the target by its shell. Begins a new boot.
    Reboot {
        /// The way to the shell, or the board's own.
        via: Option<ShellWay>,
    },
    /// Runs a program on this host. Never by a shell.
    HostCommand {
        /// Program and arguments.
        argv: Vec<String>,
        /// The exit code that is expected.
        exit_code: i32,
    },
    /// Checks output of this boot.
    Assert {
        /// The console, or the primary one.
        console: Option<ConsoleName>,
        /// What to look for.
        pattern: Pattern,
        /// What must hold.
        assertion: Assertion,
    },
    /// Waits without looking at anything.
    Sleep {
        /// How long.
        duration: Duration,
    },
}
