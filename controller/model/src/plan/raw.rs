//! The plan language as it is written, before anything is known to fit together.
//!
//! Owns the keys and their types. What they mean together is checked when they are lowered.

use std::ops::Range;
use std::time::Duration;

use serde_json::{Value, json};
use toml::de::DeValue;

use super::types::PowerOp;
use crate::document::{Choice, FromToml, Located, Node};
use crate::pattern::Pattern;
use crate::profile::Arch;
use crate::result::ResultFormat;
use crate::shell::ShellWay;
use crate::{ActionName, BoardId, ConsoleName, Strictness};

crate::toml_table! {
    /// A test plan of Jig.
    pub(super) struct RawPlan {
        /// Version of the plan language: 1.
        version: u32 = required,
        /// Name of the plan; the test suite's name in reports.
        name: ActionName = required,
        /// What the plan is to show, for people and planners.
        goal: String = optional,
        /// How long one attempt of the whole plan may take.
        timeout: Duration = required,
        /// What the plan needs of a board.
        requires: RawRequires = optional,
        /// Texts that stand for results, where the firmware speaks no known format.
        markers: RawMarkers = optional,
        /// Output that is harmless although it looks like a failed test, or like a crash behind
        /// the end of a green report. Each expression is looked for anywhere in a line.
        allow_output: Vec<Located<Pattern>> = optional,
        /// Whether a pass needs that each line of output is part of a report, expected or allowed: true,
        /// or "behind" for the lines behind the end of a report only. The stricter of plan and place counts.
        strict: Strictness = optional,
        /// Output that fails the run, on whatever console, until the board is stopped.
        reject: Vec<Located<Pattern>> = optional,
        /// Consoles whose test reports do not count; else a failing report on any console of the
        /// board fails the run.
        ignore_reports_on: Vec<Located<ConsoleName>> = optional,
        /// How long the board has to be quiet behind the end of what the plan waits for, in time
        /// that the board has; it is watched for at most five times as long. As the profile says
        /// if left out.
        settle: Duration = optional,
        /// Stages, in order.
        stage: Vec<Located<RawStage>> = required,
    }
    /// What the plan needs of a board. What is left out asks for nothing.
    pub(super) struct RawRequires {
        /// The board must be one of these.
        boards: Vec<Located<BoardId>> = optional,
        /// The board's processor family must be one of these.
        arch: Vec<Located<Arch>> = optional,
        /// The board must have all of these features.
        features: Vec<Located<String>> = optional,
        /// The board must have all of these consoles.
        consoles: Vec<Located<ConsoleName>> = optional,
    }
    /// Texts that stand for results. Of `pass`, `fail`, `skip` and `start`, the capture group
    /// `(?P<name>...)` is the case's name; without it, the case that `start` named is meant. Of
    /// `pass`, `fail` and `skip`, `(?P<message>...)` is the reason. Of `planned`, `(?P<count>...)`
    /// is the number of cases, and it must be there.
    pub(super) struct RawMarkers {
        /// A case passed.
        pass: Pattern = required,
        /// A case failed.
        fail: Pattern = required,
        /// A case was skipped.
        skip: Pattern = optional,
        /// A case begins.
        start: Pattern = optional,
        /// How many cases are planned.
        planned: Pattern = optional,
        /// The report is complete.
        end: Pattern = required,
    }
    /// A stage: steps that belong together.
    pub(super) struct RawStage {
        /// Its name, unique in the plan.
        name: ActionName = required,
        /// What it is to reach.
        goal: String = optional,
        /// Steps, in order.
        step: Vec<Located<RawStep>> = required,
    }
    /// A step: what is tried again if it fails.
    pub(super) struct RawStep {
        /// Its name, unique in the stage.
        name: ActionName = required,
        /// What it is to reach.
        goal: String = optional,
        /// How often each of its behaviours may be started; 1 if left out.
        attempts: u32 = optional,
        /// Actions, in order, where the step has one behaviour only.
        actions: Vec<Located<RawAction>> = optional,
        /// Behaviours, in order.
        behavior: Vec<Located<RawBehavior>> = optional,
    }
    /// A behaviour: actions that are started again together.
    pub(super) struct RawBehavior {
        /// Its name, unique in the step.
        name: ActionName = required,
        /// Actions, in order.
        actions: Vec<Located<RawAction>> = required,
    }
    /// An action. It has exactly one of power, reset, expect_reset, deploy, boot, expect, send,
    /// wait_for_results, exec, upload, download, reboot, host_command, assert and sleep.
    pub(super) struct ActionKeys {
        /// Its name, unique in the behaviour; such as `expect-1` if left out.
        name: ActionName = optional,
        /// How long it may take; never longer than the plan.
        timeout: Duration = optional,
        /// The console; the board's primary one if left out.
        console: ConsoleName = optional,
        /// Switches power.
        power: PowerOp = optional,
        /// Resets the board: true.
        reset: RawSwitch<Never> = optional,
        /// Waits until the target resets itself, once, by its watchdog or otherwise: true, or what the
        /// boot behind that prints first.
        expect_reset: RawSwitch<Pattern> = optional,
        /// Puts an image on the board: true for the one of the command line, or a path.
        deploy: RawSwitch<String> = optional,
        /// Waits for the board's boot stages: true for all, or the last one's name.
        boot: RawSwitch<String> = optional,
        /// Waits until output matches one of these.
        expect: OneOrMany<Pattern> = optional,
        /// Output that ends the wait badly; with `expect`.
        reject: OneOrMany<Pattern> = optional,
        /// True where a text counts that the console only repeats of what was sent; with `expect`.
        echo: bool = optional,
        /// Sends a text to the console, line end included.
        send: String = optional,
        /// Waits for a complete test report: true for any format, or the format's name.
        wait_for_results: RawSwitch<ResultFormat> = optional,
        /// Runs a program on the target, by its shell: program and arguments, never a shell line.
        exec: Vec<Located<String>> = optional,
        /// Copies a file of this host to the target, and reads it back.
        upload: RawCopy = optional,
        /// Copies a file of the target into the folder of the run.
        download: RawCopy = optional,
        /// Reboots the target by its shell, and waits for the next boot: true.
        reboot: RawSwitch<Never> = optional,
        /// The way to the shell, "ssh" or "serial"; as the board says if left out. With `exec`,
        /// `upload`, `download` and `reboot`.
        via: ShellWay = optional,
        /// Runs a program on this host: program and arguments, never a shell line.
        host_command: Vec<Located<String>> = optional,
        /// The exit code that is expected, 0 if left out; with `exec` and `host_command`.
        exit_code: i32 = optional,
        /// Checks earlier output of this boot.
        assert: Pattern = optional,
        /// How many matches there must be, 1 if left out; with `assert`.
        at_least: u32 = optional,
        /// True where there must be no match; with `assert`.
        absent: bool = optional,
        /// Waits without looking at anything.
        sleep: Duration = optional,
    }
    /// A file to copy.
    pub(super) struct RawCopy {
        /// The file: of this host, or of the target for a download.
        from: String = required,
        /// The path on the target, or the name in the folder of the run; that of `from` if left out,
        /// which an upload puts into the folder where the shell begins.
        to: String = optional,
    }
    /// Stages that are proposed instead of those that remain.
    pub(super) struct RawStagesUpdate {
        /// Version of the plan language: 1.
        version: u32 = required,
        /// Stages, in order.
        stage: Vec<Located<RawStage>> = required,
    }
    /// Steps that are proposed instead of those that remain in the stage.
    pub(super) struct RawStepsUpdate {
        /// Version of the plan language: 1.
        version: u32 = required,
        /// Steps, in order.
        step: Vec<Located<RawStep>> = required,
    }
}

