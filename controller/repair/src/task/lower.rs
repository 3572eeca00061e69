//! From the task as written to the task that can be carried out.

use std::path::{Component, Path, PathBuf};

use jig_model::Problems;
use jig_model::document::{Findings, Located, document_schema, open};

use super::limits::RepairLimits;
use super::lower_agents::{lower_agents, lower_analyst, timeout, values};
use super::raw::{RawBuild, RawLimits, RawTask};
use super::types::{BuildTask, RepairTask};
use crate::analysis::Preset;
use crate::convergence::ExecutionMode;

/// Version of the task file that is read.
const VERSION: u32 = 1;

impl RepairTask {
    /// Returns the text of the task file's JSON Schema.
    pub fn json_schema() -> String {
        document_schema::<RawTask>("Jig repair task")
    }

    /// Reads a task. `origin` says where it came from, for messages.
    ///
    /// # Errors
    /// All problems of the document, in its order.
    pub fn parse(origin: &str, text: &str) -> Result<Self, Problems> {
        let findings = Findings::new();
        let task = open::<RawTask>("repair task", VERSION, text, &findings)
            .and_then(|raw| lower(raw.value, &findings));
        findings.finish("repair task", origin, text, task)
    }
}

fn lower(raw: RawTask, findings: &Findings) -> Option<RepairTask> {
    let settings = raw.agent.map(|agents| agents.value).unwrap_or_default();
    let analyst = raw.analyst.as_ref();
    let agents = raw.agents.map(|agents| lower_agents(agents, analyst, &settings, findings));
    let analyst = analyst.and_then(|analyst| lower_analyst(analyst, &settings, findings));
    let preset = raw.preset.map_or(Preset::Balanced, |preset| preset.value);
    let limits = match raw.limits {
        Some(limits) => lower_limits(limits.value, preset, findings),
        None => RepairLimits::of(preset),
    };
    let build = raw.build.and_then(|build| lower_build(build.value, findings));
    let goal = raw.goal.map(|goal| {
        if goal.value.trim().is_empty() {
            let help = "write goal = \"the boot test passes\"";
            findings.add("task::no-goal", goal.at(), "`goal` is empty", help);
        }
        goal.value
    });
    let path = |text: Option<Located<String>>| text.map(|text| PathBuf::from(text.value));
    Some(RepairTask {
        goal: goal?,
        repo: path(raw.repo).unwrap_or_else(|| PathBuf::from(".")),
        board: raw.board?.value,
        screen_on: raw.screen_on.map(|place| place.value),
        plan: path(raw.plan)?,
        held_out: path(raw.held_out),
        mode: raw.mode.map_or(ExecutionMode::Ci, |mode| mode.value),
        preset,
        agents: agents?,
        analyst,
        build: build?,
        limits,
        policy: raw.policy.and_then(|policy| path(policy.value.file)),
    })
}

fn lower_build(raw: RawBuild, findings: &Findings) -> Option<BuildTask> {
    let command = raw.command.map(|command| {
        if command.value.first().is_none_or(|program| program.value.is_empty()) {
            let help = "write command = [\"make\", \"-C\", \"fw\"]";
            findings.add("task::no-command", command.at(), "`command` is empty", help);
        }
        values(Some(command))
    });
    let artifact = raw.artifact.map(|artifact| {
        if !stays_inside(Path::new(&artifact.value)) {
            let help = "write a path below the repository, such as \"fw/out/app.elf\"";
            let message = "`artifact` leads out of the repository";
            findings.add("task::artifact", artifact.at(), message, help);
        }
        PathBuf::from(artifact.value)
    });
    let timeout = timeout(raw.timeout, findings);
    Some(BuildTask { command: command?, artifact, timeout })
}

fn lower_limits(raw: RawLimits, preset: Preset, findings: &Findings) -> RepairLimits {
    let usual = RepairLimits::of(preset);
    let count = |given: Option<Located<u32>>, usual| given.map_or(usual, |n| u64::from(n.value));
    if let Some(none) = raw.iterations.as_ref().filter(|iterations| iterations.value == 0) {
        let help = "write at least 1";
        findings.add("task::no-iteration", none.at(), "a run needs an iteration", help);
    }
    if let Some(wall) = raw.wall.as_ref().filter(|wall| wall.value.as_secs() == 0) {
        let help = "write wall = \"30m\"";
        findings.add("task::no-time", wall.at(), "a run needs at least a second", help);
    }
    RepairLimits {
        iterations: count(raw.iterations, usual.iterations),
        wall_s: raw.wall.map_or(usual.wall_s, |wall| wall.value.as_secs()),
        tokens: count(raw.tokens, usual.tokens),
        micro_usd: raw.usd.map_or(usual.micro_usd, |usd| usd.value.0),
        flash_cycles: count(raw.flash_cycles, usual.flash_cycles),
    }
}

fn stays_inside(path: &Path) -> bool {
    let plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    path.components().all(plain) && path.file_name().is_some()
}
