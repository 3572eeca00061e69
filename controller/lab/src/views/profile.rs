//! The profile of a kind of board.

use jig_model::profile::{BoardProfile, Deploy, StageProbe};
use jig_model::{BoardId, byte_size};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A profile, to be shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileSheet {
    /// The kind of board.
    pub id: BoardId,
    /// All of it, as it was read.
    pub profile: Value,
    /// What people look for in it.
    pub lines: Vec<SheetLine>,
}

/// A line about a profile. Texts may hold anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SheetLine {
    /// What it is about.
    pub name: String,
    /// What the profile says.
    pub value: String,
}

impl ProfileSheet {
    /// Describes a profile.
    pub(super) fn of(profile: &BoardProfile) -> Self {
        Self { id: profile.id.clone(), profile: json!(profile), lines: lines(profile) }
    }
}

fn lines(profile: &BoardProfile) -> Vec<SheetLine> {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push(SheetLine { name: name.to_owned(), value });
        }
    };
    line("title", profile.title.clone());
    line("from", profile.origin.clone());
    line("status", profile.status.map_or_else(String::new, |status| status.as_str().to_owned()));
    line("sources", profile.sources.join("; "));
    line("arch", profile.arch.to_string());
    line("chip", profile.chip.clone().unwrap_or_default());
    line("memory", profile.memory_text());
    for (n, console) in profile.consoles.iter().enumerate() {
        let primary = if n == 0 { ", primary" } else { "" };
        line(
            "console",
            format!("{} ({:?}, {} baud{primary})", console.name, console.kind, console.baud)
                .to_lowercase(),
        );
    }
    line("features", profile.features.iter().map(String::as_str).collect::<Vec<_>>().join(", "));
    if let Some(emulation) = &profile.emulation {
        let args = emulation.args.join(" ");
        line("emulator", format!("{} -machine {} {args}", emulation.program, emulation.machine));
        line("image set", emulation.image_set.clone().unwrap_or_default());
        let quirks = emulation.quirks;
        let quirks = [
            (quirks.poke_after_input, "poke-after-input"),
            (quirks.drops_early_input, "drops-early-input"),
            (quirks.freezes_when_unread, "freezes-when-unread"),
            (quirks.drops_when_unread, "drops-when-unread"),
        ];
        let has: Vec<&str> = quirks.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect();
        line("quirks", has.join(", "));
    }
    match &profile.deploy {
        Some(Deploy::Command(command)) => {
            let argv = command.argv.join(" ");
            line("deploy", format!("{argv} (within {:?})", command.timeout));
        }
        Some(deploy) => line("deploy", deploy.method().to_string()),
        None => {}
    }
    for stage in &profile.stages {
        let how = match &stage.probe {
            StageProbe::Console(pattern) => format!("console shows /{}/", pattern.as_str()),
            StageProbe::Banner { port, pattern } => {
                format!("port {port} answers /{}/", pattern.as_str())
            }
        };
        line("stage", format!("{}: {how}, within {:?}", stage.name, stage.timeout));
    }
    let faults = profile.faults.iter().map(|fault| format!("{} ({})", fault.name, fault.cause));
    line("faults", faults.collect::<Vec<_>>().join(", "));
    let limits = &profile.limits;
    line(
        "limits",
        format!(
            "flood {} bytes, boot loop {} boots, settle {:?}, silence {:?}",
            limits.flood_bytes, limits.boot_loop, limits.settle, limits.silence
        ),
    );
    let recovery = &profile.recovery;
    let ladder: Vec<&str> = recovery.ladder.iter().map(|step| step.as_str()).collect();
    line("ladder", ladder.join(", "));
    line(
        "recovery",
        format!(
            "{} recoveries a run, each within {:?}, power away for {:?} at most",
            recovery.max_recoveries, recovery.timeout, recovery.long_off
        ),
    );
    let health = &profile.health;
    let checks = health.checks.as_deref().map_or("all that fit".to_owned(), |chosen| {
        chosen.iter().map(|check| check.as_str()).collect::<Vec<_>>().join(", ")
    });
    line("health", format!("{checks}; every {:?}", health.interval));
    line(
        "host",
        format!(
            "{} of disk, {} of memory and {} files free, clock within {:?}",
            byte_size(health.free_disk),
            byte_size(health.free_memory),
            health.free_handles,
            health.clock_skew
        ),
    );
    lines
}