/// An action, and the keys that it names in document order: one whose value was refused
/// was meant nevertheless.
#[derive(Debug, Clone)]
pub(super) struct RawAction {
    pub(super) keys: ActionKeys,
    pub(super) named: Vec<(String, Range<usize>)>,
}

impl FromToml for RawAction {
    fn schema() -> Value {
        ActionKeys::schema()
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        let keys = ActionKeys::read(node)?;
        let DeValue::Table(table) = node.value() else { return None };
        let named = table.keys().map(|key| (key.get_ref().to_string(), key.span()));
        let mut named: Vec<_> = named.collect();
        named.sort_by_key(|(_, span)| span.start);
        Some(Self { keys, named })
    }
}

/// One value or a list of them.
#[derive(Debug, Clone)]
pub(super) struct OneOrMany<T>(pub(super) Vec<Located<T>>);

impl<T: FromToml> FromToml for OneOrMany<T> {
    fn schema() -> Value {
        json!({ "anyOf": [T::schema(), { "type": "array", "items": T::schema(), "minItems": 1 }] })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        if matches!(node.value(), DeValue::Array(_)) {
            return Vec::read(node).map(Self);
        }
        let span = node.place().unwrap_or_default();
        T::read(node).map(|value| Self(vec![Located { value, span }]))
    }
}

/// `true`, or a word that says more.
#[derive(Debug, Clone)]
pub(super) enum RawSwitch<T> {
    /// `true`.
    On,
    /// The word.
    With(T),
}

/// The word of a [`RawSwitch`] that knows none.
#[derive(Debug, Clone)]
pub(super) enum Never {}

impl FromToml for Never {
    fn schema() -> Value {
        json!({ "const": true })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        node.wrong_type("true", "true");
        None
    }
}

impl<T: FromToml> FromToml for RawSwitch<T> {
    fn schema() -> Value {
        json!({ "anyOf": [{ "const": true }, T::schema()] })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        match node.value() {
            DeValue::Boolean(true) => Some(Self::On),
            DeValue::Boolean(false) => {
                let message = format!("`{} = false` does nothing", node.key());
                node.refuse("plan::nothing-to-do", message, "remove the action, or write true");
                None
            }
            _ => T::read(node).map(Self::With),
        }
    }
}

impl Choice for PowerOp {
    const WHAT: &'static str = "power operation";
    const CHOICES: &'static [(&'static str, Self)] =
        &[("on", Self::On), ("off", Self::Off), ("cycle", Self::Cycle)];
}

impl Choice for ResultFormat {
    const WHAT: &'static str = "result format";
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("unity", Self::Unity),
        ("ztest", Self::Ztest),
        ("tap", Self::Tap),
        ("ktap", Self::Ktap),
        ("gtest", Self::Gtest),
        ("libtest", Self::Libtest),
        ("cpputest", Self::Cpputest),
        ("cmocka", Self::Cmocka),
        ("embunit", Self::Embunit),
        ("check", Self::Check),
        ("doctest", Self::Doctest),
        ("catch2", Self::Catch2),
        ("greentea", Self::Greentea),
        ("aunit", Self::Aunit),
        ("nuttx", Self::Nuttx),
        ("pytest", Self::Pytest),
        ("go", Self::Go),
        ("teamcity", Self::Teamcity),
        ("defmt-test", Self::DefmtTest),
        ("markers", Self::Markers),
    ];
}
